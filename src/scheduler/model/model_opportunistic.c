/* Finds cards where opportunistic pods (opportunistic.h) lacked compute for too long, and chooses pods to evict. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "scheduler/model/model_inside.h"
#include "scheduler/opportunistic/opportunistic.h"

/* A pod named for eviction counts as leaving for this long. If it still exists then, it counts as staying again. */
#define LEAVING_NS (UINT64_C(120) * 1000000000)
/* How long a pod counts as leaving after a failed eviction, so that a failing server is not asked every second. */
#define FAILED_NS (UINT64_C(5) * 1000000000)
/* A pod whose eviction was refused is not evicted again for this long. */
#define SPARED_NS (UINT64_C(600) * 1000000000)

struct eviction_scan {
	struct model *model;
	uint64_t patience_ns;
	struct model_eviction *ret;
	size_t count, most;
};

/* Adds to *ret_borrowed_pct the compute that the card's opportunistic pods requested, unless they leave. NULL: no memory. */
static struct opportunistic *list_opportunistic(const struct model *m,
						const struct model_node *node, const char *card,
						size_t *ret_count, uint64_t *ret_borrowed_pct)
{
	size_t pods = 0, count = 0;
	for (const struct model_pod *p = node->pods; p; p = p->next)
		pods++;
	struct opportunistic *list = calloc(pods + 1, sizeof(*list));
	for (struct model_pod *p = node->pods; list && p; p = p->next) {
		uint64_t borrowed_pct = inventory_shares_borrowed_pct(&p->charged->shares, card);
		if (!borrowed_pct || model_is_leaving(m, p))
			continue;
		*ret_borrowed_pct += borrowed_pct;
		if (p->is_bound && p->spared_until_ns <= m->now_ns)
			list[count++] =
				(struct opportunistic){ .priority = p->priority,
							.since_s = p->since_s,
							.borrowed_pct = (unsigned)borrowed_pct,
							.pod = p };
	}
	*ret_count = count;
	return list;
}

void model_start_eviction(struct model *m, struct model_pod *pod, struct model_eviction *ret)
{
	pod->leaving_until_ns = m->now_ns + LEAVING_NS;
	*ret = (struct model_eviction){ .pod_namespace = pod->pod_namespace,
					.name = model_pod_name(pod),
					.uid = pod->text,
					.node = pod->charged->node->name };
}

static void add_eviction(struct eviction_scan *l, const char *card,
			 const struct opportunistic_card *seen, struct model_pod *pod)
{
	struct model_eviction *e = &l->ret[l->count++];
	model_start_eviction(l->model, pod, e);
	e->card = card;
	e->used_pct = seen->use->now_pct;
	e->requested_pct = (unsigned)seen->borrowed_pct;
}

static void check_card(struct eviction_scan *l, struct model_node *node, unsigned i)
{
	const struct place_card *card = &node->inventory.card[i];
	uint64_t now_ns = l->model->now_ns;
	struct opportunistic_card seen = { .total_pct = card->cores_total_mpct / MPCT,
					   .guaranteed_pct = node->inventory.use[i].cores_pct,
					   .use = use_of(&node->use, i, now_ns) };
	size_t count;
	if (i >= node->use.count)
		return;
	cleanup_free struct opportunistic *list = list_opportunistic(l->model, node, card->uuid,
								     &count, &seen.borrowed_pct);
	if (!list)
		return; /* no memory: the next call tries again */
	uint64_t shortfall_pct = opportunistic_shortfall_pct(&seen);
	if (!opportunistic_is_due(&node->use.card[i], shortfall_pct, now_ns, l->patience_ns) ||
	    l->count == l->most)
		return;
	const size_t victims = opportunistic_choose(list, count, shortfall_pct);
	if (!victims || (l->count && victims > l->most - l->count))
		return; /* too many victims for the caller's array: the next call returns them */
	for (size_t k = 0; k < count && l->count < l->most; k++)
		if (list[k].is_victim)
			add_eviction(l, card->uuid, &seen, list[k].pod);
	model_cooldown_card(l->model, node, i);
}

static void check_node(void *data, void *thing)
{
	struct model_node *node = thing;
	for (unsigned i = 0; i < node->inventory.count; i++)
		if (node->inventory.use[i].borrowed_pct)
			check_card(data, node, i);
}

void model_cooldown_card(struct model *m, struct model_node *node, unsigned card)
{
	opportunistic_cooldown(&node->use.card[card], m->now_ns);
	node->is_cooldown_dirty = m->has_cooldown = true;
}

static void find_cooldown(void *data, void *thing)
{
	struct model_node *node = thing, **found = data;
	if (!*found && node->is_cooldown_dirty)
		*found = node;
}

int model_take_cooldown(struct model *m, struct model_cooldown *ret)
{
	struct model_node *node = NULL;
	char *text;
	if (m->has_cooldown)
		string_map_each(&m->nodes, find_cooldown, &node);
	m->has_cooldown = node != NULL;
	if (!node)
		return 0;
	int r = cooldown_format(&node->use, &node->inventory, model_both_clocks(m), &text);
	if (r < 0)
		return r;
	node->is_cooldown_dirty = false;
	*ret = (struct model_cooldown){ node->name, text };
	return 1;
}

void model_cooldown_retry(struct model *m, const char *name)
{
	struct model_node *node = model_find_node(m, name);
	if (node)
		node->is_cooldown_dirty = m->has_cooldown = true;
}

void model_eviction_refused(struct model *m, const char *uid)
{
	struct model_pod *pod = model_find_pod(m, uid);
	if (!pod)
		return;
	pod->leaving_until_ns = 0;
	pod->spared_until_ns = m->now_ns + SPARED_NS;
}

void model_eviction_failed(struct model *m, const char *uid)
{
	struct model_pod *pod = model_find_pod(m, uid);
	if (pod && pod->leaving_until_ns > m->now_ns + FAILED_NS)
		pod->leaving_until_ns = m->now_ns + FAILED_NS;
}

size_t model_take_evictions(struct model *m, uint64_t patience_ns, struct model_eviction *ret,
			    size_t most)
{
	struct eviction_scan l = { .model = m, .patience_ns = patience_ns, .ret = ret, .most = most };
	m->keeps_opportunistic = !patience_ns;
	l.count = model_take_displaced(m, ret, most);
	if (patience_ns)
		string_map_each(&m->nodes, check_node, &l);
	return l.count;
}
