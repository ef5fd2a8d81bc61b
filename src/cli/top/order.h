/* Which shares are shown, and in which order. Pure. */
#pragma once

#include "cli/top/data/history.h"
#include "cli/top/data/snapshot.h"

enum order_key {
	ORDER_NAME,
	ORDER_CARD,
	ORDER_STATE,
	ORDER_COMPUTE,
	ORDER_MEMORY,
	ORDER_LEASES,
	ORDER_WAIT,
	ORDER_COUNT,
};

/* As it is called on the command line and shown, and the key that chooses it. */
struct order_row {
	const char *name;
	char key;
	const char *what;
};

extern const struct order_row order_rows[ORDER_COUNT];

/* The key of that name or, NULL, none: ORDER_COUNT. */
enum order_key order_find(const char *name);

/* Indexes into the snapshot's shares. */
struct rows {
	size_t count;
	size_t *share;
};

/*
 * Names and states from A, cards from 0, all else the most first; `is_reversed`: the other way. Those that are equal
 * stand by name and card. A filter leaves those whose name, state or container has it, in whatever case, or whose card
 * it is as "gpu1"; "" leaves all. -ENOMEM. The caller frees the rows.
 */
int order_make(const struct snapshot *snapshot, const struct history *history, enum order_key key,
	       bool is_reversed, const char *filter, struct rows *ret_rows);
void order_free(struct rows *rows);

/* The row of that share, which a tenant's id and a card name; rows->count: it is not there. */
size_t order_position(const struct rows *rows, const struct snapshot *snapshot, const char *id,
		      int card);
