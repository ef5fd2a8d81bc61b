/* The verb filter: which nodes have room for a pod, and the reasons for the others as HAMi writes them. */
#include "extender_fixture.h"

#include "verbs.h"

/* A node whose kubelet reports these allocatable resources of device plugins. */
static json_t *node_serving(const char *name, const char *allocatable)
{
	json_t *node = node_object(name, 2, 8192, 100);
	json_object_set_new(node, "status",
			    object_of("{\"capacity\":{\"cpu\":\"4\"},\"allocatable\":{%s}}",
				      allocatable));
	return node;
}

static void test_filter_needs_a_resource_that_the_kubelet_serves(void **state)
{
	static const char not_served[] = "2/2 CardNotServed";
	const char *vcuda = "\"tencent.com/vcuda-core\":\"30\",\"tencent.com/vcuda-memory\":\"4\"";
	struct model *m = model_of_nothing();
	json_t *args = bind_args("late", "hami");
	struct decision decision;
	struct error err = { 0 };
	give_node(m, node_serving("hami", GPU));
	give_node(m, node_serving("vcuda", "\"tencent.com/vcuda-core\":\"200\""));
	give_node(m, node_serving("gone", "\"nvidia.com/gpu\":\"0\",\"tencent.com/vcuda-core\":0"));
	give_node(m, node_object("unreported", 2, 8192, 100));
	assert_fits(m, pod_object("p", GPU), "hami,vcuda,gone,unreported", "hami,unreported");
	assert_fits(m, pod_object("q", vcuda), "hami,vcuda,gone,unreported", "vcuda,unreported");
	assert_refused(m, pod_object("p", GPU), "gone", UNRESOLVABLE, not_served);
	assert_refused(m, pod_object("q", vcuda), "hami", UNRESOLVABLE, not_served);
	/* The node's daemon stops after filter chose the node, and starts again. */
	give_pod(m, pod_object("late", GPU));
	give_node(m, node_serving("hami", "\"nvidia.com/gpu\":\"0\""));
	assert_int_equal(extender_decide(m, args, 1, &decision, &err), -ENOSPC);
	assert_non_null(strstr(err.text, not_served));
	give_node(m, node_serving("hami", GPU));
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
	give_pod(m, running_pod("r", "a", "a-0,NVIDIA,8000,10:a-1,NVIDIA,6000,100:;"));
	assert_fits(m, pod_object("p", MEMORY("100")), "a,b,bare,none", "a,b");
	assert_fits(m, pod_object("p", MEMORY("192")), "b,a", "b,a");
	assert_fits(m, pod_object("p", "\"cpu\":\"1\""), "a,b,bare", "a,b,bare");
	assert_refused(m, pod_object("p", MEMORY("193")), "a", RESOLVABLE,
		       "1/2 CardInsufficientMemory, 1/2 CardComputeUnitsExhausted");
	assert_refused(m, pod_object("p", MEMORY("9000")), "a", RESOLVABLE,
		       "2/2 CardInsufficientMemory");
	assert_refused(m, pod_object("p", MEMORY("100") ",\"nvidia.com/gpucores\":\"95\""), "a",
		       RESOLVABLE, "2/2 CardInsufficientCore");
	assert_refused(m, pod_object("p", MEMORY("100") ",\"nvidia.com/gpu\":\"2\""), "a",
		       RESOLVABLE,
		       "1/2 CardComputeUnitsExhausted, 1/2 AllocatedCardsInsufficientRequest");
	assert_refused(m, pod_object("p", "\"nvidia.com/gpu\":\"2\""), "b", UNRESOLVABLE,
		       "NodeInsufficientDevice");
	assert_refused(m, pod_object("p", GPU), "bare", UNRESOLVABLE, "node unregistered");
	assert_refused(m, pod_object("p", GPU), "none", UNRESOLVABLE, "node unregistered");
	assert_refused(
		m, pod_object("p", MEMORY("-3")), "b", UNRESOLVABLE,
		"container main: nvidia.com/gpumem: '-3': must be a whole number up to 2147483647");
	model_free(m);
}

static void test_gpu_types_and_uuids(void **state)
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
			assert_refused(m, pod, "a", UNRESOLVABLE, rows[i].reason);
		else
			assert_fits(m, pod, "a", "a");
	}
	model_free(m);
}

