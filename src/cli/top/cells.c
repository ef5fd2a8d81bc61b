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

static void put_columns(struct cells *cells, int line, int columns, enum style style,
			const char *text)
{
	for (int column = 0; column < columns;) {
		uint32_t c = utf8_next(&text);

		cells_put_char(cells, line, column, style, c);
		column += utf8_width(c);
	}
}

/* Returns how many columns of the text fit on a line. *ret_next is where the next line begins; NULL at the end. */
static int break_line(const char *text, int columns, const char **ret_next)
{
	const char *space = NULL, *next = text;
	int used = 0, at_space = 0;
	uint32_t c;

	for (const char *here = text; (c = utf8_next(&next)); here = next) {
		if (c == ' ') {
			space = here;
			at_space = used;
		}
		if (used + utf8_width(c) > columns) {
			/* Skip a character that is wider than the line. */
			*ret_next = space ? space + 1 : here == text ? next : here;
			return space ? at_space : used;
		}
		used += utf8_width(c);
	}
	*ret_next = NULL;
	return used;
}

int cells_put_wrapped(struct cells *cells, int line, int columns, int most, enum style style,
		      const char *text)
{
	int lines = 0;

	while (text && columns > 0 && lines < most) {
		const char *next;
		int used = break_line(text, columns, &next);

		for (int i = 0; cells && i < cells->columns; i++)
			cells_put_char(cells, line + lines, i, STYLE_PLAIN, ' ');
		if (cells && next && lines + 1 == most)
			cells_put(cells, line + lines, 0, columns, style, text);
		else if (cells)
			put_columns(cells, line + lines, used, style, text);
		lines++;
		text = next;
	}
	return lines;
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

		if (cell && cell->style != STYLE_GOT && cell->style != STYLE_BEYOND &&
		    cell->style != STYLE_ASKED)
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
