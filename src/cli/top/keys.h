/* The keyboard, as a state machine: a view and a key in, the view as it is then out. Pure. */
#pragma once

#include <stdint.h>

#include "cli/top/view.h"

/* Keys that are no characters: beyond Unicode's last. */
enum {
	KEYS_UP = 0x110000,
	KEYS_DOWN,
	KEYS_PAGE_UP,
	KEYS_PAGE_DOWN,
	KEYS_HOME,
	KEYS_END,
	KEYS_ENTER,
	KEYS_ESCAPE,
	KEYS_BACKSPACE,
	KEYS_OTHER, /* of no use here */
};

enum keys_outcome {
	KEYS_GO_ON,
	KEYS_QUIT,
	KEYS_CHANGE, /* view->change is to be done */
};

/* One key. The rows are those that the view shows of the snapshot. */
enum keys_outcome keys_press(struct view *view, const struct snapshot *snapshot,
			     const struct rows *rows, uint32_t key);

/* What the i-th line of the help says: a key and what it does; false after the last. */
bool keys_help(size_t i, const char **ret_key, const char **ret_what);
