/*
 * allot-scheduler in this process: nodes as the API server has them, and each task as a pod that is filtered, ranked, decided
 * and bound, from JSON to JSON. kube-scheduler's part is to ask about the nodes that have the CPUs, and to take the first
 * of those with the highest score.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kube/hami/annotations.h"
#include "packing/cluster.h"
#include "scheduler/extender/extender.h"
#include "verbs.h"

#define SLOTS 20 /* as in rivals.c */
#define TEXT_MAX 64

struct allot {
	struct model *model;
	json_t **name; /* of each node */
	unsigned nodes;
};

static void die(const char *what, const struct error *err)
{
	fprintf(stderr, "packing: allot: %s: %s\n", what, err->text);
	exit(1);
}

/* ---- objects ---- */

static json_t *node_of(const struct packing_node *node, unsigned n)
{
	char name[TEXT_MAX], uuid[TEXT_MAX], type[TEXT_MAX];
	const struct packing_model *model = &packing_models[node->model];
	json_t *cards = json_array();
	snprintf(name, sizeof(name), "node-%u", n);
	snprintf(type, sizeof(type), "NVIDIA-%s", model->name);
	for (unsigned k = 0; k < node->cards; k++) {
		snprintf(uuid, sizeof(uuid), "GPU-%u-%u", n, k);
		json_array_append_new(cards, json_pack("{s:s,s:i,s:i,s:i,s:i,s:s,s:i,s:s,s:b}",
						       "id", uuid, "index", (int)k, "count", SLOTS,
						       "devmem", (int)model->memory_mib, "devcore",
						       100, "type", type, "numa", (int)(k / 4),
						       "mode", "hami-core", "health", 1));
	}
	char *text = json_dumps(cards, JSON_COMPACT);
	json_t *object = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "name", name, "annotations",
				   KUBE_NODE_REGISTER, text);
	free(text);
	json_decref(cards);
	return object;
}

/* The value of its annotation for the accepted models; "" if any is accepted. */
static void name_models(uint32_t models, char *text, size_t size)
{
	size_t at = 0;
	text[0] = '\0';
	for (unsigned m = 0; models != PACKING_ANY_MODEL && m < PACKING_MODELS && at < size; m++)
		if (models >> m & 1)
			at += (size_t)snprintf(text + at, size - at, "%s%s", at ? "," : "",
					       packing_models[m].name);
}

static json_t *pod_of(const struct packing_task *task, unsigned id)
{
	char name[TEXT_MAX], models[TEXT_MAX], count[TEXT_MAX], pct[TEXT_MAX];
	snprintf(name, sizeof(name), "task-%u", id);
	snprintf(count, sizeof(count), "%u", task->cards);
	snprintf(pct, sizeof(pct), "%u", task->milli / 10);
	name_models(task->models, models, sizeof(models));
	json_t *limits = json_pack("{s:s}", "nvidia.com/gpu", count);
	if (task->milli < PACKING_WHOLE_MILLI) {
		json_object_set_new(limits, "nvidia.com/gpumem-percentage", json_string(pct));
		json_object_set_new(limits, "nvidia.com/gpucores", json_string(pct));
	}
	json_t *annotations = json_object();
	if (*models)
		json_object_set_new(annotations, "nvidia.com/use-gputype", json_string(models));
	return json_pack("{s:{s:s,s:s,s:s,s:s,s:o},s:{s:[{s:s,s:{s:o}}]},s:{s:s}}", "metadata",
			 "name", name, "namespace", "day", "uid", name, "resourceVersion", "1",
			 "annotations", annotations, "spec", "containers", "name", "main",
			 "resources", "limits", limits, "status", "phase", "Pending");
}

/* ---- one decision ---- */

static const char *best_of(const json_t *ranks)
{
	const char *best = NULL;
	json_int_t most = -1;
	const json_t *one;
	size_t i;
	json_array_foreach(ranks, i, one)
	{
		json_int_t score = json_integer_value(json_object_get(one, "Score"));
		if (score <= most)
			continue;
		most = score;
		best = json_string_value(json_object_get(one, "Host"));
	}
	return best;
}