static void test_exclusive_gpus_and_numa_binding(void **state)
{
	struct model *m = model_of_nothing();
	json_t *pod = pod_object("p", MEMORY("10"));
	give_node(m, node_object("a", 2, 8192, 100));
	/* A pod that must be alone on its GPU. */
	give_pod(m, running_pod("r", "a", "a-0,NVIDIA,1,1:;"));
	annotate(pod, "hami.io/gpu-scheduler-policy", "mutex");
	assert_fits(m, pod, "a", "a");
	give_pod(m, running_pod("s", "a", "a-1,NVIDIA,1,1:;"));
	pod = pod_object("p", MEMORY("10"));
	annotate(pod, "hami.io/gpu-scheduler-policy", "mutex,spread");
	assert_refused(m, pod, "a", RESOLVABLE, "2/2 ExclusiveDeviceAllocateConflict");
	assert_refused(
		m, pod_object("p", "\"nvidia.com/gpucores\":\"100\",\"nvidia.com/gpumem\":\"1\""),
		"a", RESOLVABLE, "2/2 CardInsufficientCore");
	/* The two GPUs are on two NUMA nodes. */
	pod = pod_object("p", "\"nvidia.com/gpu\":\"2\"," MEMORY("10"));
	annotate(pod, "nvidia.com/numa-bind", "true");
	assert_refused(m, pod, "a", RESOLVABLE, "2/2 NumaNotFit");
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

/* Containers that run at the same time need the sum of their memory. An init container has ended before. */
static void test_containers_and_init_containers(void **state)
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
	assert_refused(m, two, "a", RESOLVABLE, "1/1 CardInsufficientMemory");
	json_t *pod = pod_of_two(MEMORY("5000"), MEMORY("4000"), true);
	give_pod(m, json_incref(pod));
	assert_fits(m, pod, "a", "a");
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

/* A sidecar runs at the same time as the init containers after it, not as those before it. */
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
			assert_fits(m, pod, "a", "a");
		else
			assert_refused(m, pod, "a", RESOLVABLE, "1/1 CardInsufficientMemory");
	}
	model_free(m);
}

/* A node fits if each of the two containers gets a whole GPU. If only the first does, the reason is the second container's. */
static void test_second_container_needs_its_own_gpu(void **state)
{
	struct model *m = model_of_nothing();
	const char *text = "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"x\","
			   "\"resourceVersion\":\"1\"},\"spec\":{\"containers\":["
			   "{\"name\":\"a\",\"resources\":{\"limits\":{" GPU "}}},"
			   "{\"name\":\"b\",\"resources\":{\"limits\":{" GPU "}}}]}}";
	give_node(m, node_object("two", 2, 8192, 100));
	give_node(m, node_object("three", 3, 8192, 100));
	give_pod(m, running_pod("r", "two", "two-0,NVIDIA,1,1:;"));
	give_pod(m, running_pod("s", "three", "three-0,NVIDIA,1,1:;"));
	assert_fits(m, object_of("%s", text), "two,three", "three");
	assert_refused(m, object_of("%s", text), "two", RESOLVABLE, "2/2 CardInsufficientMemory");
	model_free(m);
}

/* If the best GPU for the first container leaves no room for the second, the first gets another GPU. */
static void test_first_container_leaves_room_for_second(void **state)
{
	struct model *m = model_of_nothing();
	struct decision d;
	struct error err;
	json_t *pod = pod_of_two(MEMORY("4000"), MEMORY("8000"), false);
	json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
	json_t *first = json_object_get(json_object_get(pod, "spec"), "none");
	json_array_insert(containers, 0, json_array_get(first, 0));
	give_node(m, node_object("a", 2, 8192, 100));
	give_pod(m, running_pod("r", "a", "a-0,NVIDIA,4000,10:;"));
	/* The empty GPU is the best one for the policy spread. */
	annotate(pod, "hami.io/gpu-scheduler-policy", "spread");
	give_pod(m, json_incref(pod));
	assert_fits(m, pod, "a", "a");
	json_t *args = bind_args("p", "a");
	assert_int_equal(extender_decide(m, args, 1, &d, &err), 0);
	assert_int_equal(d.shares.count, 2);
	assert_string_equal(d.shares.share[0].card, "a-0");
	assert_string_equal(d.shares.share[1].card, "a-1");
	json_decref(args);
	decision_free(&d);
	model_free(m);
}

