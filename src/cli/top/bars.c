#include "cli/top/bars.h"

#define EIGHTHS 8

static const uint32_t from_left[EIGHTHS + 1] = { ' ',    0x258f, 0x258e, 0x258d, 0x258c,
						 0x258b, 0x258a, 0x2589, 0x2588 };
static const uint32_t from_below[EIGHTHS + 1] = { ' ',    0x2581, 0x2582, 0x2583, 0x2584,
						  0x2585, 0x2586, 0x2587, 0x2588 };
static const uint32_t from_below_ascii[EIGHTHS + 1] = { ' ', '_', '.', ':', '-', '=', '+', '*', '#' };

/* Characters for UTF-8 and for ASCII. */
static const uint32_t full[2] = { 0x2588, '#' };
static const uint32_t beyond[2] = { 0x2592, '+' };
static const uint32_t away[2] = { 0x259a, '~' };
static const uint32_t asked[2] = { 0x2591, '.' };
static const uint32_t limit[2] = { 0x2502, '|' };

static double clamp(double value)
{
	return value > 0 ? value < 1 ? value : 1 : 0;
}

static int filled(double part, int width, int i)
{
	int eighths = (int)(part * width * EIGHTHS + 0.5) - i * EIGHTHS;

	return eighths < 0 ? 0 : eighths > EIGHTHS ? EIGHTHS : eighths;
}

void bar_draw(struct cells *cells, int line, int column, int width, const struct bar *bar)
{
	double got = clamp(bar->got), wanted = bar->has_asked ? clamp(bar->asked) : 0;
	double here = clamp(got - bar->away);
	int mark = bar->has_limit && bar->limit < 1 ? (int)(clamp(bar->limit) * width) : -1;
	bool is_ascii = cells->is_ascii;

	for (int i = 0; i < width; i++) {
		double middle = (i + 0.5) / width;
		int eighths = filled(got, width, i);

		if (eighths >= EIGHTHS / 2 && middle > here && bar->away > 0)
			cells_put_char(cells, line, column + i, STYLE_BEYOND, away[is_ascii]);
		else if (eighths >= EIGHTHS / 2 && bar->has_asked && middle > wanted)
			cells_put_char(cells, line, column + i, STYLE_BEYOND, beyond[is_ascii]);
		else if (is_ascii ? eighths >= EIGHTHS / 2 : eighths == EIGHTHS)
			cells_put_char(cells, line, column + i, STYLE_GOT, full[is_ascii]);
		else if (!is_ascii && eighths > 0 && (!bar->has_asked || middle <= wanted))
			cells_put_char(cells, line, column + i, STYLE_GOT, from_left[eighths]);
		else if (bar->has_asked && middle <= wanted)
			cells_put_char(cells, line, column + i, STYLE_ASKED, asked[is_ascii]);
		else if (i == mark)
			cells_put_char(cells, line, column + i, STYLE_DIM, limit[is_ascii]);
	}
}

void spark_draw(struct cells *cells, int line, int column, int width, int lines,
		const float *values, size_t count)
{
	const uint32_t *blocks = cells->is_ascii ? from_below_ascii : from_below;

	for (int i = 0; i < width && (size_t)i < count; i++) {
		double value = clamp(values[count - 1 - (size_t)i]);
		int at = column + width - 1 - i;

		for (int k = 0; k < lines; k++) {
			int eighths = filled(value, lines, k);

			/* Draw a line even for a value near 0, so that the sample is visible. */
			if (k == 0 && eighths == 0)
				cells_put_char(cells, line + lines - 1, at, STYLE_ASKED, blocks[1]);
			else if (eighths)
				cells_put_char(cells, line + lines - 1 - k, at, STYLE_GOT,
					       blocks[eighths]);
		}
	}
}
