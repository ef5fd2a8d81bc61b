/* Draws bars and histories into cells: with block characters on a UTF-8 terminal, else with '#'. No I/O. */
#pragma once

#include <stddef.h>

#include "cli/top/cells.h"

/*
 * A bar: the requested and the received share of a GPU, as parts of the bar's width (0 to 1).
 *
 *     ######++++      |        '#' received, as requested; '+' received beyond the request; '|' limit
 *     ###...          |        '.' requested but not received
 *     ####~~                   '#' used memory on the GPU, '~' used memory moved off the GPU
 */
struct bar {
	double got;
	bool has_asked;
	double asked;
	bool has_limit;
	double limit;
	double away; /* part of `got` that is not on the GPU */
};

void bar_draw(struct cells *cells, int line, int column, int width, const struct bar *bar);

/* Draws the last `width` of `count` values (0 to 1), the newest at the right. `line` is the top line; `lines` is the height. */
void spark_draw(struct cells *cells, int line, int column, int width, int lines,
		const float *values, size_t count);
