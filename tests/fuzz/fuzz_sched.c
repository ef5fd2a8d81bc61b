/*
 * What a scheduler hears: objects of a watch and calls of the extender's verbs, one a line, whose first letter says what it
 * is. However wrong they are, each is answered or refused in one line, what was decided fits the cards and the namespace's
 * quota, and what ends gives everything back.
 */
#include "fuzz.h"

#include <errno.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "json_arena.h"
#include "kube/hami/annotations.h"
#include "kube/util/untrusted_json.h"
#include "scheduler/explain/explain.h"
#include "scheduler/extender/extender.h"
#include "scheduler/request/request_annotations.h"
#include "verbs.h"

#define SECOND UINT64_C(1000000000)
#define NODE "n"

struct fuzzing {
	struct model *model;
	uint64_t now_ns;
	const struct kube_shares *decided; /* to be looked for among the cards */
};

static void check_error(const struct error *err)
{
	FUZZ_CHECK(err->code > 0 && err->text[0]);
	FUZZ_CHECK(*text_clean_prefix_end(err->text, sizeof(err->text)) == '\0');
}

/* ---- objects ---- */

static void see_node(struct fuzzing *f, const json_t *node)
{
	struct error err = { 0 };
	if (model_update_node(f->model, node, &err) < 0)
		check_error(&err);
}

static void see_pod(struct fuzzing *f, const json_t *pod)
{
	struct error err = { 0 };
	if (model_update_pod(f->model, pod, &err) < 0)
		check_error(&err);
}

static void see_quota(struct fuzzing *f, const json_t *quota)
{
	struct error err = { 0 };
	if (model_update_quota(f->model, quota, &err) < 0)
		check_error(&err);
}

static void end_quota(struct fuzzing *f, const json_t *quota)
{
	model_remove_quota(f->model, quota);
}

static void end_node(struct fuzzing *f, const json_t *node)
{
	const char *name = json_string_value(
		json_object_get(json_object_get(node, "metadata"), "name"));
	if (name)
		model_remove_node(f->model, name);
}

static void end_pod(struct fuzzing *f, const json_t *pod)
{
	model_remove_pod(f->model, pod);
}

/* ---- verbs ---- */

static bool has_node(const json_t *answer)
{
	const json_t *names = json_object_get(answer, "NodeNames");
	for (size_t i = 0; i < json_array_size(names); i++)
		if (!strcmp(json_string_value(json_array_get(names, i)), NODE))
			return true;
	return false;
}

static void check_card(void *data, const struct model_card_view *view)
{
	const struct fuzzing *f = data;
	const struct place_card *card = view->card;
	for (size_t i = 0; i < f->decided->count; i++)
		if (!strcmp(f->decided->share[i].card, card->uuid) && !strcmp(view->node, NODE)) {
			FUZZ_CHECK(card->memory_used_bytes <= card->memory_total_bytes);
			FUZZ_CHECK(card->cores_used_mpct <= card->cores_total_mpct);
			FUZZ_CHECK(card->slots_used <= card->slots_total);
		}
}

/* Others may have more than it by what was noted elsewhere: nobody is given more of that. */
static void check_quota(const struct fuzzing *f, const struct decision *d)
{
	uint64_t gets[QUOTA_KINDS] = { [QUOTA_GPUS] = d->shares.count };
	struct model_quota_view view;
	for (size_t i = 0; i < d->shares.count; i++) {
		gets[QUOTA_MEMORY] += d->shares.share[i].memory_mib;
		gets[QUOTA_CORES] += d->shares.share[i].cores_pct;
	}
	if (!model_find_quota(f->model, d->pod_namespace, &view))
		return;
	for (int k = 0; k < QUOTA_KINDS; k++)
		FUZZ_CHECK(!view.limits.has[k] || !gets[k] ||
			   view.used.of[k] <= view.limits.most[k]);
}

static void check_nothing_used(void *data, const struct model_quota_view *view)
{
	/* There is nobody left, and nothing that they may have. */
	FUZZ_CHECK(!view);
}

static void bind(struct fuzzing *f, const json_t *args)
{
	struct decision d;
	struct error err = { 0 };
	if (extender_decide(f->model, args, f->now_ns, &d, &err) < 0) {
		check_error(&err);
		return;
	}
	f->decided = &d.shares;
	if (!strcmp(d.node, NODE))
		model_each_card(f->model, check_card, f);
	check_quota(f, &d);
	decision_free(&d);
}

