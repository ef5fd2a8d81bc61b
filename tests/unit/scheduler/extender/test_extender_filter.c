/* The verbs filter, prioritize and bind: nodes by HAMi's formulas, reasons in HAMi's words. */
#include "extender_fixture.h"

#include "verbs.h"

/* A node whose kubelet has told of what device plugins serve. */
static json_t *serving(const char *name, const char *allocatable)
{
	json_t *node = node_object(name, 2, 8192, 100);
	json_object_set_new(node, "status",
			    object_of("{\"capacity\":{\"cpu\":\"4\"},\"allocatable\":{%s}}",
				      allocatable));
	return node;
}

static void test_filter_asks_what_the_kubelet_serves(void **state)
{
	static const char not_served[] = "2/2 CardNotServed";
	const char *vcuda = "\"tencent.com/vcuda-core\":\"30\",\"tencent.com/vcuda-memory\":\"4\"";
	struct model *m = model_of_nothing();
	json_t *args = bind_args("late", "hami");
	struct decision decision;
	struct error err = { 0 };
	give_node(m, serving("hami", GPU));
	give_node(m, serving("vcuda", "\"tencent.com/vcuda-core\":\"200\""));
	give_node(m, serving("gone", "\"nvidia.com/gpu\":\"0\",\"tencent.com/vcuda-core\":0"));
	give_node(m, node_object("untold", 2, 8192, 100));
	filters(m, pod_object("p", GPU), "hami,vcuda,gone,untold", "hami,untold");
	filters(m, pod_object("q", vcuda), "hami,vcuda,gone,untold", "vcuda,untold");
	says(m, pod_object("p", GPU), "gone", HOPELESS, not_served);
	says(m, pod_object("q", vcuda), "hami", HOPELESS, not_served);
	/* Its daemon goes once the node was found, and comes back. */
	give_pod(m, pod_object("late", GPU));
	give_node(m, serving("hami", "\"nvidia.com/gpu\":\"0\""));
	assert_int_equal(extender_decide(m, args, 1, &decision, &err), -ENOSPC);
	assert_non_null(strstr(err.text, not_served));
	give_node(m, serving("hami", GPU));
	assert_int_equal(extender_decide(m, args, 1, &decision, &err), 0);
	decision_free(&decision);
	json_decref(args);
	model_free(m);
}

static void test_filter(void **state)
{
	struct model *m = model_of_nothing();
	give_node(m, node_object("a", 2, 8192, 100));
	give_node(m, node_object("b", 1, 16384, 100));
	give_node(m, node_saying("bare", NULL, NULL));
	give_pod(m, running("r", "a", "a-0,NVIDIA,8000,10:a-1,NVIDIA,6000,100:;"));
	filters(m, pod_object("p", MEMORY("100")), "a,b,bare,none", "a,b");
	filters(m, pod_object("p", MEMORY("192")), "b,a", "b,a");
	filters(m, pod_object("p", "\"cpu\":\"1\""), "a,b,bare", "a,b,bare");
	says(m, pod_object("p", MEMORY("193")), "a", CURABLE,
	     "1/2 CardInsufficientMemory, 1/2 CardComputeUnitsExhausted");
	says(m, pod_object("p", MEMORY("9000")), "a", CURABLE, "2/2 CardInsufficientMemory");
	says(m, pod_object("p", MEMORY("100") ",\"nvidia.com/gpucores\":\"95\""), "a", CURABLE,
	     "2/2 CardInsufficientCore");
	says(m, pod_object("p", MEMORY("100") ",\"nvidia.com/gpu\":\"2\""), "a", CURABLE,
	     "1/2 CardComputeUnitsExhausted, 1/2 AllocatedCardsInsufficientRequest");
	says(m, pod_object("p", "\"nvidia.com/gpu\":\"2\""), "b", HOPELESS,
	     "NodeInsufficientDevice");
	says(m, pod_object("p", GPU), "bare", HOPELESS, "node unregistered");
	says(m, pod_object("p", GPU), "none", HOPELESS, "node unregistered");
	says(m, pod_object("p", MEMORY("-3")), "b", HOPELESS,
	     "container main: nvidia.com/gpumem: '-3': must be a whole number up to 2147483647");
	model_free(m);
}