/* The call has whole nodes. The type of each is freed with its node, so the next type may have the same address. */
static void test_types_of_nodes_in_the_call(void **state)
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

/* A pod's annotation of its GPUs is invalid. Its node gets no further pods while that is so. */
static void test_unknown_shares(void **state)
{
	static const struct {
		const char *shares;
		int result;
		bool fits;
	} rows[] = {
		{ "n-0;NVIDIA;3000;30:;", -EINVAL, false },
		{ "n-0;NVIDIA;3000;30:;", 0, false }, /* the same again: it is reported once */
		{ "n-0,NVIDIA,3000,30:;", 0, true },
		{ "n-0,NVIDIA,many,30:;", -EINVAL, true }, /* the earlier shares remain in force */
	};
	struct model *m = model_of_nothing();
	struct error err;
	give_node(m, node_object("n", 1, 8192, 100));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *pod = pod_object("a", GPU);
		allocate(pod, "n", rows[i].shares, "success", true);
		assert_int_equal(model_update_pod(m, pod, &err), rows[i].result);
		json_decref(pod);
		/* An update of the node does not reopen it. */
		give_node(m, node_object("n", 1, 8192, 100));
		json_t *args = filter_args(pod_object("p", MEMORY("4000")), "n");
		json_t *answer = verbs_filter(m, args);
		assert_string_equal(fitting(answer), rows[i].fits ? "n" : "");
		if (!rows[i].fits)
			assert_string_equal(reason_of(answer, "n"), "1/1 CardUseUnknown");
		json_decref(answer);
		json_decref(args);
	}
	/* An invalid annotation of a pod that is not bound is ignored, because any user could write it. */
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

/* A node that is named several times gets one result. An entry that is no name gets none. */
static void test_repeated_node_names(void **state)
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
	/* The next call starts without these results. */
	answer = verbs_filter(m, args);
	assert_string_equal(fitting(answer), "a");
	json_decref(answer);
	json_decref(args);
	model_free(m);
}

/* An autoscaler asks about nodes that do not exist. The model does not change. */
static void test_dry_run(void **state)
{
	struct model *m = model_of_nothing();
	json_t *invalid = node_saying("invalid", "[7]", NULL);
	give_node(m, node_object("a", 1, 8192, 100));
	give_pod(m, running_pod("r", "a", "a-0,NVIDIA,8000,10:;"));
	struct model_counts before = model_counts(m);
	json_t *args = json_pack("{s:o,s:{s:[o,o,o,o]}}", "Pod", pod_object("p", MEMORY("4000")),
				 "Nodes", "items", node_object("template", 1, 8192, 100),
				 node_object("a", 1, 8192, 100), node_saying("bare", NULL, NULL),
				 invalid);
	json_t *answer = verbs_filter(m, args);
	json_t *items = json_object_get(json_object_get(answer, "Nodes"), "items");
	assert_int_equal(json_array_size(items), 1);
	assert_true(json_equal(
		json_array_get(items, 0),
		json_array_get(json_object_get(json_object_get(args, "Nodes"), "items"), 0)));
	assert_true(json_is_null(json_object_get(answer, "NodeNames")));
	assert_string_equal(reason_of(answer, "a"), "1/1 CardInsufficientMemory");
	assert_string_equal(reason_of(answer, "bare"), "node unregistered");
	assert_string_equal(reason_of(answer, "invalid"),
			    "hami.io/node-nvidia-register: GPU 0: must be an object");
	struct model_counts after = model_counts(m);
	assert_memory_equal(&before, &after, sizeof(before));
	json_decref(answer);
	/* They get scores, too: the empty node is the best for the policy spread. */
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
		cmocka_unit_test(test_filter_needs_a_resource_that_the_kubelet_serves),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_gpu_types_and_uuids),
		cmocka_unit_test(test_exclusive_gpus_and_numa_binding),
		cmocka_unit_test(test_containers_and_init_containers),
		cmocka_unit_test(test_sidecars),
		cmocka_unit_test(test_second_container_needs_its_own_gpu),
		cmocka_unit_test(test_first_container_leaves_room_for_second),
		cmocka_unit_test(test_types_of_nodes_in_the_call),
		cmocka_unit_test(test_unknown_shares),
		cmocka_unit_test(test_repeated_node_names),
		cmocka_unit_test(test_dry_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