/* Nothing changes by it, and each node has a verdict. */
static void explain(struct fuzzing *f, const json_t *meta)
{
	struct explain_query ask = { json_string_value(json_object_get(meta, "namespace")),
				     json_string_value(json_object_get(meta, "name")), NULL };
	struct model_counts before = model_counts(f->model);
	for (unsigned i = 0; i < 2 && ask.pod_namespace && ask.pod; i++, ask.node = NODE) {
		struct error err = { 0 };
		json_t *answer, *node;
		size_t k;
		if (explain_pod(f->model, &ask, &answer, &err) < 0) {
			check_error(&err);
			continue;
		}
		FUZZ_CHECK(json_object_get(answer, "state") && json_object_get(answer, "cluster"));
		json_array_foreach(json_object_get(answer, "nodes"), k, node)
			FUZZ_CHECK(json_object_get(node, "verdict"));
		json_decref(answer);
	}
	struct model_counts after = model_counts(f->model);
	FUZZ_CHECK(!memcmp(&before, &after, sizeof(before)));
}

static void filter(struct fuzzing *f, const json_t *args)
{
	json_t *answer = verbs_filter(f->model, args);
	FUZZ_CHECK(json_is_object(answer));
	const json_t *meta = json_object_get(json_object_get(args, "Pod"), "metadata");
	explain(f, meta);
	if (has_node(answer)) {
		json_t *call = json_pack("{s:O,s:O,s:O,s:s}", "PodNamespace",
					 json_object_get(meta, "namespace"), "PodName",
					 json_object_get(meta, "name"), "PodUID",
					 json_object_get(meta, "uid"), "Node", NODE);
		bind(f, call);
		json_decref(call);
	}
	json_decref(answer);
}

static void prioritize(struct fuzzing *f, const json_t *args)
{
	json_t *answer = verbs_prioritize(f->model, args), *one;
	size_t i;
	FUZZ_CHECK(json_is_array(answer));
	json_array_foreach(answer, i, one)
	{
		json_int_t score = json_integer_value(json_object_get(one, "Score"));
		FUZZ_CHECK(score >= 0 && score <= 10);
	}
	json_decref(answer);
}

static void preempt(struct fuzzing *f, const json_t *args)
{
	struct model_counts before = model_counts(f->model);
	json_t *answer = extender_preempt(f->model, args);
	FUZZ_CHECK(json_is_object(json_object_get(answer, "NodeNameToMetaVictims")));
	struct model_counts after = model_counts(f->model);
	FUZZ_CHECK(!memcmp(&before, &after, sizeof(before)));
	json_decref(answer);
}

/* ---- texts in objects that are else as they should be ---- */

static void see_node_with(struct fuzzing *f, const char *name, const char *text)
{
	json_t *node = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "name", NODE, "annotations", name,
				 text);
	if (node)
		see_node(f, node);
	json_decref(node);
}

/* Of the namespace of those below. */
static void see_quota_with(struct fuzzing *f, const char *text)
{
	static const char *const keys[] = { "limits.nvidia.com/gpumem",
					    "limits.nvidia.com/gpucores", "limits.nvidia.com/gpu" };
	json_t *quota = json_pack("{s:{s:s,s:s},s:{s:{s:s}}}", "metadata", "name", "t", "namespace",
				  "n", "spec", "hard", keys[strlen(text) % 3], text);
	if (quota)
		see_quota(f, quota);
	json_decref(quota);
}

/* A pod of uid "t" that asks for that, notes that, and wishes that. */
static void see_pod_with(struct fuzzing *f, const char *limit, const char *text, const char *name,
			 const char *value)
{
	json_t *pod = json_pack("{s:{s:s,s:s,s:s,s:s,s:{s:s,s:s}},s:{s:[{s:s,s:{s:{s:s}}}]}}",
				"metadata", "name", "t", "namespace", "n", "uid", "t",
				"resourceVersion", "1", "annotations", KUBE_POD_NODE, NODE, name,
				value, "spec", "containers", "name", "a", "resources", "limits",
				limit, text);
	if (!pod)
		return; /* no UTF-8: no API server lets it in */
	json_t *args = json_pack("{s:O,s:[s]}", "Pod", pod, "NodeNames", NODE);
	see_pod(f, pod);
	filter(f, args);
	json_decref(args);
	json_decref(pod);
}

/* Once it may. */
static void begin_binding(struct fuzzing *f, const char *uid)
{
	char text[256];
	FUZZ_CHECK(model_bind_permit_text(f->model, uid, text, sizeof(text)) > 0);
	if (model_bind_permit(f->model, uid) == MODEL_PERMIT_ALLOW)
		model_binding_started(f->model, uid);
}

static void take_told(struct fuzzing *f)
{
	struct model_requeue_pod pods[4];
	struct model_unsized groups[4];
	FUZZ_CHECK(model_take_requeue(f->model, pods, 4) <= 4);
	FUZZ_CHECK(model_take_unsized(f->model, groups, 4) <= 4);
}

