#include "daemon/api/topology.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/api/request_handlers.h"
#include "daemon/api/session.h"
#include "daemon/state/card_promises.h"
#include "daemon/util/json.h"
#include "policy/placement/tree.h"

struct topology {
	struct gpu_locality *locality; /* one for each card */
	struct gpu_link *link;         /* the link of cards a and b is at a * count + b */
};

static_assert(NODE_MAX_CARDS <= PLACE_MAX_CARDS, "every GPU is in the model");

int topology_read(struct node *node, struct topology **ret, struct error *err)
{
	unsigned count = node->card_count;
	struct topology *t = calloc(1, sizeof(*t));
	if (t) {
		t->locality = calloc(count, sizeof(*t->locality));
		t->link = calloc((size_t)count * count, sizeof(*t->link));
	}
	int r = t && t->locality && t->link ? 0 : error_set_errno(err, ENOMEM, "topology");
	for (unsigned i = 0; r >= 0 && node->backend->locality && i < count; i++)
		t->locality[i] = node->backend->locality(node->gpu, i);
	if (r >= 0 && node->backend->links)
		r = node->backend->links(node->gpu, t->link, err);
	if (r < 0) {
		topology_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

struct topology *topology_free(struct topology *topology)
{
	if (topology) {
		free(topology->locality);
		free(topology->link);
	}
	free(topology);
	return NULL;
}

static enum place_level level_of(enum gpu_way way)
{
	switch (way) {
	case GPU_WAY_SYS: return PLACE_LEVEL_SYS;
	case GPU_WAY_NODE: return PLACE_LEVEL_NODE;
	case GPU_WAY_PHB: return PLACE_LEVEL_PHB;
	case GPU_WAY_PXB: return PLACE_LEVEL_PXB;
	case GPU_WAY_PIX: return PLACE_LEVEL_PIX;
	case GPU_WAY_PSB: return PLACE_LEVEL_PSB;
	case GPU_WAY_UNKNOWN: break;
	}
	return PLACE_LEVEL_UNKNOWN;
}

static struct place_card card_of(struct node *node, struct card *card,
				 const struct gpu_locality *locality, const char *key)
{
	struct promise_card promised = node_promised_beside(node, card, key);
	double used_mpct = promised.promised_cores_pct * 1000;

	return (struct place_card){
		.uuid = card->info.uuid_text,
		.type = card->info.name,
		.memory_total_bytes = card->info.memory_bytes,
		.memory_used_bytes = card->info.memory_bytes - promise_unpromised_bytes(&promised),
		.cores_total_mpct = PLACE_CORES_WHOLE_MPCT,
		/* Guarantees may have a sum above 100 %, but the model does not allow that. */
		.cores_used_mpct = used_mpct < PLACE_CORES_WHOLE_MPCT ? (uint32_t)lround(used_mpct)
								      : PLACE_CORES_WHOLE_MPCT,
		.slots_total = UINT32_MAX,
		.slots_used = promised.tenant_count,
		.numa_known = locality->numa_known,
		.numa = locality->numa,
		.is_instance = card->info.is_instance,
		.is_sick = card->health.is_bad,
		.is_cordoned = card->is_cordoned || card->is_cordoned_by_settings,
	};
}

void topology_model(struct node *node, const char *key, struct place_node *ret)
{
	const struct topology *t = node->topology;

	*ret = (struct place_node){ .card_count = node->card_count };
	for (unsigned i = 0; i < node->card_count; i++) {
		ret->card[i] = card_of(node, &node->card[i], &t->locality[i], key);
		for (unsigned j = i + 1; j < node->card_count; j++) {
			const struct gpu_link *link = &t->link[i * node->card_count + j];
			place_node_link(ret, i, j,
					(struct place_link){ .nvlinks = (uint8_t)link->nvlinks,
							     .level = level_of(link->way) });
		}
	}
}

struct gpu_locality topology_locality(const struct node *node, unsigned card)
{
	return node->topology ? node->topology->locality[card] : (struct gpu_locality){ 0 };
}

int topology_numa(const struct node *node, unsigned card)
{
	struct gpu_locality locality = topology_locality(node, card);
	return locality.numa_known ? (int)locality.numa : -1;
}

static json_t *numa_to_json(bool known, unsigned numa)
{
	return known ? json_integer(numa) : json_null();
}

static json_t *level_to_json(enum place_level level)
{
	return level == PLACE_LEVEL_UNKNOWN ? json_null() : json_string(place_level_name(level));
}

static json_t *devices_to_json(const struct node *node)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < node->card_count; i++) {
		const struct gpu_locality *locality = &node->topology->locality[i];
		json_array_append_new(
			list,
			json_pack("{s:i, s:s, s:s, s:o, s:o}", "index", (int)i, "uuid",
				  node->card[i].info.uuid_text, "name", node->card[i].info.name,
				  "pci", *locality->pci ? json_string(locality->pci) : json_null(),
				  "numa", numa_to_json(locality->numa_known, locality->numa)));
	}
	return list;
}

static json_t *links_to_json(const struct place_node *model)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < model->card_count; i++)
		for (unsigned j = i + 1; j < model->card_count; j++) {
			struct place_link link = model->link[i][j];
			json_array_append_new(list, json_pack("{s:[i,i], s:i, s:o, s:i}", "devices",
							      (int)i, (int)j, "nvlinks",
							      (int)link.nvlinks, "pcie",
							      level_to_json(link.level), "score",
							      (int)place_link_score(link)));
		}
	return list;
}

static json_t *group_to_json(const struct place_tree *tree, unsigned index)
{
	const struct place_group *group = &tree->group[index];
	json_t *devices = json_array(), *groups = json_array();
	for (unsigned i = 0; i < PLACE_MAX_CARDS; i++)
		if (group->cards >> i & 1)
			json_array_append_new(devices, json_integer(i));
	for (unsigned i = index + 1; i < tree->count; i++)
		if (tree->group[i].parent == (int)index)
			json_array_append_new(groups, group_to_json(tree, i));
	return json_pack("{s:o, s:o, s:o, s:o}", "pcie", level_to_json(group->level), "numa",
			 numa_to_json(group->numa_known, group->numa), "devices", devices, "groups",
			 groups);
}

int request_topology(struct session *session, const json_t *request, json_t *reply,
		     struct error *err)
{
	struct place_node model;
	struct place_tree tree;
	topology_model(session->node, "", &model);
	place_tree_fill(&tree, &model);
	json_object_set_new(reply, "version", json_integer(1));
	json_object_set_new(reply, "devices", devices_to_json(session->node));
	json_object_set_new(reply, "links", links_to_json(&model));
	json_object_set_new(reply, "tree", group_to_json(&tree, 0));
	return 0;
}
