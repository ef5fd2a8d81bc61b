#include "cli/top/keys.h"

#include <stdio.h>
#include <string.h>

#include "cli/top/utf8.h"

#define CONTROL_U 21

static size_t selected(const struct view *view, const struct snapshot *snapshot,
		       const struct rows *rows)
{
	size_t at = order_position(rows, snapshot, view->selected_id, view->selected_card);

	return at < rows->count ? at : 0;
}

static void select_row(struct view *view, const struct snapshot *snapshot, const struct rows *rows,
		       size_t row)
{
	const struct top_share *share;

	if (!rows->count)
		return;
	share = &snapshot->shares[rows->share[row < rows->count ? row : rows->count - 1]];
	strcpy(view->selected_id, snapshot->tenants[share->tenant].id);
	view->selected_card = share->card;
}

static void move(struct view *view, const struct snapshot *snapshot, const struct rows *rows,
		 uint32_t key)
{
	size_t at = selected(view, snapshot, rows), page = view->page ? view->page : 1;

	switch (key) {
	case KEYS_UP:
	case 'k': at -= at > 0; break;
	case KEYS_DOWN:
	case 'j': at++; break;
	case KEYS_PAGE_UP: at -= at < page ? at : page; break;
	case KEYS_PAGE_DOWN: at += page; break;
	case KEYS_HOME: at = 0; break;
	default: at = rows->count; break;
	}
	select_row(view, snapshot, rows, at);
}

static enum keys_outcome show_message(struct view *view, bool is_error, const char *text)
{
	view->is_error = is_error;
	snprintf(view->message, sizeof(view->message), "%s", text);
	return KEYS_GO_ON;
}

static enum keys_outcome show_order(struct view *view)
{
	char text[96];

	snprintf(text, sizeof(text), "sorted %s%s", order_rows[view->sort].what,
		 view->is_reversed ? ", reversed" : "");
	return show_message(view, false, text);
}

static enum keys_outcome begin_change(struct view *view, const struct snapshot *snapshot,
				      const struct rows *rows, enum change_kind kind)
{
	size_t share;

	if (!rows->count)
		return show_message(view, true, "no tenant is selected");
	share = rows->share[selected(view, snapshot, rows)];
	/* From now on the selection follows this share when its row moves. */
	select_row(view, snapshot, rows, selected(view, snapshot, rows));
	change_begin(kind, snapshot, share, &view->change);
	*view->input = '\0';
	view->mode = change_wants_value(&view->change) ? VIEW_VALUE : VIEW_CONFIRM;
	return KEYS_GO_ON;
}

static enum keys_outcome pause_or_resume(struct view *view, const struct snapshot *snapshot,
					 const struct rows *rows)
{
	const struct top_tenant *tenant = NULL;
	bool is_out;

	if (rows->count)
		tenant = &snapshot->tenants[snapshot->shares[rows->share[selected(view, snapshot, rows)]]
						    .tenant];
	/* Unless on_full is `swap`, for which the daemon swaps by itself, `swapped` means that a user paused the tenant. */
	is_out = tenant &&
		 (strcmp(tenant->state, "swapped") == 0 || strcmp(tenant->state, "leaving") == 0) &&
		 strcmp(tenant->on_full, "swap") != 0;
	return begin_change(view, snapshot, rows,
			    tenant && (is_out || strcmp(tenant->state, "paused") == 0)
				    ? CHANGE_RESUME
				    : CHANGE_PAUSE);
}

static enum keys_outcome begin_filter(struct view *view)
{
	strcpy(view->filter_before, view->filter);
	view->mode = VIEW_FILTER;
	return KEYS_GO_ON;
}

static enum keys_outcome handle_list_key(struct view *view, const struct snapshot *snapshot,
					 const struct rows *rows, uint32_t key)
{
	for (enum order_key i = 0; i < ORDER_COUNT; i++)
		if (key == (uint32_t)order_rows[i].key) {
			view->sort = i;
			view->is_reversed = false;
			return show_order(view);
		}
	switch (key) {
	case 'q': return KEYS_QUIT;
	case 's':
		view->sort = (view->sort + 1) % ORDER_COUNT;
		view->is_reversed = false;
		return show_order(view);
	case 'r': view->is_reversed = !view->is_reversed; return show_order(view);
	case '/': return begin_filter(view);
	case KEYS_ESCAPE: *view->filter = '\0'; break;
	case 'p': return pause_or_resume(view, snapshot, rows);
	case 'u': return begin_change(view, snapshot, rows, CHANGE_RESUME);
	case 'o': return begin_change(view, snapshot, rows, CHANGE_SWAP_OUT);
	case 'm': return begin_change(view, snapshot, rows, CHANGE_MEMORY);
	case 'c': return begin_change(view, snapshot, rows, CHANGE_CORES);
	case 'l': return begin_change(view, snapshot, rows, CHANGE_CORES_LIMIT);
	case 'P': return begin_change(view, snapshot, rows, CHANGE_PRIORITY);
	case KEYS_ENTER:
		view->details = view->has_details ? VIEW_DETAILS_OFF : VIEW_DETAILS_ON;
		break;
	case '?':
	case 'h': view->mode = VIEW_HELP; break;
	case KEYS_UP:
	case KEYS_DOWN:
	case KEYS_PAGE_UP:
	case KEYS_PAGE_DOWN:
	case KEYS_HOME:
	case KEYS_END:
	case 'j':
	case 'k': move(view, snapshot, rows, key); break;
	default: break;
	}
	return KEYS_GO_ON;
}

