/*
 * A terminal's contents as data: a grid of characters with styles. The layout fills the grid; the screen shows it, and --once
 * and the tests write it as text. Lines and columns count from 0. Text outside of the grid is dropped. Use from one thread at a
 * time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The meaning of a cell. The screen chooses colour and weight; colour alone never carries a meaning. */
enum style {
	STYLE_PLAIN,
	STYLE_DIM,
	STYLE_STRONG,
	STYLE_TITLE,
	STYLE_GOT,     /* part of a bar: used, as requested */
	STYLE_BEYOND,  /* part of a bar: used beyond the request, or not on the GPU */
	STYLE_ASKED,   /* part of a bar: requested but not used */
	STYLE_WARNING, /* something that needs the user's attention */
	STYLE_COUNT,
};

struct cell {
	uint32_t c; /* code point; 0 for the right half of a wide character */
	enum style style;
	bool is_selected;
};

struct cells {
	int columns, lines;
	bool is_ascii; /* write other characters as '?' */
	struct cell *cell;
};

/* Makes a grid of blanks; free it with cells_free(). Returns 0 or -ENOMEM. Sizes below 1 count as 1. */
int cells_make(int columns, int lines, bool is_ascii, struct cells *ret_cells);
void cells_free(struct cells *cells);

void cells_put_char(struct cells *cells, int line, int column, enum style style, uint32_t c);

/* Puts text into `width` columns. A longer text is cut and ends with '~'. Returns the number of columns used. */
int cells_put(struct cells *cells, int line, int column, int width, enum style style,
	      const char *text);

/*
 * Puts text on lines from `line` on, broken between words, and clears the rest of each line. A text of more than `most` lines
 * is cut. Returns the number of lines. If `cells` is NULL, only counts the lines.
 */
int cells_put_wrapped(struct cells *cells, int line, int columns, int most, enum style style,
		      const char *text);

void cells_put_right(struct cells *cells, int line, int column, int width, enum style style,
		     const char *text);

/* Marks a line as selected, except its bars: selection reverses colours, and reversed bars look like holes. */
void cells_select(struct cells *cells, int line);

/* Writes a line as UTF-8 text, without trailing blanks and without a newline. */
void cells_write_line(const struct cells *cells, int line, FILE *out);

static inline void cleanup_cells_value(struct cells *cells)
{
	cells_free(cells);
}

#define cleanup_cells cleanup(cleanup_cells_value)
