/* The keyboard as a state machine: each key changes the view. No I/O. */
#pragma once

#include <stdint.h>

#include "cli/top/view.h"

/* Keys that are not characters have values above the last Unicode code point. */
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
	KEYS_OTHER, /* a key without a meaning here */
};

enum keys_outcome {
	KEYS_GO_ON,
	KEYS_QUIT,
	KEYS_CHANGE, /* the caller must make the change that view->change describes */
};

/* Handles one key, typed while the view shows `rows` of `snapshot`. */
enum keys_outcome keys_handle(struct view *view, const struct snapshot *snapshot,
			      const struct rows *rows, uint32_t key);

/* Returns the i-th line of the help: a key and its effect. False after the last line. */
bool keys_help(size_t i, const char **ret_key, const char **ret_what);