static const struct {
	const char *key, *what;
} help[] = {
	{ "up, down, k, j", "select a tenant, on one of its GPUs" },
	{ "Page, Home, End", "select a page further, the first, the last" },
	{ "Enter", "show or hide the selected tenant's details" },
	{ "s, r", "sort by the next column; reverse the order" },
	{ "N G T C M L W", "sort by name, GPU, state, compute, memory, leases, wait" },
	{ "/", "show only tenants whose name, state or container has a text" },
	{ "Esc", "show all tenants; cancel the typing" },
	{ "p", "pause the selected tenant, or resume it if it is paused" },
	{ "o", "pause the selected tenant and move its memory off its GPUs" },
	{ "u", "resume it" },
	{ "m, c, l", "set its memory, cores, cores limit on this GPU" },
	{ "P", "set its priority" },
	{ "q, Ctrl-C", "quit" },
};

bool keys_help(size_t i, const char **ret_key, const char **ret_what)
{
	if (i >= sizeof(help) / sizeof(*help))
		return false;
	*ret_key = help[i].key;
	*ret_what = help[i].what;
	return true;
}

static void type(char text[VIEW_INPUT_MAX], uint32_t key)
{
	size_t used = strlen(text), n;
	char bytes[UTF8_MAX];

	if (key == CONTROL_U) {
		*text = '\0';
	} else if (key == KEYS_BACKSPACE) {
		while (used && (text[used - 1] & 0xc0) == 0x80)
			used--;
		text[used ? used - 1 : 0] = '\0';
	} else if (key >= ' ' && key != 0x7f && key < KEYS_UP) {
		n = utf8_encode(key, bytes);
		if (used + n < VIEW_INPUT_MAX) {
			memcpy(text + used, bytes, n);
			text[used + n] = '\0';
		}
	}
}

static enum keys_outcome handle_filter_key(struct view *view, uint32_t key)
{
	if (key == KEYS_ENTER) {
		view->mode = VIEW_LIST;
	} else if (key == KEYS_ESCAPE) {
		strcpy(view->filter, view->filter_before);
		view->mode = VIEW_LIST;
	} else {
		type(view->filter, key);
	}
	return KEYS_GO_ON;
}

static enum keys_outcome handle_value_key(struct view *view, uint32_t key)
{
	struct error err = { 0 };

	if (key == KEYS_ESCAPE || (key == KEYS_ENTER && !*view->input)) {
		view->mode = VIEW_LIST;
		return show_message(view, false, "nothing was changed");
	}
	if (key != KEYS_ENTER) {
		type(view->input, key);
		return KEYS_GO_ON;
	}
	/* Keep an invalid text, so that the user can correct it. */
	if (change_read(&view->change, view->input, &err) < 0)
		return show_message(view, true, err.text);
	view->mode = VIEW_CONFIRM;
	return KEYS_GO_ON;
}

static enum keys_outcome handle_confirm_key(struct view *view, uint32_t key)
{
	view->mode = VIEW_LIST;
	if (key == 'y' || key == 'Y')
		return KEYS_CHANGE;
	return show_message(view, false, "nothing was changed");
}

enum keys_outcome keys_handle(struct view *view, const struct snapshot *snapshot,
			      const struct rows *rows, uint32_t key)
{
	*view->message = '\0';
	switch (view->mode) {
	case VIEW_FILTER: return handle_filter_key(view, key);
	case VIEW_VALUE: return handle_value_key(view, key);
	case VIEW_CONFIRM: return handle_confirm_key(view, key);
	case VIEW_HELP: view->mode = VIEW_LIST; return key == 'q' ? KEYS_QUIT : KEYS_GO_ON;
	case VIEW_LIST: break;
	}
	return handle_list_key(view, snapshot, rows, key);
}
