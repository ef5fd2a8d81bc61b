#include "scheduler/page/aggregate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_full(const struct place_card *card)
{
	return !place_memory_left(card) || !place_cores_left(card) ||
	       card->slots_used >= card->slots_total;
}

static void add_card(struct aggregate_sum *sum, const struct place_card *card)
{
	sum->memory_bytes += card->memory_total_bytes;
	sum->promised_bytes += card->memory_used_bytes;
	sum->cores_mpct += card->cores_total_mpct;
	sum->promised_mpct += card->cores_used_mpct;
	sum->cards++;
	sum->unhealthy += card->is_sick;
	sum->cordoned += card->is_cordoned;
	sum->shares += card->slots_used;
}

static void add_sum(struct aggregate_sum *to, const struct aggregate_sum *from)
{
	to->memory_bytes += from->memory_bytes;
	to->promised_bytes += from->promised_bytes;
	to->cores_mpct += from->cores_mpct;
	to->promised_mpct += from->promised_mpct;
	to->cards += from->cards;
	to->unhealthy += from->unhealthy;
	to->cordoned += from->cordoned;
	to->shares += from->shares;
}

static struct aggregate_node summarize_node(const struct model_node *node)
{
	struct aggregate_node l = { .node = node };
	unsigned full = 0;
	for (unsigned i = 0; i < node->inventory.count; i++) {
		add_card(&l.sum, &node->inventory.card[i]);
		full += is_full(&node->inventory.card[i]);
	}
	l.state = node->cards_error                      ? VIEW_ASIDE
		  : l.sum.unhealthy                      ? VIEW_UNHEALTHY
		  : l.sum.cordoned                       ? VIEW_CORDONED
		  : full == l.sum.cards                  ? VIEW_FULL
		  : l.sum.shares || l.sum.promised_bytes ? VIEW_USED
							 : VIEW_FREE;
	return l;
}

static void add_node_sum(void *data, void *thing)
{
	struct aggregate *l = data;
	const struct model_node *node = thing;
	if (!node->exists)
		return;
	l->nodes_rejected += node->cards_error != NULL;
	if (!node->cards_error && !node->inventory.count) {
		l->nodes_without++;
		return;
	}
	l->node[l->count] = summarize_node(node);
	add_sum(&l->sum, &l->node[l->count++].sum);
}

/* True if the pod has cards or requests some, even if its request is malformed. */
static bool uses_cards(const struct model_pod *pod)
{
	return pod->charged || pod->request_error || (pod->request && pod->request->count);
}

int aggregate_make(const struct model *m, struct aggregate *ret)
{
	struct aggregate l = { .node = calloc(m->nodes.count + 1, sizeof(*l.node)),
			       .pods = m->pods.count };
	if (!l.node)
		return -ENOMEM;
	string_map_each(&m->nodes, add_node_sum, &l);
	for (const struct model_pod *pod = m->pending; pod; pod = pod->next_pending) {
		enum view_pod_state state = aggregate_pod_state(pod);
		l.waiting += uses_cards(pod) && state == VIEW_WAITING;
		l.reserved += uses_cards(pod) && state == VIEW_RESERVED;
	}
	*ret = l;
	return 0;
}

void aggregate_free(struct aggregate *l)
{
	free(l->node);
	*l = (struct aggregate){ 0 };
}

/* Caches the last check of a namespace, because pods of one namespace often follow each other. */
struct spaces {
	const char *part, *last;
	bool is_last_of;
};

static bool is_of(struct spaces *spaces, const char *pod_namespace)
{
	if (pod_namespace != spaces->last) {
		spaces->last = pod_namespace;
		spaces->is_last_of = strstr(pod_namespace, spaces->part) != NULL;
	}
	return spaces->is_last_of;
}

static bool has_pod_of(const struct model_node *node, struct spaces *spaces)
{
	for (const struct model_pod *pod = node->pods; pod; pod = pod->next)
		if (is_of(spaces, pod->pod_namespace))
			return true;
	return false;
}

static int by_name(const void *one, const void *other)
{
	const struct aggregate_node *a = one, *b = other;
	return strcmp(a->node->name, b->node->name);
}

