/* What the person at the keyboard has chosen to see, and is about to do. The keys change it, the layout draws it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cli/top/data/change.h"
#include "cli/top/order.h"

#define VIEW_INPUT_MAX 64

enum view_mode {
	VIEW_LIST,
	VIEW_FILTER,  /* what is typed is the filter */
	VIEW_VALUE,   /* ... a new value of `change` */
	VIEW_CONFIRM, /* `change` is done when that is confirmed */
	VIEW_HELP,
};

enum view_details {
	VIEW_DETAILS_BY_SIZE, /* shown where there is room */
	VIEW_DETAILS_ON,
	VIEW_DETAILS_OFF,
};

struct view {
	enum view_mode mode;
	enum order_key sort;
	bool is_reversed;
	enum view_details details;
	char filter[VIEW_INPUT_MAX];
	char filter_before[VIEW_INPUT_MAX]; /* comes back when the typing is given up */
	char input[VIEW_INPUT_MAX];
	struct change change;
	/* The share that is selected; id "": the first row. */
	char selected_id[SNAPSHOT_ID_MAX];
	int selected_card;
	/* One line that stands at the bottom until the next key. */
	bool is_error;
	char message[ERROR_TEXT_MAX];
	/* As the layout drew it last: the first row, how many there were, and whether there were details. */
	size_t first, page;
	bool has_details;
};
