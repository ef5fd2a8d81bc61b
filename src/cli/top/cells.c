#include "cli/top/cells.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/top/utf8.h"

int cells_make(int columns, int lines, bool is_ascii, struct cells *ret_cells)
{
	struct cells cells = { .columns = columns > 0 ? columns : 1,
			       .lines = lines > 0 ? lines : 1,
			       .is_ascii = is_ascii };
	size_t count = (size_t)cells.columns * (size_t)cells.lines;

	cells.cell = calloc(count, sizeof(*cells.cell));
	if (!cells.cell)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		cells.cell[i].c = ' ';
	*ret_cells = cells;
	return 0;
}

void cells_free(struct cells *cells)
{
	free(cells->cell);
	cells->cell = NULL;
}

static struct cell *at(const struct cells *cells, int line, int column)
{
	if (line < 0 || line >= cells->lines || column < 0 || column >= cells->columns)
		return NULL;
	return &cells->cell[(size_t)line * (size_t)cells->columns + (size_t)column];
}

void cells_put_char(struct cells *cells, int line, int column, enum style style, uint32_t c)
{
	struct cell *cell = at(cells, line, column);
	struct cell *right = at(cells, line, column + 1);
	int width;

	if (!cell)
		return;
	if (cells->is_ascii && c > '~')
		c = '?';
	width = utf8_width(c);
	if (width == 2 && !right)
		c = ' ';
	cell->c = c;
	cell->style = style;
	if (width == 2 && right) {
		right->c = 0;
		right->style = style;
	}
}

int cells_put(struct cells *cells, int line, int column, int width, enum style style,
	      const char *text)
{
	bool is_cut = utf8_columns(text) > width;
	int used = 0;
	uint32_t c;

	if (width <= 0)
		return 0;
	while ((c = utf8_next(&text))) {
		int own = utf8_width(c);

		if (own == 0)
			continue;
		if (used + own > width - is_cut)
			break;
		cells_put_char(cells, line, column + used, style, c);
		used += own;
	}
	if (is_cut)
		cells_put_char(cells, line, column + used++, style, '~');
	return used;
}

void cells_put_right(struct cells *cells, int line, int column, int width, enum style style,
		     const char *text)
{
	int columns = utf8_columns(text);
	int blanks = columns < width ? width - columns : 0;

	cells_put(cells, line, column + blanks, width - blanks, style, text);
}

void cells_select(struct cells *cells, int line)
{
	for (int column = 0; column < cells->columns; column++) {
		struct cell *cell = at(cells, line, column);

		if (cell)
			cell->is_selected = true;
	}
}

void cells_write_line(const struct cells *cells, int line, FILE *out)
{
	int end = cells->columns;

	while (end > 0 && at(cells, line, end - 1) && at(cells, line, end - 1)->c == ' ')
		end--;
	for (int column = 0; column < end; column++) {
		const struct cell *cell = at(cells, line, column);
		char bytes[UTF8_MAX];

		if (cell && cell->c)
			fwrite(bytes, 1, utf8_encode(cell->c, bytes), out);
	}
}