static void test_constraints(void **state)
{
	static const struct {
		const char *name, *value, *reason;
	} rows[] = {
		{ "nvidia.com/use-gputype", "a100,h20", "" },
		{ "nvidia.com/use-gputype", "A100", "2/2 CardTypeMismatch" },
		{ "nvidia.com/nouse-gputype", "h200", "2/2 CardTypeMismatch" },
		{ "nvidia.com/use-gpuuuid", "a-1", "" },
		{ "nvidia.com/use-gpuuuid", "a-", "2/2 CardUuidMismatch" },
		{ "nvidia.com/nouse-gpuuuid", "a-0, a-1", "2/2 CardUuidMismatch" },
		{ "nvidia.com/vgpu-mode", "mig", "2/2 CardTypeMismatch" },
		{ "nvidia.com/vgpu-mode", "hami-core", "" },
	};
	struct model *m = model_of_nothing();
	give_node(m, node_object("a", 2, 8192, 100));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *pod = pod_object("p", GPU);
		annotate(pod, rows[i].name, rows[i].value);
		if (*rows[i].reason)
			says(m, pod, "a", HOPELESS, rows[i].reason);
		else
			filters(m, pod, "a", "a");
	}
	model_free(m);
}

static void test_together(void **state)
{
	struct model *m = model_of_nothing();
	json_t *pod = pod_object("p", MEMORY("10"));
	give_node(m, node_object("a", 2, 8192, 100));
	/* Alone on its card. */
	give_pod(m, running("r", "a", "a-0,NVIDIA,1,1:;"));
	annotate(pod, "hami.io/gpu-scheduler-policy", "mutex");
	filters(m, pod, "a", "a");
	give_pod(m, running("s", "a", "a-1,NVIDIA,1,1:;"));
	pod = pod_object("p", MEMORY("10"));
	annotate(pod, "hami.io/gpu-scheduler-policy", "mutex,spread");
	says(m, pod, "a", CURABLE, "2/2 ExclusiveDeviceAllocateConflict");
	says(m, pod_object("p", "\"nvidia.com/gpucores\":\"100\",\"nvidia.com/gpumem\":\"1\""), "a",
	     CURABLE, "2/2 CardInsufficientCore");
	/* Two cards, which are on two NUMA nodes. */
	pod = pod_object("p", "\"nvidia.com/gpu\":\"2\"," MEMORY("10"));
	annotate(pod, "nvidia.com/numa-bind", "true");
	says(m, pod, "a", CURABLE, "2/2 NumaNotFit");
	model_free(m);
}

static json_t *pod_of_two(const char *first, const char *second, bool is_init)
{
	return object_of("{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"uid-p\","
			 "\"resourceVersion\":\"1\"},\"spec\":{\"%s\":["
			 "{\"name\":\"i\",\"resources\":{\"limits\":{%s}}}],\"%s\":["
			 "{\"name\":\"a\",\"resources\":{\"limits\":{%s}}}]},"
			 "\"status\":{\"phase\":\"Pending\"}}",
			 is_init ? "initContainers" : "none", first, "containers", second);
}

