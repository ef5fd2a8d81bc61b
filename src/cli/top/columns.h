/* The columns of shares: which there is room for, and what each shows. Pure. */
#pragma once

#include "cli/top/cells.h"
#include "cli/top/data/history.h"
#include "cli/top/order.h"

#define COLUMNS_MAX 24
#define COLUMNS_SHORT_MAX 12 /* bytes of a short number */

/* The width of each; 0: not shown. */
struct columns {
	int width[COLUMNS_MAX];
};

/*
 * Those that fit into `width`, of those that some row has something to show in. What is over goes to names, bars and
 * histories.
 */
void columns_fit(const struct snapshot *snapshot, const struct rows *rows, int width,
		 struct columns *ret_columns);

/* The titles; the one that is sorted by stands out. */
void columns_draw_titles(struct cells *cells, int line, const struct columns *columns,
			 enum order_key sort);

/* The i-th share of the snapshot. */
void columns_draw_share(struct cells *cells, int line, const struct columns *columns,
			const struct snapshot *snapshot, const struct history *history,
			size_t share);

/* "512M", "2.5G", "140G": four characters, or five from 1000 on. */
void columns_short_bytes(uint64_t bytes, char ret[COLUMNS_SHORT_MAX]);

/* "29.9", "100". */
void columns_short_pct(double pct, char ret[COLUMNS_SHORT_MAX]);

/* "0.3s", "12s", "3m", "5h". */
void columns_short_seconds(double seconds, char ret[COLUMNS_SHORT_MAX]);
