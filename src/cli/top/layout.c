#include "cli/top/layout.h"

#include <stdio.h>
#include <string.h>

#include "cli/top/bars.h"
#include "cli/top/columns.h"
#include "cli/top/keys.h"
#include "cli/top/utf8.h"

#define LEAST_COLUMNS 24
#define LEAST_LINES 4
#define LINES_FOR_CARDS 10 /* a smaller screen shows only tenants */
#define LINES_FOR_DETAILS \
	30           /* from this height on, the selected tenant's details are shown by default */
#define ROWS_LEAST 5 /* rows that stay visible above the details */
#define ROWS_BESIDE_GRAPHS 10
#define GRAPH_LINES 2 /* lines of a GPU's history, if the histories of all GPUs fit */

static void count_states(const struct snapshot *snapshot, char *text, size_t size)
{
	static const char *const states[] = { "running", "waiting", "idle",    "starting",
					      "queued",  "leaving", "swapped", "returning",
					      "paused",  "ending",  NULL };
	size_t used = strlen(text), told = 0;

	for (const char *const *state = states; *state && used < size; state++) {
		size_t count = 0;

		for (size_t i = 0; i < snapshot->tenant_count; i++)
			count += strcmp(snapshot->tenants[i].state, *state) == 0;
		if (count)
			used += (size_t)snprintf(text + used, size - used, "%s%zu %s",
						 told++ ? ", " : ": ", count, *state);
	}
}

static void draw_head(const struct layout *layout, struct cells *cells)
{
	const struct snapshot *snapshot = layout->snapshot;
	size_t count = snapshot->tenant_count;
	int clock = (int)strlen(layout->clock), column;
	char text[256];

	column = cells_put(cells, 0, 0, cells->columns, STYLE_STRONG, "allot top");
	snprintf(text, sizeof(text), " - %s  ", layout->source);
	column += cells_put(cells, 0, column, cells->columns - column, STYLE_PLAIN, text);
	snprintf(text, sizeof(text), "%zu tenant%s", count, count == 1 ? "" : "s");
	count_states(snapshot, text, sizeof(text));
	cells_put(cells, 0, column, cells->columns - column - clock - 1, STYLE_PLAIN, text);
	if (column + clock < cells->columns)
		cells_put_right(cells, 0, cells->columns - clock, clock, STYLE_DIM, layout->clock);
}

/* Draws why the data is out of date, and which containers are frozen. Returns the number of lines. */
static int draw_notices(const struct layout *layout, struct cells *cells, int line)
{
	const struct snapshot *snapshot = layout->snapshot;
	int column = 0, first = line;
	char text[SNAPSHOT_TEXT_MAX + 64];

	if (layout->trouble) {
		snprintf(text, sizeof(text), "! %.200s; trying again", layout->trouble);
		cells_put(cells, line++, 0, cells->columns, STYLE_WARNING, text);
	}
	for (size_t i = 0; i < snapshot->frozen_count && column < cells->columns; i++) {
		const struct top_frozen *frozen = &snapshot->frozen[i];
		char since[COLUMNS_SHORT_MAX];

		columns_short_seconds(frozen->frozen_s, since);
		snprintf(text, sizeof(text), "%s%s %s %s", i ? ", " : "! frozen: ", frozen->name,
			 frozen->state, since);
		column += cells_put(cells, line, column, cells->columns - column, STYLE_WARNING,
				    text);
	}
	return line + (column > 0) - first;
}

static void describe_memory(const struct top_card *card, char *text, size_t size)
{
	char used[COLUMNS_SHORT_MAX] = "?", all[COLUMNS_SHORT_MAX];

	if (card->has_used)
		columns_short_bytes(card->used_bytes, used);
	columns_short_bytes(card->memory_bytes, all);
	snprintf(text, size, "%s/%s", used, all);
}

struct card_widths {
	int name, bar, memory, history; /* in columns; `memory` is for text such as "2.5G/140G" */
};

/* All GPUs' lines have the same widths. The name gets at most a quarter of the line; two bars and a history share the rest. */
static struct card_widths fit_cards(const struct snapshot *snapshot, int columns)
{
	struct card_widths widths = { 0 };
	int fixed = 2 + 6 + 5 + 2 + 5, over;
	char text[2 * COLUMNS_SHORT_MAX];

	for (size_t i = 0; i < snapshot->card_count; i++) {
		int name = utf8_columns(snapshot->cards[i].name) + 7;
		int memory;

		describe_memory(&snapshot->cards[i], text, sizeof(text));
		memory = (int)strlen(text) + 1;
		widths.name = name > widths.name ? name : widths.name;
		widths.memory = memory > widths.memory ? memory : widths.memory;
	}
	if (widths.name > columns / 4)
		widths.name = columns / 4;
	over = columns - widths.name - widths.memory - fixed;
	widths.bar = over / 3 > 40 ? 40 : over / 3;
	widths.history = over - 2 * widths.bar;
	if (widths.history > 60)
		widths.history = 60;
	return widths;
}

