/* Draws bars and histories into cells: with block characters on a UTF-8 terminal, else with '#'. Pure. */
#pragma once

#include <stddef.h>

#include "cli/top/cells.h"

/*
 * Requested versus received share, as fractions of the bar's width (1 is the full width).
 * The first example has 0.3 requested, 0.5 received and a limit of 0.8:
 *
 *     ######++++      |        '#' received up to the request, '+' received beyond the request, '|' limit
 *     ###...          |        '.' requested but not received
 *     ####~~                   '#' used memory on the GPU, '~' used memory that was moved off the GPU
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

/*
 * Draws a history of values from 0 to 1, the newest at the right. The last `width` of `count` values are
 * shown. The drawing is `lines` lines high, and `line` is its top line.
 */
void spark_draw(struct cells *cells, int line, int column, int width, int lines,
		const float *values, size_t count);
