/* The extender's decisions: pods that cannot be bound, and what it keeps between calls of kube-scheduler. */
#include "extender_fixture.h"

#include "verbs.h"

static void test_pods_that_cannot_be_bound(void **state)
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
	give_pod(m, running_pod("r", "a", "a-0,NVIDIA,1000,10:;"));
	give_pod(m, ending);
	json_object_set_new(other, "PodName", json_string("q"));
	assert_not_bound(
		m, bare, -EINVAL,
		"bind request: PodNamespace must be a string that is not empty: is kube-scheduler the caller?");
	assert_not_bound(
		m, other, -ESTALE,
		"pod ns/q: kube-scheduler sent uid uid-p for this pod, but that uid belongs to pod ns/p");
	assert_not_bound(m, bind_args("q", "a"), -ENOENT,
			 "pod ns/q: not found: it requests no GPU, or no longer exists");
	assert_not_bound(m, bind_args("p", "b"), -ENOENT, "pod ns/p: node b: not found");
	assert_not_bound(m, bind_args("p", "bare"), -ENOSPC, "pod ns/p: node bare: reports no GPUs");
	assert_not_bound(m, bind_args("p", "a"), -ENOSPC,
			 "pod ns/p: node a: 1/1 CardInsufficientMemory");
	assert_not_bound(m, bind_args("r", "a"), -ESTALE, "pod ns/r: is already bound");
	assert_not_bound(m, bind_args("ending", "a"), -ESTALE, "pod ns/ending: is being deleted");
	assert_not_bound(m, bind_args("bad", "a"), -EINVAL,
			 "pod ns/bad: container main: nvidia.com/gpumem: 0: must be 1 or more");
	model_free(m);
}

/* Until the lists of nodes and pods are complete, filter answers with an error and no pod is bound. */
static void test_lists_are_incomplete(void **state)
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
	assert_not_bound(
		m, bind_args("p", "a"), -EAGAIN,
		"the nodes and pods of the cluster are still being read: try again in a moment");
	json_decref(answer);
	json_decref(args);
	model_free(m);
}

/* Filter may be called before the watch reports the pod. If the watch never reports it, the model forgets it. */
static void test_filter_before_the_watch(void **state)
{
	struct model *m = model_of_nothing();
	struct decision d;
	struct error err;
	give_node(m, node_object("a", 1, 8192, 100));
	assert_fits(m, pod_object("p", GPU), "a", "a");
	assert_fits(m, pod_object("q", "\"nvidia.com/gpu\":\"0\""), "a", "a");
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
	/* A list that began before the pod was created does not contain it. */
	model_list_begin(m, MODEL_PODS);
	model_list_end(m, MODEL_PODS);
	assert_int_equal(card_of(m, "a-0").slots_used, 1);
	model_advance(m, UINT64_C(302) * 1000000000);
	assert_int_equal(card_of(m, "a-0").slots_used, 0);
	assert_not_bound(m, args, -ENOENT,
			 "pod ns/p: not found: it requests no GPU, or no longer exists");
	model_free(m);
}

/* A bind that failed leaves its decision on the pod. The next attempt ignores it. */
static void test_earlier_decision_is_ignored(void **state)
{
	struct model *m = model_of_nothing();
	json_t *pod = pod_object("p", GPU);
	give_node(m, node_object("a", 1, 8192, 100));
	allocate(pod, "a", "a-0,NVIDIA,8192,100:;", "allocating", false);
	give_pod(m, json_incref(pod));
	assert_fits(m, pod, "a", "a");
	assert_refused(m, pod_object("other", GPU), "a", RESOLVABLE, "1/1 CardInsufficientMemory");
	model_free(m);
}

#define SECOND_NS UINT64_C(1000000000)

static void assert_requeued(struct model *m, const char *names)
{
	struct model_requeue_pod pods[2];
	char text[64] = "";
	size_t count = model_take_requeue(m, pods, 2);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(pods[i].pod_namespace, "ns");
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? "," : "",
			 pods[i].name);
	}
	assert_string_equal(text, names);
}

/* kube-scheduler may see a change before the extender does, and try a pod too early. Such a refused pod is requeued. */
static void test_refused_pods_are_requeued(void **state)
{
	struct model *m = model_of_nothing();
	model_advance(m, 1 * SECOND_NS);
	give_node(m, node_object("a", 1, 8192, 100));
	give_pod(m, running_pod("r", "a", "a-0,NVIDIA,8192,100:;"));
	const char *const names[] = { "p", "q", "s" };
	for (size_t i = 0; i < 3; i++) {
		give_pod(m, pod_object(names[i], MEMORY("100")));
		assert_fits(m, pod_object(names[i], MEMORY("100")), "a", "");
	}
	give_pod(m, pod_object("broken", MEMORY("-1")));
	assert_fits(m, pod_object("broken", MEMORY("-1")), "a", "");
	/* Nothing has changed since. */
	model_advance(m, 9 * SECOND_NS);
	assert_requeued(m, "");
	json_t *gone = pod_object("r", GPU);
	model_remove_pod(m, gone);
	json_decref(gone);
	/* kube-scheduler tries one of them again, and it fits. */
	assert_fits(m, pod_object("q", MEMORY("100")), "a", "a");
	model_advance(m, 10 * SECOND_NS);
	assert_requeued(m, "");
	model_advance(m, 11 * SECOND_NS);
	assert_requeued(m, "s,p");
	assert_requeued(m, "");
	/* Each pod is listed once for each change, also of a node. Pods that do not fit in one call's array follow in the next. */
	for (size_t i = 0; i < 3; i++)
		assert_fits(m, pod_object(names[i], MEMORY("9000")), "a", "");
	model_advance(m, 20 * SECOND_NS);
	assert_requeued(m, "");
	give_node(m, node_object("a", 2, 8192, 100));
	model_advance(m, 22 * SECOND_NS);
	assert_requeued(m, "s,q");
	assert_requeued(m, "p");
	assert_requeued(m, "");
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pods_that_cannot_be_bound),
		cmocka_unit_test(test_lists_are_incomplete),
		cmocka_unit_test(test_filter_before_the_watch),
		cmocka_unit_test(test_earlier_decision_is_ignored),
		cmocka_unit_test(test_refused_pods_are_requeued),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
