#include "scheduler/explain/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kube/util/sanitize.h"
#include "scheduler/explain/explain_node.h"
#include "scheduler/extender/extender_gang.h"

/* most card types that are listed; a cluster has a handful */
#define TYPES_MAX 32

struct pod_search {
	const struct explain_query *query;
	struct model_pod *found;
};

/* A pod and its replacement may have the same name: prefer the one that is not terminating. */
static void match_pod(void *data, void *thing)
{
	struct pod_search *l = data;
	struct model_pod *pod = thing;
	if (!strcmp(model_pod_name(pod), l->query->pod) &&
	    !strcmp(pod->pod_namespace, l->query->pod_namespace) &&
	    (!l->found || l->found->is_terminating))
		l->found = pod;
}

static json_t *list_words(struct place_words words)
{
	json_t *list = json_array();
	for (size_t i = 0; i < words.count; i++)
		json_array_append_new(list, json_string(words.word[i]));
	return list;
}

static void add_words(json_t *to, const char *name, struct place_words words)
{
	if (words.count)
		json_object_set_new(to, name, list_words(words));
}

static json_t *show_part(const struct request_part *part)
{
	const struct place_request *r = &part->place;
	json_t *one = json_pack("{s:i,s:s,s:i,s:i}", "container", (int)part->container, "kind",
				part->is_init      ? "init"
				: part->is_sidecar ? "sidecar"
						   : "app",
				"cards", (int)r->count, "cores_pct", (int)(r->cores_mpct / MPCT));
	if (r->memory == PLACE_MEMORY_BYTES)
		json_object_set_new(one, "memory_mib",
				    json_integer((json_int_t)(r->memory_bytes >> MIB_BITS)));
	else
		json_object_set_new(one, "memory_pct",
				    json_integer(r->memory == PLACE_MEMORY_PCT
							 ? (json_int_t)r->memory_pct
							 : 100));
	add_words(one, "use_uuid", r->use_uuid);
	add_words(one, "nouse_uuid", r->nouse_uuid);
	if (r->numa_bind)
		json_object_set_new(one, "numa_bind", json_true());
	return one;
}

static void add_request(json_t *to, const struct request *request)
{
	json_t *list = json_array();
	for (size_t i = 0; i < request->count; i++)
		json_array_append_new(list, show_part(&request->part[i]));
	json_object_set_new(to, "asks", list);
	add_words(to, "use_type", request->use_type);
	add_words(to, "nouse_type", request->nouse_type);
	if (request->is_opportunistic)
		json_object_set_new(to, "placed_by", json_string("use"));
	json_object_set_new(to, "node_policy",
			    json_string(request_node_policy_names[request->node_policy]));
	if (request->is_mutex)
		json_object_set_new(to, "mutex", json_true());
	if (request->mode)
		json_object_set_new(to, "mode", json_string(request->mode));
}

static json_t *list_shares(const struct inventory_shares *shares)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < shares->count; i++) {
		const struct inventory_share *s = &shares->share[i];
		json_t *one = json_pack("{s:i,s:s}", "container", (int)s->container, "card",
					s->card);
		explain_add_share(one, s);
		json_array_append_new(list, one);
	}
	return list;
}

static const char *state_of(const struct model_pod *pod)
{
	if (pod->is_terminating)
		return "ending";
	if (pod->is_bound)
		return "bound";
	return pod->charged ? "reserved" : "waiting";
}

static json_t *show_pod(const struct model *m, const struct model_pod *pod)
{
	const struct model_allocation *allocation = pod->charged;
	json_t *object = json_pack("{s:s,s:s,s:s,s:s}", "namespace", pod->pod_namespace, "pod",
				   model_pod_name(pod), "uid", pod->text, "state", state_of(pod));
	if (allocation) {
		json_object_set_new(object, "on", json_string(allocation->node->name));
		json_object_set_new(object, "shares", list_shares(&allocation->shares));
	}
	if (allocation && allocation->expires_ns > m->now_ns)
		json_object_set_new(object, "held_for_s",
				    json_integer((json_int_t)((allocation->expires_ns - m->now_ns) /
							      NSEC_PER_SEC)));
	if (pod->request_error)
		json_object_set_new(object, "broken", explain_text(pod->request_error));
	struct gang_answer gang;
	if (extender_gang_why(pod, &gang))
		json_object_set_new(object, "gang", explain_text(gang.text));
	if (pod->request)
		add_request(object, pod->request);
	return object;
}

/* Adds the quota of the pod's namespace, and how much of it other pods use. */
static void add_quotas(json_t *to, const struct model *m, const struct model_pod *pod)
{
	const struct model_namespace *space = model_find_limited(m, pod->pod_namespace);
	json_t *list = space ? json_array() : NULL;
	for (enum quota_kind k = 0; space && k < QUOTA_KINDS; k++)
		if (space->limits.has[k])
			json_array_append_new(list,
					      json_pack("{s:s,s:I,s:I}", "resource",
							quota_resource(&m->terms.request, k),
							"limit", (json_int_t)space->limits.most[k],
							"used", (json_int_t)space->used.of[k]));
	if (list)
		json_object_set_new(to, "quotas", list);
}

struct kind {
	const char *type; /* interned, so equal types have equal addresses */
	unsigned cards;
	uint64_t memory_bytes; /* of the largest card of this type */
};