static int by_part(uint64_t a, uint64_t a_of, uint64_t b, uint64_t b_of)
{
	double x = a_of ? (double)a / (double)a_of : 0, y = b_of ? (double)b / (double)b_of : 0;
	return (x < y) - (x > y);
}

static int by_memory(const void *one, const void *other)
{
	const struct aggregate_node *a = one, *b = other;
	int r = by_part(a->sum.promised_bytes, a->sum.memory_bytes, b->sum.promised_bytes,
			b->sum.memory_bytes);
	return r ? r : by_name(one, other);
}

static int by_cores(const void *one, const void *other)
{
	const struct aggregate_node *a = one, *b = other;
	int r = by_part(a->sum.promised_mpct, a->sum.cores_mpct, b->sum.promised_mpct,
			b->sum.cores_mpct);
	return r ? r : by_name(one, other);
}

static int by_shares(const void *one, const void *other)
{
	const struct aggregate_node *a = one, *b = other;
	if (a->sum.shares != b->sum.shares)
		return a->sum.shares < b->sum.shares ? 1 : -1;
	return by_name(one, other);
}

static int (*const orders[])(const void *, const void *) = {
	[VIEW_BY_NAME] = by_name,
	[VIEW_BY_MEMORY] = by_memory,
	[VIEW_BY_CORES] = by_cores,
	[VIEW_BY_SHARES] = by_shares,
};

int aggregate_nodes(const struct aggregate *l, const struct view *view, struct view_best *ret)
{
	struct spaces spaces = { .part = view->pod_namespace };
	int r = view_best_new(ret, view->nodes_from + VIEW_ROWS, orders[view->order]);
	for (size_t i = 0; r >= 0 && i < l->count; i++) {
		const struct aggregate_node *n = &l->node[i];
		if (view->node_states & (1U << n->state) && strstr(n->node->name, view->node) &&
		    (!*view->pod_namespace || has_pod_of(n->node, &spaces)))
			view_best_add(ret, n);
	}
	return r;
}

enum view_pod_state aggregate_pod_state(const struct model_pod *pod)
{
	if (pod->is_terminating)
		return VIEW_ENDING;
	if (pod->is_bound)
		return VIEW_BOUND;
	return pod->charged ? VIEW_RESERVED : VIEW_WAITING;
}

static int by_pod_name(const void *one, const void *other)
{
	const struct model_pod *a = one, *b = other;
	int r = strcmp(a->pod_namespace, b->pod_namespace);
	if (!r)
		r = strcmp(model_pod_name(a), model_pod_name(b));
	return r ? r : strcmp(a->text, b->text);
}

static int by_pod_state(const void *one, const void *other)
{
	int r = (int)aggregate_pod_state(one) - (int)aggregate_pod_state(other);
	return r ? r : by_pod_name(one, other);
}

struct picking {
	const struct view *view;
	struct view_best *best;
	struct spaces spaces;
};

/* A pod without a node is shown for any selection of nodes. */
static void pick(void *data, void *thing)
{
	struct picking *p = data;
	const struct model_pod *pod = thing;
	const char *on = pod->charged ? pod->charged->node->name : NULL;
	if (p->view->pod_states & (1U << aggregate_pod_state(pod)) && uses_cards(pod) &&
	    (!*p->view->pod_namespace || is_of(&p->spaces, pod->pod_namespace)) &&
	    (!on || strstr(on, p->view->node)))
		view_best_add(p->best, pod);
}

int aggregate_pods(const struct model *m, const struct view *view, struct view_best *ret)
{
	struct picking p = { view, ret, { .part = view->pod_namespace } };
	int r = view_best_new(ret, view->pods_from + VIEW_ROWS, by_pod_state);
	if (r < 0)
		return r;
	if (view->pod_states & (1U << VIEW_BOUND | 1U << VIEW_ENDING)) {
		string_map_each(&m->pods, pick, &p);
		return 0;
	}
	for (struct model_pod *pod = m->pending; pod; pod = pod->next_pending)
		pick(&p, pod);
	return 0;
}

int aggregate_pods_of(const struct model_node *node, size_t most, struct view_best *ret)
{
	int r = view_best_new(ret, most, by_pod_name);
	for (const struct model_pod *pod = node->pods; r >= 0 && pod; pod = pod->next)
		view_best_add(ret, pod);
	return r;
}
