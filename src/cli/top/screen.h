/*
 * The terminal, by ncurses: puts cells on it and reads keys. The only file that knows of either. Thread safety: one
 * caller at a time, and one screen a process.
 */
#pragma once

#include "base/error.h"
#include "cli/top/cells.h"

/* Takes the terminal over. -EINVAL: TERM names none that is known. */
int screen_open(bool has_color, struct error *err);

/* Gives it back as it was. Nothing where it was not taken. */
void screen_close(void);

void screen_size(int *ret_columns, int *ret_lines);

/* What changed since the last time is written. The cells are the screen's from here on. */
void screen_show(struct cells *cells);

/* The next key, as in keys.h; false: none was pressed. A new size of the terminal is KEYS_OTHER. */
bool screen_key(uint32_t *ret_key);