/* Containers that run together need room together; an init container has ended before. */
static void test_containers(void **state)
{
	struct model *m = model_of_nothing();
	struct error err;
	struct decision d;
	give_node(m, node_object("a", 1, 8192, 100));
	json_t *two = object_of("{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"x\","
				"\"resourceVersion\":\"1\"},\"spec\":{\"containers\":["
				"{\"name\":\"a\",\"resources\":{\"limits\":{" MEMORY(
					"5000") "}}},"
						"{\"name\":\"b\",\"resources\":{\"limits\":{" MEMORY(
							"4000") "}}}]}}");
	says(m, two, "a", CURABLE, "1/1 CardInsufficientMemory");
	json_t *pod = pod_of_two(MEMORY("5000"), MEMORY("4000"), true);
	give_pod(m, json_incref(pod));
	filters(m, pod, "a", "a");
	json_t *args = bind_args("p", "a");
	assert_int_equal(extender_decide(m, args, 1, &d, &err), 0);
	assert_int_equal(d.shares.containers, 2);
	assert_int_equal(d.shares.count, 2);
	assert_int_equal(d.shares.share[0].memory_mib, 5000);
	assert_int_equal(d.shares.share[1].memory_mib, 4000);
	assert_int_equal(card_of(m, "a-0").memory_used_bytes, UINT64_C(5000) << 20);
	assert_int_equal(card_of(m, "a-0").slots_used, 1);
	json_decref(args);
	decision_free(&d);
	model_free(m);
}

/* A sidecar goes on beside the init containers that come after it, not before. */
static void test_sidecars(void **state)
{
	static const char *const rows[][2] = { { "Always", "" }, { "", "Always" } };
	struct model *m = model_of_nothing();
	give_node(m, node_object("a", 1, 8192, 100));
	for (size_t i = 0; i < 2; i++) {
		json_t *pod = object_of(
			"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"uid-p\","
			"\"resourceVersion\":\"1\"},\"spec\":{\"initContainers\":["
			"{\"name\":\"i\",\"restartPolicy\":\"%s\",\"resources\":{\"limits\":{%s}}},"
			"{\"name\":\"j\",\"restartPolicy\":\"%s\",\"resources\":{\"limits\":{%s}}}]"
			","
			"\"containers\":[{\"name\":\"a\"}]}}",
			rows[i][0], MEMORY("4000"), rows[i][1], MEMORY("5000"));
		if (i)
			filters(m, pod, "a", "a");
		else
			says(m, pod, "a", CURABLE, "1/1 CardInsufficientMemory");
	}
	model_free(m);
}

/* Both containers where each finds a card of its own alone; the second one's reason, where it does not. */
static void test_one_after_the_other(void **state)
{
	struct model *m = model_of_nothing();
	const char *text = "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"x\","
			   "\"resourceVersion\":\"1\"},\"spec\":{\"containers\":["
			   "{\"name\":\"a\",\"resources\":{\"limits\":{" GPU "}}},"
			   "{\"name\":\"b\",\"resources\":{\"limits\":{" GPU "}}}]}}";
	give_node(m, node_object("two", 2, 8192, 100));
	give_node(m, node_object("three", 3, 8192, 100));
	give_pod(m, running("r", "two", "two-0,NVIDIA,1,1:;"));
	give_pod(m, running("s", "three", "three-0,NVIDIA,1,1:;"));
	filters(m, object_of("%s", text), "two,three", "three");
	says(m, object_of("%s", text), "two", CURABLE, "2/2 CardInsufficientMemory");
	model_free(m);
}

/* Where the best card for the first container leaves no room for the second, another is found that does. */
static void test_room_for_both(void **state)
{
	struct model *m = model_of_nothing();
	struct decision d;
	struct error err;
	json_t *pod = pod_of_two(MEMORY("4000"), MEMORY("8000"), false);
	json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
	json_t *first = json_object_get(json_object_get(pod, "spec"), "none");
	json_array_insert(containers, 0, json_array_get(first, 0));
	give_node(m, node_object("a", 2, 8192, 100));
	give_pod(m, running("r", "a", "a-0,NVIDIA,4000,10:;"));
	/* To spread, the empty card is the best. */
	annotate(pod, "hami.io/gpu-scheduler-policy", "spread");
	give_pod(m, json_incref(pod));
	filters(m, pod, "a", "a");
	json_t *args = bind_args("p", "a");
	assert_int_equal(extender_decide(m, args, 1, &d, &err), 0);
	assert_int_equal(d.shares.count, 2);
	assert_string_equal(d.shares.share[0].card, "a-0");
	assert_string_equal(d.shares.share[1].card, "a-1");
	json_decref(args);
	decision_free(&d);
	model_free(m);
}

