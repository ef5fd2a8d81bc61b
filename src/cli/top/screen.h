/*
 * Puts cells on the terminal and reads keys, through ncurses. No other file uses the terminal or ncurses. Thread
 * safety: one caller at a time, and one screen per process.
 */
#pragma once

#include "base/error.h"
#include "cli/top/cells.h"

/* Takes the terminal over. -EINVAL if TERM names an unknown terminal. */
int screen_open(bool has_color, struct error *err);

/* Restores the terminal. Does nothing if the screen is not open. */
void screen_close(void);

void screen_size(int *ret_columns, int *ret_lines);

/* Writes the cells that changed since the last call. The screen takes ownership of the cells. */
void screen_show(struct cells *cells);

/* Reads the next key (see keys.h). Returns false if no key was pressed. A resize of the terminal is KEYS_OTHER. */
bool screen_key(uint32_t *ret_key);
