/* The table of shares: a share is a tenant's part of one GPU. Chooses the columns that fit, and draws each column. No I/O. */
#pragma once

#include "cli/top/cells.h"
#include "cli/top/data/history.h"
#include "cli/top/sort_shares.h"

#define COLUMNS_MAX 24
#define COLUMNS_SHORT_MAX 12 /* bytes of a short number */

/* The width of each column in characters; 0 if the column is not shown. */
struct columns {
	int width[COLUMNS_MAX];
};

/* Chooses columns that fit into `width` and have a value in some row. Spare width goes to names, bars and histories. */
void columns_fit(const struct snapshot *snapshot, const struct rows *rows, int width,
		 struct columns *ret_columns);

void columns_draw_titles(struct cells *cells, int line, const struct columns *columns,
			 enum order_key sort);

void columns_draw_share(struct cells *cells, int line, const struct columns *columns,
			const struct snapshot *snapshot, const struct history *history,
			size_t share);

/* Writes "512M", "2.5G" or "140G": at most four characters below 1000 PiB. */
void columns_short_bytes(uint64_t bytes, char ret[COLUMNS_SHORT_MAX]);

/* Writes for example "29.9" or "100". */
void columns_short_pct(double pct, char ret[COLUMNS_SHORT_MAX]);

/* Writes for example "0.3s", "12s", "3m" or "5h". */
void columns_short_seconds(double seconds, char ret[COLUMNS_SHORT_MAX]);
