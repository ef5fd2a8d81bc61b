/*
 * What was sent to a reader of the page, so that only changes are sent. A row is known by its key and compared by a digest of
 * its JSON. Pure, except for memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "http/dashboard/json_text.h"
#include "scheduler/page/view.h"

struct told_rows {
	uint64_t head; /* digest of all but the rows' objects */
	unsigned count;
	struct {
		uint64_t key, said; /* digests of the row's key and object */
	} row[VIEW_ROWS];
};

/* Zeroed: nothing was sent. */
struct told {
	bool has_begun;
	uint64_t cluster, open; /* digests of what told_part() wrote */
	struct told_rows nodes, pods;
};

/*
 * Writes the object in `part` as member `key` of `to`, unless its digest is *told, that is, it was sent last. Sets *told and
 * empties `part`. Returns whether it was written.
 */
bool told_part(uint64_t *told, const char *key, struct json_text *part, struct json_text *to);

/* While a page of rows is written. Rows sent before are left out, but not their keys. */
struct told_writing {
	struct told_rows *told, next;
	struct json_text keys, rows, row;
	bool is_other;
};
void told_rows_begin(struct told_writing *w, struct told_rows *told);
/* Adds the row whose object is in w->row. */
void told_row(struct told_writing *w, const char *key);
/*
 * Writes member `name` of `to`: {"seen": matching items, "from": index of the first row, "keys": all rows' keys in order,
 * "rows": new or changed rows}. Nothing if nothing has changed.
 */
void told_rows_end(struct told_writing *w, const char *name, size_t seen, unsigned from,
		   struct json_text *to);
