/*
 * Remembers what was sent to a reader of the web page, so that the next event has only changes. A row is identified by its key
 * and compared by a digest of its JSON. No I/O.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "http/dashboard/json_text.h"
#include "scheduler/page/view.h"

struct sent_rows {
	uint64_t head; /* digest of the list's keys, `seen` and `from` (delta_rows_end()) */
	unsigned count;
	struct {
		uint64_t key, digest; /* digests of the row's key and object */
	} row[VIEW_ROWS];
};

/* A zeroed struct means that nothing was sent yet. */
struct sent_state {
	bool has_begun;
	uint64_t cluster, open; /* digests of what delta_part() wrote */
	struct sent_rows nodes, pods;
};

/*
 * Writes the object in `part` as member `key` of `to`, unless the object that was sent last is equal (*sent is its digest).
 * Sets *sent and empties `part`. Returns whether the object was written.
 */
bool delta_part(uint64_t *sent, const char *key, struct json_text *part, struct json_text *to);

/* Writes a list of rows. For a row that has not changed since it was sent, only its key is written. */
struct delta_writer {
	struct sent_rows *sent, next;
	struct json_text keys, rows, row;
	bool is_other;
};
void delta_rows_begin(struct delta_writer *w, struct sent_rows *sent);
/* Adds the row whose object is in w->row. */
void delta_row(struct delta_writer *w, const char *key);
/*
 * Writes member `name` of `to`: {"seen": number of items that pass the reader's filters, "from": index of the first row among
 * these items, "keys": all rows' keys in order, "rows": new or changed rows}. Writes nothing if nothing has changed.
 */
void delta_rows_end(struct delta_writer *w, const char *name, size_t seen, unsigned from,
		    struct json_text *to);
