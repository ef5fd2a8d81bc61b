#include "scheduler/page/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *const view_node_states[] = {
	[VIEW_ASIDE] = "aside", [VIEW_UNHEALTHY] = "unhealthy", [VIEW_CORDONED] = "cordoned",
	[VIEW_FULL] = "full",   [VIEW_USED] = "used",           [VIEW_FREE] = "free",
};
const char *const view_pod_states[] = {
	[VIEW_WAITING] = "waiting",
	[VIEW_RESERVED] = "reserved",
	[VIEW_BOUND] = "bound",
	[VIEW_ENDING] = "ending",
};
static const char *const orders[] = {
	[VIEW_BY_NAME] = "name",
	[VIEW_BY_MEMORY] = "memory",
	[VIEW_BY_CORES] = "cores",
	[VIEW_BY_SHARES] = "shares",
};

static int refuse(const char *name, const char *value, const char *right, struct error *err)
{
	char shown[64];
	snprintf(shown, sizeof(shown), "%.60s", value);
	text_clean(shown);
	return error_set(err, EINVAL, "%s: '%s': must be %s", name, shown, right);
}

static int read_text(const char *name, const char *value, char ret[VIEW_TEXT_MAX], struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
	if (!value)
		return 0;
	if (strlen(value) >= VIEW_TEXT_MAX || value[strspn(value, allowed)])
		return refuse(name, value, "made of a-z, 0-9, '-' and '.', at most 253 characters",
			      err);
	strcpy(ret, value);
	return 0;
}

static void list_words(const char *const *words, size_t count, char *text, size_t size)
{
	size_t at = 0;
	for (size_t i = 0; i < count && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", words[i],
				       i + 2 < count   ? ", "
				       : i + 1 < count ? " or "
						       : "");
}

static int find_word(const char *name, const char *value, const char *const *words, size_t count,
		     unsigned *ret, struct error *err)
{
	char right[96];
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(words[i], value)) {
			*ret = i;
			return 0;
		}
	list_words(words, count, right, sizeof(right));
	return refuse(name, value, right, err);
}

static int read_states(const char *name, const char *value, const char *const *words, size_t count,
		       unsigned *ret, struct error *err)
{
	unsigned one = 0;
	if (!value)
		return 0;
	if (!strcmp(value, "all")) {
		*ret = (1U << count) - 1;
		return 0;
	}
	int r = find_word(name, value, words, count, &one, err);
	if (r >= 0)
		*ret = 1U << one;
	return r;
}

static int read_from(const char *name, const char *value, unsigned *ret, struct error *err)
{
	char *end;
	if (!value)
		return 0;
	unsigned long from = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || from > VIEW_FROM_MAX)
		return refuse(name, value, "0 to 20000", err);
	*ret = (unsigned)from;
	return 0;
}

int view_read(view_argument argument, const void *data, struct view *ret, struct error *err)
{
	struct view v = { .node_states = (1U << VIEW_NODE_STATES) - 1,
			  .pod_states = 1U << VIEW_WAITING | 1U << VIEW_RESERVED };
	unsigned order = VIEW_BY_NAME;
	const char *order_word = argument(data, "order");
	int r = read_text("node", argument(data, "node"), v.node, err);
	if (r >= 0)
		r = read_text("namespace", argument(data, "namespace"), v.pod_namespace, err);
	if (r >= 0)
		r = read_text("open", argument(data, "open"), v.open, err);
	if (r >= 0)
		r = read_states("node_state", argument(data, "node_state"), view_node_states,
				VIEW_NODE_STATES, &v.node_states, err);
	if (r >= 0)
		r = read_states("pod_state", argument(data, "pod_state"), view_pod_states,
				VIEW_POD_STATES, &v.pod_states, err);
	if (r >= 0 && order_word)
		r = find_word("order", order_word, orders, VIEW_ORDERS, &order, err);
	if (r >= 0)
		r = read_from("nodes_from", argument(data, "nodes_from"), &v.nodes_from, err);
	if (r >= 0)
		r = read_from("pods_from", argument(data, "pods_from"), &v.pods_from, err);
	if (r < 0)
		return r;
	v.order = (enum view_order)order;
	*ret = v;
	return 0;
}

int view_best_new(struct view_best *ret, size_t most, int (*compare)(const void *, const void *))
{
	const void **thing = calloc(most + 1, sizeof(*thing));
	if (!thing)
		return -ENOMEM;
	*ret = (struct view_best){ .thing = thing, .most = most, .compare = compare };
	return 0;
}

void view_best_add(struct view_best *b, const void *thing)
{
	b->seen++;
	if (b->count == b->most && (!b->most || b->compare(thing, b->thing[b->count - 1]) >= 0))
		return;
	size_t low = 0, high = b->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (b->compare(thing, b->thing[middle]) < 0)
			high = middle;
		else
			low = middle + 1;
	}
	size_t end = b->count == b->most ? b->count - 1 : b->count++;
	memmove(&b->thing[low + 1], &b->thing[low], (end - low) * sizeof(*b->thing));
	b->thing[low] = thing;
}

void view_best_free(struct view_best *b)
{
	free(b->thing);
	*b = (struct view_best){ 0 };
}
