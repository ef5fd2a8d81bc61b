/* The verbs filter, prioritize and bind: nodes by HAMi's formulas, reasons in HAMi's words. */
#include "extender_fixture.h"

#include "verbs.h"

static void test_decide_refuses(void **state)
{
	struct model *m = model_of_nothing();
	json_t *ending = pod_object("ending", GPU), *bare = object_of("{\"PodName\":\"a\"}");
	json_t *other = bind_args("p", "a");
	json_object_set_new(json_object_get(ending, "metadata"), "deletionTimestamp",
			    json_string("now"));
	give_node(m, node_object("a", 1, 8192, 100));
	give_node(m, node_saying("bare", NULL, NULL));
	give_pod(m, pod_object("p", MEMORY("8000")));
	give_pod(m, pod_object("bad", MEMORY("0")));
	give_pod(m, running("r", "a", "a-0,NVIDIA,1000,10:;"));
	give_pod(m, ending);
	json_object_set_new(other, "PodName", json_string("q"));
	refuses(m, bare, -EINVAL,
		"bind request: PodNamespace must be a string that is not empty: is kube-scheduler the caller?");
	refuses(m, other, -ESTALE,
		"pod ns/q: kube-scheduler sent uid uid-p, which belongs to pod ns/p");
	refuses(m, bind_args("q", "a"), -ENOENT,
		"pod ns/q: not found: it requests no GPU, or no longer exists");
	refuses(m, bind_args("p", "b"), -ENOENT, "pod ns/p: node b: not found");
	refuses(m, bind_args("p", "bare"), -ENOSPC, "pod ns/p: node bare: reports no GPUs");
	refuses(m, bind_args("p", "a"), -ENOSPC, "pod ns/p: node a: 1/1 CardInsufficientMemory");
	refuses(m, bind_args("r", "a"), -ESTALE, "pod ns/r: is already bound");
	refuses(m, bind_args("ending", "a"), -ESTALE, "pod ns/ending: is being deleted");
	refuses(m, bind_args("bad", "a"), -EINVAL,
		"pod ns/bad: container main: nvidia.com/gpumem: 0: must be 1 or more");
	model_free(m);
}

/* Before both lists have come nothing is said and nothing is given. */
static void test_not_ready(void **state)
{
	struct model *m;
	const struct model_terms terms = { .request = request_terms_default };
	assert_int_equal(model_new(&terms, &m), 0);
	model_list_begin(m, MODEL_NODES);
	give_node(m, node_object("a", 1, 8192, 100));
	model_list_end(m, MODEL_NODES);
	json_t *args = filter_args(pod_object("p", GPU), "a"), *answer = verbs_filter(m, args);
	assert_string_equal(
		json_string_value(json_object_get(answer, "Error")),
		"the nodes and pods of the cluster are still being read: try again in a moment");
	assert_string_equal(fitting(answer), "");
	refuses(m, bind_args("p", "a"), -EAGAIN,
		"the nodes and pods of the cluster are still being read: try again in a moment");
	json_decref(answer);
	json_decref(args);
	model_free(m);
}

/* The filter's call may come before the watch tells of the pod; what the watch never tells of is forgotten. */
static void test_ahead_of_the_watch(void **state)
{
	struct model *m = model_of_nothing();
	struct decision d;
	struct error err;
	give_node(m, node_object("a", 1, 8192, 100));
	filters(m, pod_object("p", GPU), "a", "a");
	filters(m, pod_object("q", "\"nvidia.com/gpu\":\"0\""), "a", "a");
	json_t *args = bind_args("q", "a");
	assert_int_equal(extender_decide(m, args, 1, &d, &err), 0);
	assert_int_equal(d.shares.count, 0);
	assert_int_equal(d.shares.containers, 1);
	decision_free(&d);
	json_decref(args);
	args = bind_args("p", "a");
	assert_int_equal(extender_decide(m, args, 1, &d, &err), 0);
	decision_free(&d);
	assert_int_equal(card_of(m, "a-0").slots_used, 1);
	/* A list that began before the pod was made does not name it. */
	model_list_begin(m, MODEL_PODS);
	model_list_end(m, MODEL_PODS);
	assert_int_equal(card_of(m, "a-0").slots_used, 1);
	model_advance(m, UINT64_C(302) * 1000000000);
	assert_int_equal(card_of(m, "a-0").slots_used, 0);
	refuses(m, args, -ENOENT, "pod ns/p: not found: it requests no GPU, or no longer exists");
	model_free(m);
}

/* A try that did not come to its end leaves its choice on the pod: that is not in the way of the next. */
static void test_own_choice_is_no_obstacle(void **state)
{
	struct model *m = model_of_nothing();
	json_t *pod = pod_object("p", GPU);
	give_node(m, node_object("a", 1, 8192, 100));
	allocate(pod, "a", "a-0,NVIDIA,8192,100:;", "allocating", false);
	give_pod(m, json_incref(pod));
	filters(m, pod, "a", "a");
	says(m, pod_object("other", GPU), "a", CURABLE, "1/1 CardInsufficientMemory");
	model_free(m);
}

#define S UINT64_C(1000000000)

static void tells(struct model *m, const char *names)
{
	struct model_requeue_pod told[2];
	char text[64] = "";
	size_t count = model_take_requeue(m, told, 2);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(told[i].pod_namespace, "ns");
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? "," : "",
			 told[i].name);
	}
	assert_string_equal(text, names);
}

/* kube-scheduler tries pods again on news that may come to it before they come here: who was told no too early is named. */
static void test_told_no_too_early(void **state)
{
	struct model *m = model_of_nothing();
	model_advance(m, 1 * S);
	give_node(m, node_object("a", 1, 8192, 100));
	give_pod(m, running("r", "a", "a-0,NVIDIA,8192,100:;"));
	const char *const names[] = { "p", "q", "s" };
	for (size_t i = 0; i < 3; i++) {
		give_pod(m, pod_object(names[i], MEMORY("100")));
		filters(m, pod_object(names[i], MEMORY("100")), "a", "");
	}
	give_pod(m, pod_object("broken", MEMORY("-1")));
	filters(m, pod_object("broken", MEMORY("-1")), "a", "");
	/* Nothing has come since. */
	model_advance(m, 9 * S);
	tells(m, "");
	json_t *gone = pod_object("r", GPU);
	model_remove_pod(m, gone);
	json_decref(gone);
	/* One is tried again by itself, and fits. */
	filters(m, pod_object("q", MEMORY("100")), "a", "a");
	model_advance(m, 10 * S);
	tells(m, "");
	model_advance(m, 11 * S);
	tells(m, "s,p");
	tells(m, "");
	/* Each once, until there is other news, of a node too; and more than can be told of at a time come later. */
	for (size_t i = 0; i < 3; i++)
		filters(m, pod_object(names[i], MEMORY("9000")), "a", "");
	model_advance(m, 20 * S);
	tells(m, "");
	give_node(m, node_object("a", 2, 8192, 100));
	model_advance(m, 22 * S);
	tells(m, "s,q");
	tells(m, "p");
	tells(m, "");
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decide_refuses),
		cmocka_unit_test(test_not_ready),
		cmocka_unit_test(test_ahead_of_the_watch),
		cmocka_unit_test(test_own_choice_is_no_obstacle),
		cmocka_unit_test(test_told_no_too_early),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
