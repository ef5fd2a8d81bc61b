/* Shows cells on the terminal and reads keys. Only screen.c uses ncurses. One thread, one screen per process. */
#pragma once

#include "base/error.h"
#include "cli/top/cells.h"

/* Takes the terminal over. -EINVAL if TERM names an unknown terminal. */
int screen_open(bool has_color, struct error *err);

void screen_close(void);

void screen_size(int *ret_columns, int *ret_lines);

/* Writes the cells that changed since the last call. The screen takes ownership of the cells. */
void screen_show(struct cells *cells);

/* Reads the next key (see keys.h). Returns false if no key was pressed. A resize of the terminal counts as KEYS_OTHER. */
bool screen_key(uint32_t *ret_key);
