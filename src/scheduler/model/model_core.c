#include <errno.h>
#include <stdlib.h>

#include "scheduler/model/model.h"
#include "scheduler/model/model_gang.h"
#include "scheduler/opportunistic/opportunistic.h"

#define HOLD_NS (UINT64_C(300) * 1000000000)

int model_new(const struct model_terms *terms, struct model **ret)
{
	struct model *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->terms = *terms;
	m->capacity_epoch = 1;
	if (!m->terms.hold_ns)
		m->terms.hold_ns = HOLD_NS;
	*ret = m;
	return 0;
}

struct model *model_free(struct model *m)
{
	if (!m)
		return NULL;
	model_pods_free(m);
	model_nodes_free(m);
	model_quotas_free(m);
	model_room_free(m);
	string_map_free(&m->gangs);
	string_map_free(&m->strings);
	free(m);
	return NULL;
}

const struct request_terms *model_request_terms(const struct model *m)
{
	return &m->terms.request;
}

void model_list_begin(struct model *m, enum model_kind kind)
{
	m->list[kind]++;
}

void model_list_end(struct model *m, enum model_kind kind)
{
	switch (kind) {
	case MODEL_NODES: model_nodes_list_end(m); break;
	case MODEL_PODS: model_pods_list_end(m); break;
	case MODEL_QUOTAS: model_quotas_list_end(m); break;
	}
	m->is_synced[kind] = true;
}

int model_check_ready(const struct model *m, struct error *err)
{
	return m->is_synced[MODEL_NODES] && m->is_synced[MODEL_PODS]
		       ? 0
		       : error_set(
				 err, EAGAIN,
				 "the nodes and pods of the cluster are still being read: try again in a moment");
}

void model_advance(struct model *m, uint64_t now_ns)
{
	if (now_ns > m->now_ns)
		m->now_ns = now_ns;
	m->fit.now_ns = m->now_ns;
	model_gangs_advance(m);
	model_pods_advance(m);
}

void model_set_wall(struct model *m, int64_t wall_s)
{
	m->wall_s = wall_s;
}

void model_release(struct model *m, const char *uid)
{
	struct model_pod *pod = model_find_pod(m, uid);
	if (pod && !(pod->member && model_gang_keeps_reservation(m, pod->member)))
		model_drop_reserved(m, pod);
}

static void count_node(void *data, void *thing)
{
	struct model_counts *c = data;
	const struct model_node *node = thing;
	c->nodes += node->inventory.count > 0;
	c->nodes_rejected += node->cards_error != NULL;
	c->cards += node->inventory.count;
}

static void count_pod(void *data, void *thing)
{
	struct model_counts *c = data;
	const struct model_pod *pod = thing;
	c->pods += pod->charged != NULL;
	c->pods_waiting += !pod->charged && !pod->is_bound;
	c->reservations += pod->reserved.node != NULL;
}

static void count_gang(void *data, void *thing)
{
	struct model_counts *c = data;
	const struct gang *gang = thing;
	const struct gang_counts counts = gang_counts_of(gang);
	bool is_placed = gang->size &&
			 counts.count[GANG_BOUND] + counts.count[GANG_NEEDS_NO_CARDS] >= gang->size;
	c->gangs_placed += is_placed;
	c->gangs_waiting += gang->size && !is_placed && !gang_has_begun(&counts);
}

struct model_counts model_counts(const struct model *m)
{
	struct model_counts c = { 0 };
	string_map_each(&m->nodes, count_node, &c);
	string_map_each(&m->pods, count_pod, &c);
	string_map_each(&m->gangs, count_gang, &c);
	return c;
}

struct walk {
	void (*card)(void *data, const struct model_card_view *view);
	void (*share)(void *data, const struct model_share_view *view);
	void *data;
	uint64_t now_ns;
};

static void show_cards(void *data, void *thing)
{
	const struct walk *walk = data;
	const struct model_node *node = thing;
	for (unsigned i = 0; i < node->inventory.count; i++) {
		const struct use_card *use = use_of(&node->use, i, walk->now_ns);
		walk->card(walk->data, &(struct model_card_view){
					       .node = node->name,
					       .index = i,
					       .card = &node->inventory.card[i],
					       .use = use,
					       .borrowed_pct = node->inventory.use[i].borrowed_pct,
					       .cooldown_for_ns = opportunistic_cooldown_for_ns(
						       use, walk->now_ns) });
	}
}

void model_each_card(const struct model *m,
		     void (*each)(void *data, const struct model_card_view *view), void *data)
{
	string_map_each(&m->nodes, show_cards,
			&(struct walk){ .card = each, .data = data, .now_ns = m->now_ns });
}

static void show_shares(void *data, void *thing)
{
	const struct walk *walk = data;
	const struct model_pod *pod = thing;
	const struct model_allocation *charged = pod->charged;
	for (unsigned i = 0; charged && i < charged->shares.count; i++) {
		const struct inventory_share *s = &charged->shares.share[i];
		walk->share(walk->data,
			    &(struct model_share_view){ .pod_namespace = pod->pod_namespace,
							.pod = model_pod_name(pod),
							.uid = pod->text,
							.node = charged->node->name,
							.card = s->card,
							.container = s->container,
							.memory_mib = s->memory_mib,
							.cores_pct = s->cores_pct });
	}
}

void model_each_share(const struct model *m,
		      void (*each)(void *data, const struct model_share_view *view), void *data)
{
	string_map_each(&m->pods, show_shares, &(struct walk){ .share = each, .data = data });
}