static void draw_card(const struct layout *layout, struct cells *cells, int line, size_t i,
		      const struct card_widths *widths)
{
	const struct top_card *card = &layout->snapshot->cards[i];
	const struct history_series *series = history_card(layout->history, i);
	double memory = card->memory_bytes ? (double)card->memory_bytes : 1;
	struct bar busy = { card->busy_pct / 100, card->promised_cores_pct > 0,
			    card->promised_cores_pct / 100, .away = 0 };
	struct bar held = { (double)card->used_bytes / memory, true,
			    (double)card->promised_bytes / memory, .away = 0 };
	char text[SNAPSHOT_NAME_MAX + 16], pct[COLUMNS_SHORT_MAX] = "?";
	int column = widths->name + 2;

	snprintf(text, sizeof(text), "GPU %d %s", card->index, card->name);
	cells_put(cells, line, 0, widths->name, STYLE_STRONG, text);
	cells_put(cells, line, column, 6, STYLE_DIM, "busy ");
	bar_draw(cells, line, column + 5, widths->bar, &busy);
	column += 6 + widths->bar;
	if (card->has_busy)
		snprintf(pct, sizeof(pct), "%.0f%%", card->busy_pct);
	cells_put_right(cells, line, column - 1, 5, STYLE_PLAIN, pct);
	column += 6;
	cells_put(cells, line, column, 5, STYLE_DIM, "mem ");
	bar_draw(cells, line, column + 4, widths->bar, &held);
	column += 4 + widths->bar;
	describe_memory(card, text, sizeof(text));
	cells_put_right(cells, line, column, widths->memory, STYLE_PLAIN, text);
	column += widths->memory + 1;
	spark_draw(cells, line, column, widths->history < 0 ? 0 : widths->history, 1, series->got,
		   series->count);
}

static int lines_of_card(const struct top_card *card, int graph)
{
	return 1 + (*card->trouble != 0) + graph;
}

static int lines_of_cards(const struct snapshot *snapshot, int graph)
{
	int lines = 0;

	for (size_t i = 0; i < snapshot->card_count; i++)
		lines += lines_of_card(&snapshot->cards[i], graph);
	return lines;
}

/* If not all GPUs fit into `most` lines, the last line says how many more there are. Returns the number of lines. */
static int draw_cards(const struct layout *layout, struct cells *cells, int line, int most,
		      int graph)
{
	const struct snapshot *snapshot = layout->snapshot;
	struct card_widths widths = fit_cards(snapshot, cells->columns);
	bool is_short = lines_of_cards(snapshot, graph) > most;
	int first = line;
	char text[SNAPSHOT_TEXT_MAX + 8];

	for (size_t i = 0; i < snapshot->card_count; i++) {
		const struct top_card *card = &snapshot->cards[i];
		const struct history_series *series = history_card(layout->history, i);

		if (line - first + lines_of_card(card, graph) > most - is_short) {
			snprintf(text, sizeof(text),
				 "and %zu more GPUs; enlarge the terminal to see them",
				 snapshot->card_count - i);
			cells_put(cells, line++, 0, cells->columns, STYLE_DIM, text);
			break;
		}
		draw_card(layout, cells, line++, i, &widths);
		if (*card->trouble) {
			snprintf(text, sizeof(text), "    ! %s", card->trouble);
			cells_put(cells, line++, 0, cells->columns, STYLE_WARNING, text);
		}
		if (graph)
			spark_draw(cells, line, 0, cells->columns, graph, series->got,
				   series->count);
		line += graph;
	}
	return line - first;
}

/* Returns `before`, the first row shown so far, unless that would hide the selected row or leave lines empty. */
static size_t first_row(size_t before, size_t selected, size_t count, size_t room)
{
	if (count <= room || !room)
		return 0;
	if (selected < before)
		before = selected;
	if (selected >= before + room)
		before = selected - room + 1;
	return before + room > count ? count - room : before;
}

static size_t selected_row(const struct layout *layout)
{
	const struct view *view = layout->view;
	size_t at = order_position(layout->rows, layout->snapshot, view->selected_id,
				   view->selected_card);

	return at < layout->rows->count ? at : 0;
}

static void draw_rows(const struct layout *layout, struct cells *cells, int line, int room,
		      struct layout_result *ret)
{
	const struct rows *rows = layout->rows;
	size_t selected = selected_row(layout);
	struct columns columns;