/* Of nodes that come whole a type is forgotten with its node: the next one's word may be where it was. */
static void test_whole_nodes_of_many_types(void **state)
{
	struct model *m = model_of_nothing();
	json_t *items = json_array();
	for (unsigned i = 0; i < 10; i++) {
		char name[8], type[32];
		snprintf(name, sizeof(name), "n%u", i);
		snprintf(type, sizeof(type), "NVIDIA-TYPE-%u-OF-TEN", i);
		json_array_append_new(items, node_of_type(name, 1, type));
	}
	json_t *pod = pod_object("p", GPU);
	annotate(pod, "nvidia.com/use-gputype", "type-7-of");
	json_t *args = json_pack("{s:o,s:{s:o}}", "Pod", pod, "Nodes", "items", items);
	json_t *answer = verbs_filter(m, args);
	const json_t *fit = json_object_get(json_object_get(answer, "Nodes"), "items");
	assert_int_equal(json_array_size(fit), 1);
	assert_true(json_equal(json_array_get(fit, 0), json_array_get(items, 7)));
	json_decref(answer);
	json_decref(args);
	model_free(m);
}

/* A pod has cards, and nobody knows which: its node gives none of them while that is so. */
static void test_unknown_shares(void **state)
{
	static const struct {
		const char *shares;
		int result;
		bool fits;
	} rows[] = {
		{ "n-0;NVIDIA;3000;30:;", -EINVAL, false },
		{ "n-0;NVIDIA;3000;30:;", 0, false }, /* the same again: it is named once */
		{ "n-0,NVIDIA,3000,30:;", 0, true },
		{ "n-0,NVIDIA,many,30:;", -EINVAL, true }, /* what was known of it stays */
	};
	struct model *m = model_of_nothing();
	struct error err;
	give_node(m, node_object("n", 1, 8192, 100));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *pod = pod_object("a", GPU);
		allocate(pod, "n", rows[i].shares, "success", true);
		assert_int_equal(model_update_pod(m, pod, &err), rows[i].result);
		json_decref(pod);
		/* A node that is told of anew is as closed as before. */
		give_node(m, node_object("n", 1, 8192, 100));
		json_t *args = filter_args(pod_object("p", MEMORY("4000")), "n");
		json_t *answer = verbs_filter(m, args);
		assert_string_equal(fitting(answer), rows[i].fits ? "n" : "");
		if (!rows[i].fits)
			assert_string_equal(reason_of(answer, "n"), "1/1 CardUseUnknown");
		json_decref(answer);
		json_decref(args);
	}
	/* One that is not bound closes nothing: anybody can note it, and the binding will say. */
	json_t *pod = pod_object("c", GPU);
	allocate(pod, "n", "?;", "allocating", false);
	assert_int_equal(model_update_pod(m, pod, &err), -EINVAL);
	json_decref(pod);
	json_t *unbound_args = filter_args(pod_object("p", MEMORY("4000")), "n");
	json_t *unbound_answer = verbs_filter(m, unbound_args);
	assert_string_equal(fitting(unbound_answer), "n");
	json_decref(unbound_answer);
	json_decref(unbound_args);
	pod = pod_object("b", GPU);
	allocate(pod, "n", "?;", "success", true);
	assert_int_equal(model_update_pod(m, pod, &err), -EINVAL);
	model_remove_pod(m, pod);
	json_decref(pod);
	json_t *args = filter_args(pod_object("p", MEMORY("4000")), "n");
	json_t *answer = verbs_filter(m, args);
	assert_string_equal(fitting(answer), "n");
	json_decref(answer);
	json_decref(args);
	model_free(m);
}

