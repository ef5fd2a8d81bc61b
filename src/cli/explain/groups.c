#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/explain/explain_text.h"

#define GROUPS_SHOWN 8
#define NEAREST_SHOWN 5

struct wanted {
	const json_t *ask;
	/* the most free memory, and the most free time, on a GPU of the group's nodes (struct group) */
	json_int_t free_mib, free_pct;
};

static void write_memory(const struct wanted *w, FILE *out)
{
	char left[EXPLAIN_AMOUNT_MAX], memory[EXPLAIN_AMOUNT_MAX];
	explain_mib(w->free_mib, left);
	explain_memory(w->ask, memory);
	fprintf(out, "at most %s free on any of these GPUs, %s requested", left, memory);
}

static void write_cores(const struct wanted *w, FILE *out)
{
	fprintf(out, "at most %lld %% of the time free on any of these GPUs, %lld %% requested",
		(long long)w->free_pct, (long long)explain_number(w->ask, "cores_pct"));
}

static void write_count(const struct wanted *w, FILE *out)
{
	fprintf(out, "fewer GPUs than the %lld that are requested together",
		(long long)explain_number(w->ask, "cards"));
}

static void write_others(const struct wanted *w, FILE *out)
{
	fprintf(out, "this GPU fits, but fewer fit than the %lld that are requested together",
		(long long)explain_number(w->ask, "cards"));
}

/* Translates HAMi's names of reasons to plain words: `plain`, or what the function `write` writes if figures are needed. */
static const struct {
	const char *reason, *plain;
	void (*write)(const struct wanted *wanted, FILE *out);
} words[] = {
	{ "NodeInsufficientDevice", NULL, write_count },
	{ "CardNotServed",
	  "the node's kubelet serves no such resource now: allotd does not run there, or has "
	  "another "
	  "kube_vocabulary",
	  NULL },
	{ "CardUseUnknown",
	  "a pod on the node has an annotation with GPU shares that can't be read: "
	  "allot-scheduler's log names it",
	  NULL },
	{ "CardNotHealth", "the GPU is not healthy", NULL },
	{ "CardCordoned", "the GPU is cordoned: it takes no new pods", NULL },
	{ "CardTypeMismatch", "the GPU is of another type, or mode, than the pod asks for", NULL },
	{ "NumaNotFit", "enough GPUs fit, but not on one NUMA node", NULL },
	{ "CardUuidMismatch", "the pod's annotations do not allow this GPU", NULL },
	{ "CardTimeSlicingExhausted", "the GPU already has as many containers as may share it",
	  NULL },
	{ "ResourceQuotaNotFit", "the namespace's quota of GPUs is used up", NULL },
	{ "CardInsufficientMemory", NULL, write_memory },
	{ "CardInsufficientCore", NULL, write_cores },
	{ "ExclusiveDeviceAllocateConflict", "the pod requests the GPU alone, but it is in use",
	  NULL },
	{ "CardComputeUnitsExhausted", "all of the GPU's time is promised", NULL },
	{ "AllocatedCardsInsufficientRequest", NULL, write_others },
};

static void write_reason(const char *reason, const struct wanted *wanted, FILE *out)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].reason, reason) != 0)
			continue;
		fprintf(out, "      %s: ", reason);
		if (words[i].write)
			words[i].write(wanted, out);
		else
			fputs(words[i].plain, out);
		fputc('\n', out);
	}
}

struct group {
	const json_t *first;
	size_t nodes;
	struct wanted wanted;
	/* for an opportunistic pod: GPUs of unknown measured use; GPUs that take no such pods for a while after evictions */
	json_int_t unknown, cooling_down;
	/* seconds until the first of the `cooling_down` GPUs takes opportunistic pods again */
	json_int_t open_in_s;
	const char *use_unknown; /* why the measured use is unknown, on one of the nodes */
};

struct groups {
	struct group *list; /* owned */
	size_t count;
};

static bool is_alike(const json_t *a, const json_t *b)
{
	return !strcmp(explain_word(a, "why"), explain_word(b, "why")) &&
	       explain_number(a, "container") == explain_number(b, "container");
}

static void add_to(struct group *group, const json_t *node)
{
	json_int_t mib = explain_number(node, "most_free_mib");
	json_int_t pct = explain_number(node, "most_free_cores_pct");
	group->nodes++;
	group->wanted.free_mib = mib > group->wanted.free_mib ? mib : group->wanted.free_mib;
	group->wanted.free_pct = pct > group->wanted.free_pct ? pct : group->wanted.free_pct;
	json_int_t cooling_down = explain_number(node, "cards_shut");
	json_int_t open_in_s = explain_number(node, "open_in_s");
	if (cooling_down && (!group->cooling_down || open_in_s < group->open_in_s))
		group->open_in_s = open_in_s;
	group->cooling_down += cooling_down;
	group->unknown += explain_number(node, "cards_of_unknown_use");
	if (json_object_get(node, "use_unknown"))
		group->use_unknown = explain_word(node, "use_unknown");
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *one = a, *other = b;
	if (one->nodes != other->nodes)
		return one->nodes > other->nodes ? -1 : 1;
	return strcmp(explain_word(one->first, "why"), explain_word(other->first, "why"));
}