struct survey {
	size_t nodes, nodes_without, nodes_aside, cards, cordoned, sick;
	unsigned most_cards; /* on one node */
	struct kind kind[TYPES_MAX];
	unsigned kinds;
	/* nodes that have cards, or whose description of cards was rejected; owned */
	const struct model_node **node;
	size_t count;
};

static void count_kind(struct survey *s, const struct place_card *card)
{
	unsigned i = 0;
	while (i < s->kinds && s->kind[i].type != card->type)
		i++;
	if (i == TYPES_MAX)
		return;
	if (i == s->kinds)
		s->kind[s->kinds++] = (struct kind){ .type = card->type };
	s->kind[i].cards++;
	if (card->memory_total_bytes > s->kind[i].memory_bytes)
		s->kind[i].memory_bytes = card->memory_total_bytes;
}

static void survey_node(void *data, void *thing)
{
	struct survey *s = data;
	const struct model_node *node = thing;
	if (!node->exists)
		return;
	s->nodes_aside += node->cards_error != NULL;
	s->nodes_without += !node->cards_error && !node->inventory.count;
	s->nodes += !node->cards_error && node->inventory.count;
	if (!node->cards_error && !node->inventory.count)
		return;
	for (unsigned i = 0; i < node->inventory.count; i++) {
		s->cordoned += node->inventory.card[i].is_cordoned;
		s->sick += node->inventory.card[i].is_sick;
		count_kind(s, &node->inventory.card[i]);
	}
	s->cards += node->inventory.count;
	if (node->inventory.count > s->most_cards)
		s->most_cards = node->inventory.count;
	s->node[s->count++] = node;
}

static int compare_names(const void *a, const void *b)
{
	const struct model_node *const *one = a, *const *other = b;
	return strcmp((*one)->name, (*other)->name);
}

static int make_survey(const struct model *m, struct survey *ret)
{
	*ret = (struct survey){ .node = calloc(m->nodes.count + 1, sizeof(struct model_node *)) };
	if (!ret->node)
		return -ENOMEM;
	string_map_each(&m->nodes, survey_node, ret);
	qsort(ret->node, ret->count, sizeof(*ret->node), compare_names);
	return 0;
}

static json_t *show_survey(const struct survey *s)
{
	json_t *types = json_array();
	for (unsigned i = 0; i < s->kinds; i++)
		json_array_append_new(types,
				      json_pack("{s:s,s:i,s:I}", "type", s->kind[i].type, "cards",
						(int)s->kind[i].cards, "memory_mib",
						(json_int_t)(s->kind[i].memory_bytes >> MIB_BITS)));
	return json_pack("{s:I,s:I,s:I,s:I,s:i,s:I,s:I,s:o}", "nodes", (json_int_t)s->nodes,
			 "nodes_without_cards", (json_int_t)s->nodes_without, "nodes_aside",
			 (json_int_t)s->nodes_aside, "cards", (json_int_t)s->cards,
			 "most_cards_of_a_node", (int)s->most_cards, "cards_cordoned",
			 (json_int_t)s->cordoned, "cards_not_healthy", (json_int_t)s->sick, "types",
			 types);
}

static void add_nodes(json_t *to, struct model *m, struct model_pod *pod,
		      const struct survey *survey, const struct model_node *only)
{
	json_t *list = json_array();
	/* The pod's present shares do not count, because new ones would replace them. */
	model_suspend_charge(pod);
	fit_begin(&m->fit, pod->request);
	model_apply_quota(m, pod->pod_namespace);
	add_quotas(to, m, pod);
	if (only)
		json_array_append_new(list, explain_node(m, only, pod, true));
	for (size_t i = 0; !only && i < survey->count; i++)
		json_array_append_new(list, explain_node(m, survey->node[i], pod, false));
	model_restore_charge(pod);
	json_object_set_new(to, "nodes", list);
}

int explain_known(struct model *m, struct model_pod *pod, const struct model_node *only,
		  json_t **ret, struct error *err)
{
	struct survey survey;
	json_t *object = NULL;
	if (make_survey(m, &survey) >= 0)
		object = show_pod(m, pod);
	if (!object) {
		free(survey.node);
		return error_set_errno(err, ENOMEM, "pod %.63s/%.253s", pod->pod_namespace,
				       model_pod_name(pod));
	}
	json_object_set_new(object, "cluster", show_survey(&survey));
	if (pod->request && pod->request->count)
		add_nodes(object, m, pod, &survey, only);
	free(survey.node);
	*ret = object;
	return 0;
}

int explain_pod(struct model *m, const struct explain_query *query, json_t **ret, struct error *err)
{
	struct pod_search pod_search = { .query = query };
	int r = model_check_ready(m, err);
	if (r < 0)
		return r;
	string_map_each(&m->pods, match_pod, &pod_search);
	if (!pod_search.found)
		return error_sanitize(
			err,
			error_set(err, ENOENT,
				  "pod %.63s/%.253s: not found: it requests no GPU, or does not exist",
				  query->pod_namespace, query->pod));
	const struct model_node *only = query->node ? model_find_node(m, query->node) : NULL;
	if (query->node && !only)
		return error_sanitize(
			err, error_set(err, ENOENT,
				       "node %.253s: not found: it does not exist, or has no GPUs",
				       query->node));
	return explain_known(m, pod_search.found, only, ret, err);
}