/* Each name has one verdict, however often it comes; what is no name has none. */
static void test_names_that_come_twice(void **state)
{
	struct model *m = model_of_nothing();
	give_node(m, node_object("a", 1, 8192, 100));
	give_node(m, node_object("b", 1, 1024, 100));
	json_t *args = filter_args(pod_object("p", MEMORY("4000")), "a,x,b,a,x,y,b,b,x");
	json_array_append_new(json_object_get(args, "NodeNames"), json_stringn("a\0", 2));
	json_array_append_new(json_object_get(args, "NodeNames"), json_integer(7));
	json_t *answer = verbs_filter(m, args);
	assert_string_equal(fitting(answer), "a");
	assert_int_equal(json_object_size(json_object_get(answer, "FailedNodes")), 1);
	assert_int_equal(json_object_size(json_object_get(answer, "FailedAndUnresolvableNodes")), 3);
	assert_string_equal(reason_of(answer, "a\xef\xbf\xbd"), "node unregistered");
	assert_string_equal(reason_of(answer, "b"), "1/1 CardInsufficientMemory");
	assert_string_equal(reason_of(answer, "x"), "node unregistered");
	assert_string_equal(reason_of(answer, "y"), "node unregistered");
	json_decref(answer);
	/* The next call begins anew. */
	answer = verbs_filter(m, args);
	assert_string_equal(fitting(answer), "a");
	json_decref(answer);
	json_decref(args);
	model_free(m);
}

/* An autoscaler asks about nodes that are not there, and nothing comes of it. */
static void test_dry_run(void **state)
{
	struct model *m = model_of_nothing();
	json_t *lying = node_saying("lying", "[7]", NULL);
	give_node(m, node_object("a", 1, 8192, 100));
	give_pod(m, running("r", "a", "a-0,NVIDIA,8000,10:;"));
	struct model_counts before = model_counts(m);
	json_t *args = json_pack("{s:o,s:{s:[o,o,o,o]}}", "Pod", pod_object("p", MEMORY("4000")),
				 "Nodes", "items", node_object("template", 1, 8192, 100),
				 node_object("a", 1, 8192, 100), node_saying("bare", NULL, NULL),
				 lying);
	json_t *answer = verbs_filter(m, args);
	json_t *items = json_object_get(json_object_get(answer, "Nodes"), "items");
	assert_int_equal(json_array_size(items), 1);
	assert_true(json_equal(
		json_array_get(items, 0),
		json_array_get(json_object_get(json_object_get(args, "Nodes"), "items"), 0)));
	assert_true(json_is_null(json_object_get(answer, "NodeNames")));
	assert_string_equal(reason_of(answer, "a"), "1/1 CardInsufficientMemory");
	assert_string_equal(reason_of(answer, "bare"), "node unregistered");
	assert_string_equal(reason_of(answer, "lying"),
			    "hami.io/node-nvidia-register: GPU 0: must be an object");
	struct model_counts after = model_counts(m);
	assert_memory_equal(&before, &after, sizeof(before));
	json_decref(answer);
	/* Their scores as well: the empty one is the best to spread. */
	annotate(json_object_get(args, "Pod"), "hami.io/node-scheduler-policy", "spread");
	answer = verbs_prioritize(m, args);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(answer, 0), "Score")),
			 10);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(answer, 1), "Score")), 0);
	json_decref(answer);
	json_decref(args);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter_asks_what_the_kubelet_serves),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_constraints),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_sidecars),
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_room_for_both),
		cmocka_unit_test(test_whole_nodes_of_many_types),
		cmocka_unit_test(test_unknown_shares),
		cmocka_unit_test(test_names_that_come_twice),
		cmocka_unit_test(test_dry_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
