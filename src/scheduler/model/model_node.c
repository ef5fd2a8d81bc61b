#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/util/object.h"
#include "kube/util/sanitize.h"
#include "kube/util/quantity.h"
#include "scheduler/model/model_inside.h"
#include "scheduler/opportunistic/cooldown.h"

static void forget_cards(struct model *m, struct model_node *node)
{
	model_room_forget(m, node);
	inventory_free(&node->inventory);
	free(node->cards_error);
	node->cards_error = NULL;
	node->annotations_digest = 0;
}

static void drop_if_unused(struct model *m, struct model_node *node)
{
	if (node->exists || node->references)
		return;
	string_map_remove(&m->nodes, &node->entry);
	forget_cards(m, node);
	use_free(&node->use);
	free(node);
}

struct model_node *model_node_get(struct model *m, const char *name)
{
	struct model_node *node = string_map_find(&m->nodes, name);
	if (!node) {
		node = calloc(1, sizeof(*node) + strlen(name) + 1);
		if (!node)
			return NULL;
		strcpy(node->name, name);
		string_map_add(&m->nodes, &node->entry, node->name);
	}
	node->references++;
	return node;
}

void model_node_put(struct model *m, struct model_node *node)
{
	node->references--;
	drop_if_unused(m, node);
}

struct model_node *model_find_node(const struct model *m, const char *name)
{
	struct model_node *node = string_map_find(&m->nodes, name);
	return node && node->exists ? node : NULL;
}

static const char *annotation(const json_t *node, const char *name)
{
	const json_t *meta = json_object_get(node, "metadata");
	return json_string_value(json_object_get(json_object_get(meta, "annotations"), name));
}

/* If the cards' measured use cannot be read, opportunistic pods are placed by guarantees instead. */
static int read_use(struct model *m, struct model_node *node, const json_t *object,
		    struct error *err)
{
	if (!m->terms.request.places_by_use)
		return 0;
	struct error why = { 0 };
	int r = use_update(&node->use, annotation(object, KUBE_NODE_USE), &node->inventory,
			   m->now_ns, &why);
	node->inventory.seen = &node->use;
	if (r >= 0)
		r = cooldown_load(&node->use, annotation(object, KUBE_NODE_COOLDOWNS),
				  &node->inventory, model_both_clocks(m), &why);
	return r < 0 ? error_set(err, -r, "node %s: %s", node->name, why.text) : 0;
}

/* Without its device plugin, a kubelet still lists the resource, with amount 0. Without capacity, it has not reported yet. */
static bool has_resource(const json_t *node, const char *resource)
{
	const json_t *status = json_object_get(node, "status");
	const json_t *amount = json_object_get(json_object_get(status, "allocatable"), resource);
	int64_t devices = 0;
	if (!json_object_size(json_object_get(status, "capacity")))
		return true;
	return amount && quantity_read_any(amount, &devices, NULL) >= 0 && devices > 0;
}

struct inventory_source model_node_source(const struct model *m, const json_t *node)
{
	const struct request_terms *terms = &m->terms.request;
	const unsigned served_names = (has_resource(node, terms->count) ? REQUEST_NAMES_HAMI : 0u) |
				      (has_resource(node, terms->vcuda.cores) ? REQUEST_NAMES_VCUDA
									      : 0u);
	return (struct inventory_source){ .served_names = served_names,
					  .cards = annotation(node, KUBE_NODE_REGISTER),
					  .scores = annotation(node, KUBE_NODE_SCORE),
					  .cordon = annotation(node, KUBE_NODE_CORDON) };
}

static int update_cards(struct model *m, struct model_node *node,
			const struct inventory_source *source, struct error *err)
{
	struct inventory inventory = { 0 };
	struct error why = { 0 };
	int r = inventory_read(source, &m->strings, &inventory, &why);
	if (r == -ENOMEM)
		return error_set_errno(err, ENOMEM, "node %s", node->name);
	forget_cards(m, node);
	node->inventory = inventory;
	for (const struct model_pod *p = node->pods; p; p = p->next)
		inventory_charge(&node->inventory, &p->charged->shares);
	if (r == 0 || r == -ENODATA)
		return 0;
	node->cards_error = strdup(why.text);
	return error_set(err, EINVAL,
			 "node %s gets no pods with GPUs until its list of GPUs is corrected: %s",
			 node->name, why.text);
}

int model_update_node(struct model *m, const json_t *object, struct error *err)
{
	const char *name = object_meta_text(object, "name");
	if (!name)
		return error_set(err, EINVAL, "node without a name");
	const struct inventory_source source = model_node_source(m, object);
	uint64_t digest = digest_add(DIGEST_FIRST, source.cards);
	digest = digest_add(digest_add(digest, source.scores), source.cordon);
	digest = digest * 4 + source.served_names;
	struct model_node *node = model_node_get(m, name);
	if (!node)
		return error_set_errno(err, ENOMEM, "node %s", name);
	int r = 0;
	if (!node->exists || node->annotations_digest != digest) {
		m->generation++;
		r = update_cards(m, node, &source, err);
		model_capacity_freed(m);
	}
	if (r != -ENOMEM) {
		node->annotations_digest = digest;
		node->exists = true;
		node->listed_in = m->list[MODEL_NODES];
	}
	if (r >= 0)
		r = read_use(m, node, object, err);
	model_node_put(m, node);
	/* The error quotes names from the object, perhaps cut inside a UTF-8 character, so it must be made printable. */
	return r < 0 ? error_sanitize(err, r) : 0;
}

static void remove_node(struct model *m, struct model_node *node)
{
	m->generation++;
	node->exists = false;
	forget_cards(m, node);
	use_free(&node->use);
	drop_if_unused(m, node);
}

void model_remove_node(struct model *m, const char *name)
{
	struct model_node *node = model_find_node(m, name);
	if (node)
		remove_node(m, node);
}

static void remove_unlisted(void *data, void *thing)
{
	struct model *m = data;
	struct model_node *node = thing;
	if (node->exists && node->listed_in != m->list[MODEL_NODES])
		remove_node(m, node);
}

void model_nodes_list_end(struct model *m)
{
	string_map_each(&m->nodes, remove_unlisted, m);
}

static void free_node(void *data, void *thing)
{
	struct model_node *node = thing;
	forget_cards(data, node);
	use_free(&node->use);
	free(node);
}

void model_nodes_free(struct model *m)
{
	string_map_each(&m->nodes, free_node, m);
	string_map_free(&m->nodes);
}
