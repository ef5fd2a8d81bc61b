/* Chooses the shares (struct top_share) that allot top shows, and sorts them. Pure. */
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

/* `name` is for --sort, `key` selects the order, and `what` is for example "by name". */
struct order_row {
	const char *name;
	char key;
	const char *what;
};

extern const struct order_row order_rows[ORDER_COUNT];

/* Returns the order with this name, or ORDER_COUNT if there is none. `name` must not be NULL. */
enum order_key order_find(const char *name);

/* The shown shares, as indexes into the snapshot's shares, in the order of the rows. */
struct rows {
	size_t count;
	size_t *share;
};

/*
 * Sorts names and states from A, GPUs from 0, other values from the largest; equal values by name and GPU. is_reversed reverses
 * the whole order. Keeps a share if its tenant's name, state or container contains `filter`, or if `filter` names its GPU, such
 * as "gpu1". Upper and lower case are the same; "" keeps all. Returns 0 or -ENOMEM. Free the rows with order_free().
 */
int order_make(const struct snapshot *snapshot, const struct history *history, enum order_key key,
	       bool is_reversed, const char *filter, struct rows *ret_rows);
void order_free(struct rows *rows);

/* Returns the row of the share with this tenant id and GPU, or rows->count if there is none. */
size_t order_position(const struct rows *rows, const struct snapshot *snapshot, const char *id,
		      int card);
