/*
 * Lays out the screen: a snapshot, its history, a view and a size become cells. Pure.
 *
 *     allot top - this machine    2 tenants: 1 running, 1 queued             17:43:21
 *     GPU 0 NVIDIA H200  busy ######....     30%  mem ##......  2.5G/140G  ____..::
 *     TENANT    GPU STATE    COMPUTE  GOT% ASKED MEMORY    USED QUOTA HISTORY  LEASE WAIT
 *     a           0 running  ###...   29.9    30 #......   2.5G   40G __.::--=    68.2 0.85
 *     q quit  ? help  s sort  / filter  p pause  m memory  c cores  Enter details
 */
#pragma once

#include "cli/top/cells.h"
#include "cli/top/view.h"

struct layout {
	const struct snapshot *snapshot;
	const struct history *history; /* history_update() was last called with `snapshot` */
	const struct rows *rows;
	const struct view *view;
	const char *source; /* where the GPUs are: "this machine", "simulated h200" */
	const char *clock;
	const char *trouble; /* why the snapshot is out of date; NULL if it is current */
	bool is_page;        /* draw everything as one page (--once), without selection or keys */
};

/* Values that the caller stores in the view after drawing. */
struct layout_result {
	size_t first, page;
	bool has_details;
};

int layout_page_lines(const struct layout *layout);

void layout_draw(const struct layout *layout, struct cells *cells, struct layout_result *ret);

/* Parts of layout_draw(): the selected share's details, and the bottom lines. */
#define LAYOUT_DETAIL_LINES 9
void layout_draw_details(const struct layout *layout, struct cells *cells, int line, size_t share);
void layout_draw_foot(const struct layout *layout, struct cells *cells);
