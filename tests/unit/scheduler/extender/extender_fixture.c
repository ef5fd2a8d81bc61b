#include "extender_fixture.h"

#include "verbs.h"

json_t *running_pod(const char *name, const char *node, const char *shares)
{
	json_t *pod = pod_object(name, GPU);
	allocate(pod, node, shares, "success", true);
	return pod;
}

void assert_fits(struct model *m, json_t *pod, const char *nodes, const char *fits)
{
	json_t *args = filter_args(pod, nodes), *answer = verbs_filter(m, args);
	assert_string_equal(fitting(answer), fits);
	assert_string_equal(json_string_value(json_object_get(answer, "Error")), "");
	json_decref(answer);
	json_decref(args);
}

void assert_refused(struct model *m, json_t *pod, const char *node, const char *list,
		    const char *text)
{
	json_t *args = filter_args(pod, node), *answer = verbs_filter(m, args);
	assert_string_equal(fitting(answer), "");
	assert_string_equal(reason_of(answer, node), text);
	assert_non_null(json_object_get(json_object_get(answer, list), node));
	json_decref(answer);
	json_decref(args);
}

json_t *node_of_type(const char *name, unsigned gpus, const char *type)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < gpus; i++)
		json_array_append_new(
			list, object_of("{\"id\":\"%s-%u\",\"count\":10,\"devmem\":16000,"
					"\"devcore\":100,\"type\":\"NVIDIA-%s\",\"health\":true}",
					name, i, type));
	char *text = json_dumps(list, JSON_COMPACT);
	json_t *node = node_saying(name, text, NULL);
	free(text);
	json_decref(list);
	return node;
}

void assert_not_bound(struct model *m, json_t *args, int result, const char *text)
{
	struct decision d;
	struct error err = { 0 };
	assert_int_equal(extender_decide(m, args, 1, &d, &err), result);
	assert_string_equal(err.text, text);
	json_decref(args);
}
