/*
 * What a terminal shows, as data: a grid of characters, each with a style. The layout fills it; the screen puts it
 * on a terminal, --once and the tests write it as text. Lines and columns count from 0; what lies outside is
 * left out, so that no size is too small. Thread safety: one caller at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What a cell means; the screen knows what that looks like. None is told by its colour alone. */
enum style {
	STYLE_PLAIN,
	STYLE_DIM,
	STYLE_STRONG,
	STYLE_TITLE,   /* of columns, and the lines at top and bottom */
	STYLE_GOT,     /* of a bar: used, of what was asked for */
	STYLE_BEYOND,  /* used beyond that, or not on the card */
	STYLE_ASKED,   /* asked for and not used */
	STYLE_WARNING, /* what somebody should look at */
	STYLE_COUNT,
};

struct cell {
	uint32_t c; /* 0: the right half of a wide character */
	enum style style;
	bool is_selected;
};

struct cells {
	int columns, lines;
	bool is_ascii; /* other characters become '?' */
	struct cell *cell;
};

/* A grid of blanks. -ENOMEM. The caller frees it; sizes below 1 count as 1. */
int cells_make(int columns, int lines, bool is_ascii, struct cells *ret_cells);
void cells_free(struct cells *cells);

void cells_put_char(struct cells *cells, int line, int column, enum style style, uint32_t c);

/*
 * Puts text into `width` columns; one that is longer is cut, and ends with '~'. Returns the columns that it
 * took.
 */
int cells_put(struct cells *cells, int line, int column, int width, enum style style,
	      const char *text);

/*
 * Puts text on lines from `line` on, whole words where they fit, and clears the rest of them. Returns how
 * many it takes, which is no more than `most`, on the last of which it is cut. cells NULL: only counts.
 */
int cells_put_wrapped(struct cells *cells, int line, int columns, int most, enum style style,
		      const char *text);

/* The same, to the right end of these columns. */
void cells_put_right(struct cells *cells, int line, int column, int width, enum style style,
		     const char *text);

/* Marks a line as the selected one, but for its bars, which reversed would look like holes. Drawn before. */
void cells_select(struct cells *cells, int line);

/* A line as text, in UTF-8, without the blanks at its end and without a newline. */
void cells_write_line(const struct cells *cells, int line, FILE *out);

static inline void cleanup_cells_value(struct cells *cells)
{
	cells_free(cells);
}

#define cleanup_cells cleanup(cleanup_cells_value)
