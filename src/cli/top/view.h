/* The view that the user chose. Keys change it, and the layout draws it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cli/top/data/key_change.h"
#include "cli/top/sort_shares.h"

#define VIEW_INPUT_MAX 64

enum view_mode {
	VIEW_LIST,
	VIEW_FILTER,  /* the user types the filter */
	VIEW_VALUE,   /* the user types a new value for `change` */
	VIEW_CONFIRM, /* `change` is done when the user confirms it */
	VIEW_HELP,
};

enum view_details {
	VIEW_DETAILS_BY_SIZE, /* shown if there is room */
	VIEW_DETAILS_ON,
	VIEW_DETAILS_OFF,
};

struct view {
	enum view_mode mode;
	enum order_key sort;
	bool is_reversed;
	enum view_details details;
	char filter[VIEW_INPUT_MAX];
	char filter_before[VIEW_INPUT_MAX]; /* restored if the user cancels the typing */
	char input[VIEW_INPUT_MAX];
	struct change change;
	char selected_id[SNAPSHOT_ID_MAX];
	int selected_card;
	/* a message, shown at the bottom until the next key */
	bool is_error;
	char message[ERROR_TEXT_MAX];
	/* the layout drawn last: its first row, its number of rows, and whether it had details */
	size_t first, page;
	bool has_details;
};
