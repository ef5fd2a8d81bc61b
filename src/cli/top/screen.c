#include "cli/top/screen.h"

#include <errno.h>
#include <stdlib.h>

#include <curses.h>

#include "cli/top/keys.h"

#define ESCAPE 27
#define ESCAPE_WAIT_MS 25 /* a key's escape sequence arrives within this time */
#define MOST_IN_CELL 2

/* Nearly everybody can tell blue from orange. With 8 colours, the nearest ones are used. */
#define BLUE_256 39
#define ORANGE_256 208
#define GREY_256 244

enum pair { PAIR_NONE, PAIR_BLUE, PAIR_ORANGE, PAIR_GREY };

struct look_of {
	enum pair pair;
	attr_t with_color, without;
};

static const struct look_of looks[STYLE_COUNT] = {
	[STYLE_PLAIN] = { PAIR_NONE, A_NORMAL, A_NORMAL },
	[STYLE_DIM] = { PAIR_GREY, A_NORMAL, A_DIM },
	[STYLE_STRONG] = { PAIR_NONE, A_BOLD, A_BOLD },
	[STYLE_TITLE] = { PAIR_BLUE, A_NORMAL, A_UNDERLINE },
	[STYLE_GOT] = { PAIR_BLUE, A_NORMAL, A_NORMAL },
	[STYLE_BEYOND] = { PAIR_ORANGE, A_NORMAL, A_BOLD },
	[STYLE_ASKED] = { PAIR_GREY, A_NORMAL, A_DIM },
	[STYLE_WARNING] = { PAIR_ORANGE, A_BOLD, A_BOLD },
};

static SCREEN *screen;
static struct cells shown; /* the terminal's present contents; without cells if unknown */
static bool has_colors_here;

static void set_colors(void)
{
	bool is_rich;

	start_color();
	is_rich = COLORS >= 256;
	use_default_colors();
	init_pair(PAIR_BLUE, is_rich ? BLUE_256 : COLOR_CYAN, -1);
	init_pair(PAIR_ORANGE, is_rich ? ORANGE_256 : COLOR_YELLOW, -1);
	/* 8 colours include no grey: use the terminal's default text colour. */
	init_pair(PAIR_GREY, is_rich ? GREY_256 : -1, -1);
}

int screen_open(bool has_color, struct error *err)
{
	const char *term = getenv("TERM");

	/* newterm() instead of initscr(), which would exit if the terminal is unknown. */
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return error_set(
			err, EINVAL,
			"TERM='%.40s': unknown terminal type; allot top --once prints one page without one",
			term ? term : "");
	set_term(screen);
	has_colors_here = has_color && has_colors();
	if (has_colors_here)
		set_colors();
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_WAIT_MS);
	curs_set(0);
	return 0;
}

void screen_close(void)
{
	if (!screen)
		return;
	endwin();
	cells_free(&shown);
	delscreen(screen);
	screen = NULL;
}

void screen_size(int *ret_columns, int *ret_lines)
{
	getmaxyx(stdscr, *ret_lines, *ret_columns);
}

static void put(const struct cells *cells, int line, int column)
{
	const struct cell *cell =
		&cells->cell[(size_t)line * (size_t)cells->columns + (size_t)column];
	const struct look_of *style = &looks[cell->style];
	attr_t attributes = has_colors_here ? style->with_color : style->without;
	wchar_t text[MOST_IN_CELL] = { (wchar_t)cell->c, L'\0' };
	cchar_t c;

	if (!cell->c)
		return;
	if (cell->is_selected)
		attributes |= A_REVERSE;
	setcchar(&c, text, attributes, has_colors_here ? (short)style->pair : 0, NULL);
	mvadd_wch(line, column, &c);
}

/* Whether the terminal shows this cell already. Comparing here is faster than letting curses compare. */
static bool is_shown(const struct cells *cells, size_t i)
{
	const struct cell *a = &cells->cell[i], *b = shown.cell ? &shown.cell[i] : NULL;

	return b && a->c == b->c && a->style == b->style && a->is_selected == b->is_selected;
}

void screen_show(struct cells *cells)
{
	if (cells->columns != shown.columns || cells->lines != shown.lines)
		cells_free(&shown);
	for (int line = 0; line < cells->lines; line++)
		for (int column = 0; column < cells->columns; column++)
			if (!is_shown(cells, (size_t)line * (size_t)cells->columns + (size_t)column))
				put(cells, line, column);
	refresh();
	cells_free(&shown);
	shown = *cells;
	cells->cell = NULL;
}

static uint32_t named_key(wint_t key)
{
	switch (key) {
	case KEY_UP: return KEYS_UP;
	case KEY_DOWN: return KEYS_DOWN;
	case KEY_PPAGE: return KEYS_PAGE_UP;
	case KEY_NPAGE: return KEYS_PAGE_DOWN;
	case KEY_HOME: return KEYS_HOME;
	case KEY_END: return KEYS_END;
	case KEY_ENTER: return KEYS_ENTER;
	case KEY_BACKSPACE: return KEYS_BACKSPACE;
	default: return KEYS_OTHER;
	}
}

bool screen_key(uint32_t *ret_key)
{
	wint_t key;
	int r = get_wch(&key);

	if (r == ERR)
		return false;
	/* A resize clears the terminal, even if its size is the same afterwards. So all cells must be drawn again. */
	if (r == KEY_CODE_YES && key == KEY_RESIZE)
		cells_free(&shown);
	if (r == KEY_CODE_YES)
		*ret_key = named_key(key);
	else if (key == '\r' || key == '\n')
		*ret_key = KEYS_ENTER;
	else if (key == ESCAPE)
		*ret_key = KEYS_ESCAPE;
	else if (key == '\b' || key == 0x7f)
		*ret_key = KEYS_BACKSPACE;
	else
		*ret_key = (uint32_t)key;
	return true;
}
