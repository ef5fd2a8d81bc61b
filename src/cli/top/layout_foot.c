#include <stdio.h>
#include <string.h>

#include "cli/top/layout.h"
#include "cli/top/utf8.h"

static void clear(struct cells *cells, int line)
{
	for (int column = 0; column < cells->columns; column++) {
		cells_put_char(cells, line, column, STYLE_PLAIN, ' ');
		if (line >= 0 && line < cells->lines)
			cells->cell[(size_t)line * (size_t)cells->columns + (size_t)column]
				.is_selected = false;
	}
}

static void put(struct cells *cells, int line, enum style style, const char *text)
{
	clear(cells, line);
	cells_put(cells, line, 0, cells->columns, style, text);
}

#define MESSAGE_LINES 4 /* most lines of a message; the rest of a longer one is cut */

static void put_message(const struct view *view, struct cells *cells, int line)
{
	enum style style = view->is_error ? STYLE_WARNING : STYLE_STRONG;
	int lines = cells_put_wrapped(NULL, 0, cells->columns, MESSAGE_LINES, style, view->message);

	for (int i = 0; i < lines; i++)
		clear(cells, line - i);
	cells_put_wrapped(cells, line - lines + 1, cells->columns, MESSAGE_LINES, style,
			  view->message);
}

static void put_input(struct cells *cells, int line, const char *label, const char *text)
{
	int column, room;

	clear(cells, line);
	column = cells_put(cells, line, 0, cells->columns, STYLE_STRONG, label);
	room = cells->columns - column - 1;
	while (*text && utf8_columns(text) > room)
		utf8_next(&text);
	column += cells_put(cells, line, column, room, STYLE_PLAIN, text);
	cells_put_char(cells, line, column, STYLE_STRONG, '_');
}

static void put_keys(const struct layout *layout, struct cells *cells, int line)
{
	char text[160];

	if (*layout->view->filter)
		snprintf(text, sizeof(text), "filter: %s, %zu of %zu rows (Esc: show all)",
			 layout->view->filter, layout->rows->count, layout->snapshot->share_count);
	else
		snprintf(text, sizeof(text),
			 "q quit  ? help  s sort  / filter  p pause  m memory  c cores  Enter "
			 "details");
	put(cells, line, STYLE_TITLE, text);
}

void layout_draw_foot(const struct layout *layout, struct cells *cells)
{
	const struct view *view = layout->view;
	int line = cells->lines - 1;
	char text[CHANGE_TEXT_MAX];

	switch (view->mode) {
	case VIEW_FILTER: put_input(cells, line, "show tenants with: ", view->filter); break;
	case VIEW_VALUE:
		change_ask(&view->change, text);
		if (*view->message)
			put_message(view, cells, line - 1);
		else
			put(cells, line - 1, STYLE_STRONG, text);
		put_input(cells, line, "new value: ", view->input);
		break;
	case VIEW_CONFIRM:
		change_describe(&view->change, text);
		put(cells, line - 1, STYLE_WARNING, text);
		put(cells, line, STYLE_STRONG, "y: do it   any other key: cancel");
		break;
	default:
		if (*view->message)
			put_message(view, cells, line);
		else
			put_keys(layout, cells, line);
	}
}