/* As the watch tells of it once it is bound. */
static void bind(struct allot *a, json_t *pod, const struct decision *d)
{
	struct error err = { 0 };
	char *shares = shares_format(&d->shares);
	json_t *annotations = json_object_get(json_object_get(pod, "metadata"), "annotations");
	json_object_set_new(annotations, KUBE_POD_NODE, json_string(d->node));
	json_object_set_new(annotations, KUBE_POD_ALLOCATED, json_string(shares));
	json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string(d->node));
	free(shares);
	if (model_update_pod(a->model, pod, &err) < 0)
		die("pod", &err);
}

static struct packing_place place_of(const struct decision *d)
{
	struct packing_place place = { 0 };
	for (size_t i = 0; i < d->shares.count; i++) {
		unsigned node = 0, card = 0;
		if (sscanf(d->shares.share[i].card, "GPU-%u-%u", &node, &card) == 2)
			place.cards |= UINT32_C(1) << card;
		place.node = node;
	}
	return place;
}

bool allot_place(void *data, const struct packing_cluster *cluster, const struct packing_task *task,
		 unsigned id, struct packing_place *ret)
{
	struct allot *a = data;
	struct error err = { 0 };
	struct decision d;
	json_t *names = json_array(), *pod = pod_of(task, id);
	for (unsigned n = 0; n < a->nodes; n++)
		if (packing_has_cpus(cluster, n, task))
			json_array_append(names, a->name[n]);
	json_t *args = json_pack("{s:O,s:n,s:o}", "Pod", pod, "Nodes", "NodeNames", names);
	json_t *answer = verbs_filter(a->model, args);
	error_set(&err, EINVAL, "%s", json_string_value(json_object_get(answer, "Error")));
	if (*err.text)
		die("filter", &err);
	json_object_set(args, "NodeNames", json_object_get(answer, "NodeNames"));
	json_t *ranks = verbs_prioritize(a->model, args);
	const char *best = best_of(ranks), *name = json_string_value(json_object_get(
						   json_object_get(pod, "metadata"), "uid"));
	if (best) {
		json_t *binding = json_pack("{s:s,s:s,s:s,s:s}", "PodName", name, "PodNamespace",
					    "day", "PodUID", name, "Node", best);
		if (extender_decide(a->model, binding, 1, &d, &err) < 0)
			die("bind", &err);
		bind(a, pod, &d);
		*ret = place_of(&d);
		decision_free(&d);
		json_decref(binding);
	}
	bool is_placed = best != NULL;
	json_decref(ranks);
	json_decref(answer);
	json_decref(args);
	json_decref(pod);
	return is_placed;
}

void allot_ended(void *data, unsigned id)
{
	struct allot *a = data;
	char name[TEXT_MAX];
	snprintf(name, sizeof(name), "task-%u", id);
	json_t *pod = json_pack("{s:{s:s}}", "metadata", "uid", name);
	model_remove_pod(a->model, pod);
	json_decref(pod);
}

/* ---- life ---- */

void *allot_begin(const struct packing_policy *policy, const struct packing_cluster *cluster,
		  const struct packing_histogram *histogram, uint64_t seed)
{
	struct allot *a = calloc(1, sizeof(*a));
	struct model_terms terms = { .request = request_terms_default };
	struct error err = { 0 };
	terms.request.node_policy = policy->nodes;
	terms.request.gpu_policy = policy->cards;
	if (!a || model_new(&terms, &a->model) < 0 ||
	    !(a->name = calloc(cluster->nodes, sizeof(*a->name))))
		abort();
	a->nodes = cluster->nodes;
	for (unsigned n = 0; n < cluster->nodes; n++) {
		json_t *node = node_of(&cluster->node[n], n);
		a->name[n] = json_incref(json_object_get(json_object_get(node, "metadata"), "name"));
		if (model_update_node(a->model, node, &err) < 0)
			die("node", &err);
		json_decref(node);
	}
	model_list_end(a->model, MODEL_NODES);
	model_list_end(a->model, MODEL_PODS);
	return a;
}

void allot_end(void *data)
{
	struct allot *a = data;
	for (unsigned n = 0; n < a->nodes; n++)
		json_decref(a->name[n]);
	free(a->name);
	model_free(a->model);
	free(a);
}