	if (room <= 0)
		return;
	if (!rows->count) {
		cells_put(cells, line, 0, cells->columns, STYLE_DIM,
			  *layout->view->filter ? "no tenant passes the filter" : "no tenants");
		return;
	}
	columns_fit(layout->snapshot, rows, cells->columns, &columns);
	columns_draw_titles(cells, line++, &columns, layout->view->sort);
	ret->page = (size_t)(room - 1);
	ret->first = first_row(layout->view->first, selected, rows->count, ret->page);
	for (size_t i = 0; i < ret->page && ret->first + i < rows->count; i++) {
		columns_draw_share(cells, line + (int)i, &columns, layout->snapshot,
				   layout->history, rows->share[ret->first + i]);
		if (!layout->is_page && ret->first + i == selected)
			cells_select(cells, line + (int)i);
	}
}

static void draw_help(struct cells *cells)
{
	const char *key, *what;
	int line = 0;

	cells_put(cells, line, 0, cells->columns, STYLE_TITLE, "Keys (any key goes back)");
	line += cells->lines > 16 ? 2 : 1;
	for (size_t i = 0; keys_help(i, &key, &what); i++, line++) {
		cells_put(cells, line, 2, 16, STYLE_STRONG, key);
		cells_put(cells, line, 20, cells->columns - 20, STYLE_PLAIN, what);
	}
	line += cells->lines > line + 8;
	cells_put(cells, line++, 2, cells->columns - 2, STYLE_PLAIN,
		  "In a bar: got within the request, got beyond it, requested but not used:");
	bar_draw(cells, line, 2, 10, &(struct bar){ .got = 0.9, .has_asked = true, .asked = 0.5 });
	bar_draw(cells, line, 14, 10, &(struct bar){ .got = 0.4, .has_asked = true, .asked = 1 });
	cells_put(cells, line++, 26, cells->columns - 26, STYLE_PLAIN,
		  "in a bar of memory also what was moved off the GPU:");
	bar_draw(cells, line, 2, 10,
		 &(struct bar){ .got = 0.8, .has_asked = true, .asked = 1, .away = 0.4 });
}

static bool wants_details(const struct layout *layout, int lines, int left)
{
	enum view_details details = layout->view->details;

	if (layout->is_page || !layout->rows->count || details == VIEW_DETAILS_OFF)
		return false;
	if (details == VIEW_DETAILS_BY_SIZE && lines < LINES_FOR_DETAILS)
		return false;
	return left >= LAYOUT_DETAIL_LINES + ROWS_LEAST;
}

/* Returns the height of each GPU's history: 0 on a page (--once), or if rows and details would lack room. */
static int graph_lines(const struct layout *layout, int lines)
{
	const struct snapshot *snapshot = layout->snapshot;
	int others = 1 + 2 + 1 + ROWS_BESIDE_GRAPHS + LAYOUT_DETAIL_LINES + 2;

	if (layout->is_page || lines_of_cards(snapshot, GRAPH_LINES) + others > lines)
		return 0;
	return GRAPH_LINES;
}

int layout_page_lines(const struct layout *layout)
{
	int rows = layout->rows->count ? (int)layout->rows->count + 1 : 1;
	int notices = (layout->trouble != NULL) + (layout->snapshot->frozen_count > 0);
	int cards = lines_of_cards(layout->snapshot, 0);

	return 1 + notices + cards + 1 + rows;
}

void layout_draw(const struct layout *layout, struct cells *cells, struct layout_result *ret)
{
	int line = 1, end = cells->lines - !layout->is_page;

	*ret = (struct layout_result){ .page = 1 };
	if (!layout->is_page && (cells->columns < LEAST_COLUMNS || cells->lines < LEAST_LINES)) {
		cells_put(cells, 0, 0, cells->columns, STYLE_PLAIN, "too small");
		return;
	}
	if (layout->view->mode == VIEW_HELP) {
		draw_help(cells);
		return;
	}
	draw_head(layout, cells);
	line += draw_notices(layout, cells, line);
	if (layout->is_page || cells->lines >= LINES_FOR_CARDS)
		line += 1 + draw_cards(layout, cells, line,
				       layout->is_page ? cells->lines : cells->lines / 3 + 1,
				       graph_lines(layout, cells->lines));
	ret->has_details = wants_details(layout, cells->lines, end - line);
	if (ret->has_details) {
		end -= LAYOUT_DETAIL_LINES;
		layout_draw_details(layout, cells, end, layout->rows->share[selected_row(layout)]);
	}
	draw_rows(layout, cells, line, end - line, ret);
	if (!layout->is_page)
		layout_draw_foot(layout, cells);
}