static void take_text(struct fuzzing *f, char what, const char *text)
{
	static const char *const limits[] = { "nvidia.com/gpu", "nvidia.com/gpumem",
					      "nvidia.com/gpumem-percentage", "nvidia.com/gpucores",
					      "tencent.com/vcuda-core" };
	static const char *const wishes[] = { REQUEST_USE_TYPE,   REQUEST_NOUSE_UUID,
					      REQUEST_NUMA_BIND,  REQUEST_MODE,
					      REQUEST_GPU_POLICY, REQUEST_NODE_POLICY,
					      REQUEST_WEIGHTS };
	size_t length = strlen(text);
	switch (what) {
	case 'C': see_node_with(f, KUBE_NODE_REGISTER, text); break;
	case 'S': see_pod_with(f, limits[0], "1", KUBE_POD_ALLOCATED, text); break;
	case 'L': see_pod_with(f, limits[length % 5], text, REQUEST_NUMA_BIND, "false"); break;
	case 'W': see_pod_with(f, limits[0], "2", wishes[length % 7], text); break;
	case 'Q': see_quota_with(f, text); break;
	case 'G': see_pod_with(f, limits[0], "1", KUBE_LIVE_DOMAIN "/" KUBE_GANG, text); break;
	case 'Z': see_pod_with(f, limits[0], "1", KUBE_LIVE_DOMAIN "/" KUBE_GANG_SIZE, text); break;
	case 'K': model_set_bind_waiting(f->model, text, true); break;
	case 'J': begin_binding(f, text); break;
	case 'U': take_told(f); break;
	case 'R': model_release(f->model, text); break;
	case 'T':
		f->now_ns += length * 100 * SECOND;
		model_advance(f->model, f->now_ns);
		break;
	case 'B': model_list_begin(f->model, length % 3); break;
	case 'E': model_list_end(f->model, length % 3); break;
	default: break;
	}
}

/* ---- lines ---- */

static const struct {
	char letter;
	void (*take)(struct fuzzing *f, const json_t *object);
} rows[] = {
	{ 'n', see_node },  { 'm', end_node },   { 'p', see_pod }, { 'q', end_pod },
	{ 'f', filter },    { 's', prioritize }, { 'v', preempt }, { 'b', bind },
	{ 'u', see_quota }, { 'w', end_quota },
};

/* What a caller sends is read as the JSON library alone would, and the names in it are the same. */
static void check_reading(const char *text)
{
	struct call_args *args = NULL;
	struct error err = { 0 };
	json_t *all = untrusted_json_parse(text, strlen(text), JSON_REJECT_DUPLICATES, NULL);
	int r = call_args_read(text, strlen(text), &args, &err);
	FUZZ_CHECK((r == 0) == (all != NULL));
	if (r < 0)
		check_error(&err);
	const json_t *names = json_object_get(all, "NodeNames");
	bool is_by_names = all && !json_is_object(json_object_get(all, "Nodes"));
	if (is_by_names)
		FUZZ_CHECK(args->count == json_array_size(names));
	for (size_t i = 0; is_by_names && i < args->count; i++) {
		const char *name = json_string_value(json_array_get(names, i));
		FUZZ_CHECK(!args->name[i].text || (name && !strcmp(args->name[i].text, name)));
	}
	call_args_put(args);
	json_decref(all);
}

static void take_line(struct fuzzing *f, const char *line)
{
	const size_t count = sizeof(rows) / sizeof(rows[0]);
	size_t row = 0;
	while (row < count && rows[row].letter != *line)
		row++;
	if (row == count) {
		take_text(f, *line, *line ? line + 1 : line);
		return;
	}
	check_reading(line + 1);
	json_t *object = json_loads(line + 1, 0, NULL);
	if (json_is_object(object))
		rows[row].take(f, object);
	json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *rest = text;
	struct model_terms terms = { .request = request_terms_default, .gang_hold_ns = 30 * SECOND };
	struct model_eviction evictions[4];
	terms.request.places_by_use = true;
	json_arena_begin();
	struct fuzzing f = { .now_ns = SECOND };
	FUZZ_CHECK(model_new(&terms, &f.model) == 0);
	for (enum model_kind kind = MODEL_NODES; kind <= MODEL_QUOTAS; kind++) {
		model_list_begin(f.model, kind);
		model_list_end(f.model, kind);
	}
	for (char *line; (line = strsep(&rest, "\n"));)
		take_line(&f, line);
	FUZZ_CHECK(model_take_evictions(f.model, 0, evictions, 4) <= 4);
	/* A list that names nothing ends everything. */
	for (enum model_kind kind = MODEL_NODES; kind <= MODEL_QUOTAS; kind++) {
		model_list_begin(f.model, kind);
		model_list_end(f.model, kind);
	}
	model_advance(f.model, f.now_ns + 1000 * SECOND);
	struct model_counts counts = model_counts(f.model);
	model_each_quota(f.model, check_nothing_used, NULL);
	FUZZ_CHECK(!counts.nodes && !counts.nodes_rejected && !counts.pods && !counts.pods_waiting);
	FUZZ_CHECK(!counts.reservations && !counts.gangs_waiting && !counts.gangs_placed);
	model_free(f.model);
	free(text);
	json_arena_end();
	return 0;
}