static struct groups make_groups(const json_t *e)
{
	const json_t *nodes = json_object_get(e, "nodes");
	struct groups g = { .list = calloc(json_array_size(nodes) + 1, sizeof(*g.list)) };
	for (size_t i = 0; g.list && i < json_array_size(nodes); i++) {
		const json_t *node = json_array_get(nodes, i);
		size_t k = 0;
		if (!*explain_word(node, "why"))
			continue;
		while (k < g.count && !is_alike(g.list[k].first, node))
			k++;
		if (k == g.count)
			g.list[g.count++] = (struct group){
				.first = node,
				.wanted.ask = explain_request(e, explain_number(node, "container")),
			};
		add_to(&g.list[k], node);
	}
	if (g.count)
		qsort(g.list, g.count, sizeof(*g.list), compare_groups);
	return g;
}

static void write_use(const struct group *g, FILE *out)
{
	if (g->cooling_down)
		fprintf(out,
			"      %lld GPU%s closed to pods placed by use, after evictions from %s: the first opens in %lld s\n",
			(long long)g->cooling_down, g->cooling_down == 1 ? " is" : "s are",
			g->cooling_down == 1 ? "it" : "them", (long long)g->open_in_s);
	if (g->unknown)
		fprintf(out,
			"      %lld GPU%s judged by what is promised, since the measured use is not known: %s\n",
			(long long)g->unknown, g->unknown == 1 ? " is" : "s are", g->use_unknown);
}

static void write_group(const json_t *e, const struct group *g, FILE *out)
{
	json_t *reasons = json_object_get(g->first, "reasons"), *cards;
	const char *reason;
	char count[EXPLAIN_AMOUNT_MAX], name[EXPLAIN_AMOUNT_MAX];
	explain_count((json_int_t)g->nodes, count);
	if (g->nodes == 1)
		fprintf(out, "  %s: ", explain_word(g->first, "node"));
	else
		fprintf(out, "  %s nodes: ", count);
	fputs(explain_word(g->first, "why"), out);
	if (json_array_size(json_object_get(e, "asks")) > 1 && reasons)
		fprintf(out, " (%s)",
			explain_container(e, explain_number(g->first, "container"), name));
	fputc('\n', out);
	json_object_foreach(reasons, reason, cards) write_reason(reason, &g->wanted, out);
	write_use(g, out);
}

void explain_groups_write(const json_t *e, FILE *out)
{
	struct groups g = make_groups(e);
	size_t others = 0;
	char nodes[EXPLAIN_AMOUNT_MAX], ways[EXPLAIN_AMOUNT_MAX];
	if (g.count)
		fputs("\nWhy not\n", out);
	for (size_t i = 0; i < g.count; i++) {
		if (i < GROUPS_SHOWN)
			write_group(e, &g.list[i], out);
		else
			others += g.list[i].nodes;
	}
	explain_count((json_int_t)others, nodes);
	explain_count((json_int_t)(g.count - (g.count < GROUPS_SHOWN ? g.count : GROUPS_SHOWN)),
		      ways);
	if (others)
		fprintf(out, "  %s more nodes, for %s other reasons: --json lists all\n", nodes,
			ways);
	free(g.list);
}

static int compare_lacks(const void *a, const void *b)
{
	const json_t *const *one = a, *const *other = b;
	json_int_t x = explain_number(json_object_get(*one, "lacks"), "permille");
	json_int_t y = explain_number(json_object_get(*other, "lacks"), "permille");
	if (x != y)
		return x < y ? -1 : 1;
	return strcmp(explain_word(*one, "node"), explain_word(*other, "node"));
}

static void write_lacks(const json_t *node, FILE *out)
{
	const json_t *lacks = json_object_get(node, "lacks");
	json_int_t cards = explain_number(lacks, "cards"), mib = explain_number(lacks, "memory_mib");
	json_int_t pct = explain_number(lacks, "cores_pct");
	char memory[EXPLAIN_AMOUNT_MAX];
	explain_mib(mib, memory);
	fprintf(out, "  %s: ", explain_word(node, "node"));
	if (!mib && !pct) {
		fprintf(out, "no amount is missing: %s\n", explain_word(node, "why"));
		return;
	}
	fprintf(out, "%lld GPU%s would need ", (long long)cards, cards == 1 ? "" : "s");
	if (cards > 1)
		fputs("up to ", out);
	if (mib)
		fprintf(out, "%s", memory);
	if (pct)
		fprintf(out, "%s%lld %% of the time", mib ? " and " : "", (long long)pct);
	fputs(" more free\n", out);
}

void explain_nearest_write(const json_t *e, FILE *out)
{
	const json_t *nodes = json_object_get(e, "nodes");
	cleanup_free const json_t **near = calloc(json_array_size(nodes) + 1, sizeof(*near));
	size_t count = 0;
	for (size_t i = 0; near && i < json_array_size(nodes); i++)
		if (json_object_get(json_array_get(nodes, i), "lacks"))
			near[count++] = json_array_get(nodes, i);
	if (!count || explain_has_room(e))
		return;
	qsort((void *)near, count, sizeof(*near), compare_lacks);
	fputs("\nNearest\n", out);
	for (size_t i = 0; i < count && i < NEAREST_SHOWN; i++)
		write_lacks(near[i], out);
}
