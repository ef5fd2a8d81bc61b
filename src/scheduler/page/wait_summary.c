#include "scheduler/page/wait_summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define SAYS_MAX 224
#define KINDS_MAX 64 /* limit of groups; nodes of further groups are only counted */

static const char *word(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

static json_int_t number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static void write_headline(const json_t *e, struct json_text *t)
{
	const json_t *nodes = json_object_get(e, "nodes");
	size_t all = json_array_size(nodes), fit = 0;
	char says[SAYS_MAX];
	for (size_t i = 0; i < all; i++)
		fit += !strcmp(word(json_array_get(nodes, i), "verdict"), "fits");
	if (!all)
		snprintf(says, sizeof(says), "no node reports GPUs");
	else if (fit)
		snprintf(says, sizeof(says),
			 "%zu of %zu nodes have enough free GPUs, but the pod is not placed yet: other resources may be missing there, or kube-scheduler has not tried again",
			 fit, all);
	else
		snprintf(says, sizeof(says), "none of %zu node%s has the requested GPUs free", all,
			 all == 1 ? "" : "s");
	json_text_string(t, "says", says);
}

struct group {
	const json_t *first;
	size_t nodes;
};

static int compare_groups(const void *a, const void *b)
{
	const struct group *one = a, *other = b;
	if (one->nodes != other->nodes)
		return one->nodes > other->nodes ? -1 : 1;
	return strcmp(word(one->first, "why"), word(other->first, "why"));
}

static void write_group(const struct group *g, struct json_text *t)
{
	const char *reason;
	json_t *cards;
	json_text_open(t, NULL, '{');
	json_text_whole(t, "nodes", (int64_t)g->nodes);
	json_text_string(t, "node", word(g->first, "node"));
	json_text_string(t, "why", word(g->first, "why"));
	json_text_open(t, "reasons", '[');
	json_object_foreach(json_object_get(g->first, "reasons"), reason, cards)
		json_text_string(t, NULL, reason);
	json_text_close(t, ']');
	json_text_close(t, '}');
}

static void write_groups(const json_t *nodes, struct json_text *t)
{
	struct group group[KINDS_MAX];
	size_t count = 0, others = 0;
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const json_t *node = json_array_get(nodes, i);
		size_t k = 0;
		if (!*word(node, "why"))
			continue;
		while (k < count && strcmp(word(group[k].first, "why"), word(node, "why")) != 0)
			k++;
		if (k == KINDS_MAX) {
			others++;
			continue;
		}
		if (k == count)
			group[count++] = (struct group){ .first = node };
		group[k].nodes++;
	}
	qsort(group, count, sizeof(group[0]), compare_groups);
	json_text_open(t, "groups", '[');
	for (size_t i = 0; i < count; i++) {
		if (i < WHY_GROUPS)
			write_group(&group[i], t);
		else
			others += group[i].nodes;
	}
	json_text_close(t, ']');
	json_text_whole(t, "more_nodes", (int64_t)others);
}

static bool is_nearer(const json_t *one, const json_t *other)
{
	json_int_t x = number(json_object_get(one, "lacks"), "permille");
	json_int_t y = number(json_object_get(other, "lacks"), "permille");
	return x != y ? x < y : strcmp(word(one, "node"), word(other, "node")) < 0;
}

static void write_nearest(const json_t *nodes, struct json_text *t)
{
	const json_t *near[WHY_NEAREST + 1];
	size_t count = 0;
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const json_t *node = json_array_get(nodes, i);
		size_t at = count;
		if (!json_object_get(node, "lacks"))
			continue;
		for (; at && is_nearer(node, near[at - 1]); at--)
			near[at] = near[at - 1];
		near[at] = node;
		count += count < WHY_NEAREST;
	}
	json_text_open(t, "nearest", '[');
	for (size_t i = 0; i < count; i++) {
		const json_t *lacks = json_object_get(near[i], "lacks");
		json_text_open(t, NULL, '{');
		json_text_string(t, "node", word(near[i], "node"));
		json_text_whole(t, "cards", number(lacks, "cards"));
		json_text_whole(t, "memory_mib", number(lacks, "memory_mib"));
		json_text_whole(t, "cores_pct", number(lacks, "cores_pct"));
		json_text_close(t, '}');
	}
	json_text_close(t, ']');
}

static void write_quotas(const json_t *quotas, struct json_text *t)
{
	json_text_open(t, "quotas", '[');
	for (size_t i = 0; i < json_array_size(quotas); i++) {
		const json_t *quota = json_array_get(quotas, i);
		json_text_open(t, NULL, '{');
		json_text_string(t, "resource", word(quota, "resource"));
		json_text_whole(t, "limit", number(quota, "limit"));
		json_text_whole(t, "used", number(quota, "used"));
		json_text_close(t, '}');
	}
	json_text_close(t, ']');
}

void wait_summary_write(const json_t *e, struct json_text *t)
{
	const json_t *nodes = json_object_get(e, "nodes");
	json_text_open(t, NULL, '{');
	write_headline(e, t);
	write_groups(nodes, t);
	write_nearest(nodes, t);
	write_quotas(json_object_get(e, "quotas"), t);
	json_text_close(t, '}');
}
