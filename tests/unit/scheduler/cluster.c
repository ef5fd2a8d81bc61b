#include "cluster.h"

#include "kube/hami/annotations.h"

json_t *object_of(const char *format, ...)
{
	char *text = NULL;
	json_error_t why;
	va_list args;
	va_start(args, format);
	assert_true(vasprintf(&text, format, args) >= 0);
	va_end(args);
	json_t *object = json_loads(text, 0, &why);
	if (!object)
		fail_msg("%s: %s", why.text, text);
	free(text);
	return object;
}

void annotate(json_t *object, const char *name, const char *value)
{
	json_t *meta = json_object_get(object, "metadata");
	if (!json_object_get(meta, "annotations"))
		json_object_set_new(meta, "annotations", json_object());
	json_object_set_new(json_object_get(meta, "annotations"), name, json_string(value));
}

json_t *node_saying(const char *name, const char *cards, const char *cordon)
{
	json_t *node = object_of("{\"metadata\":{\"name\":\"%s\"}}", name);
	if (cards)
		annotate(node, KUBE_NODE_REGISTER, cards);
	if (cordon)
		annotate(node, KUBE_NODE_CORDON, cordon);
	return node;
}

json_t *node_object(const char *name, unsigned cards, uint64_t memory_mib, unsigned cores_pct)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < cards; i++)
		json_array_append_new(
			list, object_of("{\"id\":\"%s-%u\",\"index\":%u,\"count\":10,\"devmem\":%llu,"
					"\"devcore\":%u,\"type\":\"NVIDIA-H200\",\"numa\":%u,"
					"\"mode\":\"hami-core\",\"health\":true}",
					name, i, i, (unsigned long long)memory_mib, cores_pct,
					i >= (cards + 1) / 2));
	char *text = json_dumps(list, JSON_COMPACT);
	json_t *node = node_saying(name, text, NULL);
	free(text);
	json_decref(list);
	return node;
}

json_t *pod_object(const char *name, const char *limits)
{
	return object_of("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"uid-%s\","
			 "\"resourceVersion\":\"1\"},\"spec\":{\"containers\":[{\"name\":\"main\","
			 "\"resources\":{\"limits\":{%s}}}]},\"status\":{\"phase\":\"Pending\"}}",
			 name, name, limits);
}

void allocate(json_t *pod, const char *node, const char *shares, const char *phase, bool is_bound)
{
	annotate(pod, KUBE_POD_NODE, node);
	annotate(pod, KUBE_POD_TO_ALLOCATE, shares);
	annotate(pod, KUBE_POD_ALLOCATED, shares);
	annotate(pod, KUBE_POD_BIND_PHASE, phase);
	if (is_bound)
		json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string(node));
}

struct model *model_of_nothing(void)
{
	struct model *m;
	const struct model_terms terms = { .request = request_terms_default,
					   .gang_hold_ns = GANG_HOLD_NS };
	assert_int_equal(model_new(&terms, &m), 0);
	for (enum model_kind kind = MODEL_NODES; kind <= MODEL_QUOTAS; kind++) {
		model_list_begin(m, kind);
		model_list_end(m, kind);
	}
	return m;
}

void give_node(struct model *m, json_t *node)
{
	struct error err;
	if (model_update_node(m, node, &err) < 0)
		fail_msg("%s", err.text);
	json_decref(node);
}

void give_pod(struct model *m, json_t *pod)
{
	struct error err;
	if (model_update_pod(m, pod, &err) < 0)
		fail_msg("%s", err.text);
	json_decref(pod);
}

void give_quota(struct model *m, const char *name, const char *hard)
{
	struct error err;
	json_t *quota = object_of("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\"},"
				  "\"spec\":{\"hard\":{%s}}}",
				  name, hard);
	if (model_update_quota(m, quota, &err) < 0)
		fail_msg("%s", err.text);
	json_decref(quota);
}

json_t *filter_args(json_t *pod, const char *nodes)
{
	json_t *names = json_array();
	char copy[4096], *rest = copy;
	snprintf(copy, sizeof(copy), "%s", nodes);
	for (char *name; (name = strsep(&rest, ","));)
		json_array_append_new(names, json_string(name));
	return json_pack("{s:o,s:n,s:o}", "Pod", pod, "Nodes", "NodeNames", names);
}

json_t *bind_args(const char *pod, const char *node)
{
	return object_of("{\"PodName\":\"%s\",\"PodNamespace\":\"ns\",\"PodUID\":\"uid-%s\","
			 "\"Node\":\"%s\"}",
			 pod, pod, node);
}

const char *fitting(const json_t *answer)
{
	static char text[4096];
	const json_t *names = json_object_get(answer, "NodeNames");
	json_t *one;
	size_t i, at = 0;
	text[0] = '\0';
	json_array_foreach(names, i, one) at += (size_t)snprintf(
		text + at, sizeof(text) - at, "%s%s", i ? "," : "", json_string_value(one));
	return text;
}

const char *reason_of(const json_t *answer, const char *node)
{
	const json_t *failed = json_object_get(answer, "FailedNodes");
	const json_t *hopeless = json_object_get(answer, "FailedAndUnresolvableNodes");
	const char *text = json_string_value(json_object_get(failed, node));
	const char *other = json_string_value(json_object_get(hopeless, node));
	return text ? text : other ? other : "";
}

struct looking {
	const char *uuid;
	bool is_found;
	struct place_card card;
};

static void look(void *data, const struct model_card_view *view)
{
	struct looking *l = data;
	if (strcmp(view->card->uuid, l->uuid) != 0)
		return;
	l->is_found = true;
	l->card = *view->card;
}

struct place_card card_of(const struct model *m, const char *uuid)
{
	struct looking l = { .uuid = uuid };
	model_each_card(m, look, &l);
	if (!l.is_found)
		fail_msg("%s: no such card", uuid);
	return l.card;
}
