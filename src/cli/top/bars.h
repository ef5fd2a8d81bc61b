/* Bars and histories, drawn into cells: blocks where there is UTF-8, else '#'. Pure. */
#pragma once

#include <stddef.h>

#include "cli/top/cells.h"

/*
 * Asked against got, in parts of the bar's width (1: all of it), as with 0.3 asked for, 0.5 got and a limit of 0.8:
 *
 *     ######++++      |        got of what was asked for, got beyond, limit
 *     ###...          |        got less than was asked for
 *     ####~~                   used, the last part of it not on the card
 */
struct bar {
	double got;
	bool has_asked;
	double asked;
	bool has_limit;
	double limit;
	double away; /* of `got`, what is not on the card */
};

void bar_draw(struct cells *cells, int line, int column, int width, const struct bar *bar);

/*
 * A history, the newest value (0 to 1) at the right: `count` values, of which the last `width` are
 * shown, over `lines` lines, of which `line` is the topmost.
 */
void spark_draw(struct cells *cells, int line, int column, int width, int lines,
		const float *values, size_t count);
