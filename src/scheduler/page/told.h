/*
 * What a reader of the page has been told, to tell it of what is otherwise since: rows are known by a key, and by a digest of
 * their JSON. Pure, but for memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "http/dashboard/json_text.h"
#include "scheduler/page/view.h"

struct told_rows {
	uint64_t head; /* of all but the rows */
	unsigned count;
	struct {
		uint64_t key, said;
	} row[VIEW_ROWS];
};

/* All zero: nothing yet. */
struct told {
	bool has_begun;
	uint64_t cluster, open;
	struct told_rows nodes, pods;
};

/* Member `key` of `to`: the object in `part`, where it is another than was told. `part` is emptied. True: it was written. */
bool told_part(uint64_t *told, const char *key, struct json_text *part, struct json_text *to);

/* Rows of a page, one after the other: those that are as they were told are left out, their keys are not. */
struct told_writing {
	struct told_rows *told, next;
	struct json_text keys, rows, row;
	bool is_other;
};
void told_rows_begin(struct told_writing *w, struct told_rows *told);
/* The row's object goes to w->row, before this. */
void told_row(struct told_writing *w, const char *key);
/*
 * Member `name` of `to`: {"seen": so many there are, "from": the first, "keys": of the page, in order, "rows": those that are new
 * or otherwise}; nothing where it was told all of it.
 */
void told_rows_end(struct told_writing *w, const char *name, size_t seen, unsigned from,
		   struct json_text *to);
