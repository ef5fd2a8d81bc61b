/* The verbs filter, prioritize and bind: nodes by HAMi's formulas, reasons in HAMi's words. */
#include <errno.h>

#include "../cluster.h"
#include "kube/hami/annotations.h"
#include "policy/placement/score.h"
#include "scheduler/model/model_inside.h"
#include "verbs.h"

static json_t *running(const char *name, const char *node, const char *shares)
{
	json_t *pod = pod_object(name, GPU);
	allocate(pod, node, shares, "success", true);
	return pod;
}

static void filters(struct model *m, json_t *pod, const char *nodes, const char *fits)
{
	json_t *args = filter_args(pod, nodes), *answer = verbs_filter(m, args);
	assert_string_equal(fitting(answer), fits);
	assert_string_equal(json_string_value(json_object_get(answer, "Error")), "");
	json_decref(answer);
	json_decref(args);
}

static void says(struct model *m, json_t *pod, const char *node, const char *list, const char *text)
{
	json_t *args = filter_args(pod, node), *answer = verbs_filter(m, args);
	assert_string_equal(fitting(answer), "");
	assert_string_equal(reason_of(answer, node), text);
	assert_non_null(json_object_get(json_object_get(answer, list), node));
	json_decref(answer);
	json_decref(args);
}

#define CURABLE "FailedNodes"
#define HOPELESS "FailedAndUnresolvableNodes"
#define MEMORY(n) "\"nvidia.com/gpumem\":\"" n "\""

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

static void test_scores(void **state)
{
	static const struct {
		const char *policy;
		int first, second, third;
	} rows[] = { { "binpack", 10, 4, 0 }, { "spread", 0, 4, 10 } };
	struct model *m = model_of_nothing();
	give_node(m, node_object("n1", 4, 8192, 100));
	give_node(m, node_object("n2", 4, 8192, 100));
	give_node(m, node_object("n3", 4, 8192, 100));
	give_pod(m, running("a", "n1",
			    "n1-0,NVIDIA,8000,100:n1-1,NVIDIA,8000,100:n1-2,NVIDIA,4480,40:;"));
	give_pod(m, running("b", "n2", "n2-0,NVIDIA,4096,60:n2-3,NVIDIA,4096,60:;"));
	const struct inventory *n1 = &model_find_node(m, "n1")->inventory,
			       *n2 = &model_find_node(m, "n2")->inventory;
	assert_true(place_cards_score(n1->card, n1->count) == 19.75);
	assert_true(place_cards_score(n2->card, n2->count) == 10.50);
	for (size_t i = 0; i < 2; i++) {
		json_t *pod = pod_object("p", MEMORY("10"));
		annotate(pod, "hami.io/node-scheduler-policy", rows[i].policy);
		json_t *args = filter_args(pod, "n1,n2,n3");
		json_t *list = verbs_prioritize(m, args);
		json_t *expected = json_pack("[{s:s,s:i},{s:s,s:i},{s:s,s:i}]", "Host", "n1",
					     "Score", rows[i].first, "Host", "n2", "Score",
					     rows[i].second, "Host", "n3", "Score", rows[i].third);
		if (!json_equal(list, expected))
			fail_msg("%s", json_dumps(list, 0));
		json_decref(expected);
		json_decref(list);
		json_decref(args);
	}
	model_free(m);
}

static const char *best_node(struct model *m, json_t *pod, const char *nodes)
{
	static char best[16];
	json_t *args = filter_args(pod, nodes), *list = verbs_prioritize(m, args), *one;
	size_t i;
	*best = '\0';
	json_array_foreach(list, i, one) if (json_integer_value(json_object_get(one, "Score")) == 10)
		snprintf(best, sizeof(best), "%s", json_string_value(json_object_get(one, "Host")));
	json_decref(list);
	json_decref(args);
	return best;
}

static json_t *pod_by_room(const char *name, const char *limits, const char *type)
{
	json_t *pod = pod_object(name, limits);
	annotate(pod, "hami.io/node-scheduler-policy", "fragmentation");
	annotate(pod, "hami.io/gpu-scheduler-policy", "fragmentation");
	if (type)
		annotate(pod, "nvidia.com/use-gputype", type);
	return pod;
}

static json_t *node_of_type(const char *name, unsigned cards, const char *type)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < cards; i++)
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

/*
 * One card with 60 % left, and two that are free: 10 % go on the former, as by binpack; but not where most ask for 60 %, who
 * would lose their room there, and lose none on a card that is free.
 */
static void test_room(void **state)
{
	struct model *m = model_of_nothing();
	char name[8];
	give_node(m, node_of_type("a", 1, "T4"));
	give_node(m, node_of_type("b", 2, "T4"));
	give_node(m, node_saying("bare", NULL, NULL));
	give_pod(m, running("r", "a", "a-0,NVIDIA,1600,40:;"));
	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		give_pod(m,
			 pod_by_room(name, MEMORY("1600") ",\"nvidia.com/gpucores\":\"10\"", NULL));
	}
	assert_string_equal(best_node(m,
				      pod_by_room("p",
						  MEMORY("1600") ",\"nvidia.com/gpucores\":"
								 "\"10\"",
						  NULL),
				      "a,bare,b,nowhere"),
			    "a");
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "l%u", i);
		give_pod(m,
			 pod_by_room(name, MEMORY("1600") ",\"nvidia.com/gpucores\":\"60\"", NULL));
	}
	assert_string_equal(best_node(m,
				      pod_by_room("p",
						  MEMORY("1600") ",\"nvidia.com/gpucores\":"
								 "\"10\"",
						  NULL),
				      "a,bare,b,nowhere"),
			    "b");
	model_free(m);
}

/* Who can have any card leaves those that others need: what is rare is dear. Binpack would take the fuller node. */
static void test_room_of_a_type(void **state)
{
	struct model *m = model_of_nothing();
	struct decision d;
	struct error err;
	char name[8];
	give_node(m, node_of_type("v", 2, "V100"));
	give_node(m, node_of_type("t", 4, "T4"));
	give_pod(m, running("r", "v", "v-0,NVIDIA,16000,100:;"));
	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "v%u", i);
		give_pod(m, pod_by_room(name, GPU, i % 2 ? "V100" : NULL));
	}
	json_t *binpack = pod_object("p", GPU);
	assert_string_equal(best_node(m, binpack, "v,t"), "v");
	assert_string_equal(best_node(m, pod_by_room("p", GPU, NULL), "v,t"), "t");
	assert_string_equal(best_node(m, pod_by_room("p", GPU, "V100"), "v"), "v");
	/* A pod of two containers of which one can't be there is no pod of that node's, whatever it costs. */
	json_t *whole = json_pack("{s:o,s:{s:[o,o]}}", "Pod", pod_by_room("p", GPU, NULL), "Nodes",
				  "items", node_of_type("new", 1, "T4"),
				  node_of_type("v", 2, "V100"));
	json_t *list = verbs_prioritize(m, whole);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "Score")), 10);
	json_decref(list);
	json_decref(whole);
	/* And of one node's cards: the one whose part is of no use to who wants a whole card. */
	give_pod(m, running("q", "t", "t-2,NVIDIA,1600,10:;"));
	give_pod(m, pod_by_room("part", MEMORY("1600") ",\"nvidia.com/gpucores\":\"10\"", NULL));
	json_t *args = bind_args("part", "t");
	assert_int_equal(extender_decide(m, args, 1, &d, &err), 0);
	assert_string_equal(d.shares.share[0].card, "t-2");
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

/* The seed's two cards, by 9.75 and 24.75: which of them is taken. */
static void test_card_policy(void **state)
{
	static const char *const rows[][2] = { { "binpack", "n-1" }, { "spread", "n-0" } };
	for (size_t i = 0; i < 2; i++) {
		struct model *m = model_of_nothing();
		struct decision d;
		struct error err;
		json_t *pod = pod_object("p", MEMORY("1000") ",\"nvidia.com/gpucores\":\"20\"");
		give_node(m, node_object("n", 2, 8000, 100));
		for (unsigned k = 0; k < 6; k++) {
			char name[8], shares[64];
			snprintf(name, sizeof(name), "r%u", k);
			snprintf(shares, sizeof(shares), "n-1,NVIDIA,1000,%u:%s;", k ? 12 : 10,
				 k < 2 ? "n-0,NVIDIA,1000,5:" : "");
			give_pod(m, running(name, "n", shares));
		}
		const struct place_card first = card_of(m, "n-0"), second = card_of(m, "n-1");
		const struct place_request request = { .count = 1,
						       .memory_bytes = UINT64_C(1000) << 20,
						       .cores_mpct = 20000 };
		assert_true(place_card_score(&first, &request) == 9.75);
		assert_true(place_card_score(&second, &request) == 24.75);
		annotate(pod, "hami.io/gpu-scheduler-policy", rows[i][0]);
		give_pod(m, pod);
		json_t *args = bind_args("p", "n");
		assert_int_equal(extender_decide(m, args, 1, &d, &err), 0);
		assert_string_equal(d.shares.share[0].card, rows[i][1]);
		json_decref(args);
		decision_free(&d);
		model_free(m);
	}
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

static void refuses(struct model *m, json_t *args, int result, const char *text)
{
	struct decision d;
	struct error err = { 0 };
	assert_int_equal(extender_decide(m, args, 1, &d, &err), result);
	assert_string_equal(err.text, text);
	json_decref(args);
}

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
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_filter_asks_what_the_kubelet_serves),
		cmocka_unit_test(test_constraints),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_sidecars),
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_room_for_both),
		cmocka_unit_test(test_scores),
		cmocka_unit_test(test_card_policy),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_room_of_a_type),
		cmocka_unit_test(test_names_that_come_twice),
		cmocka_unit_test(test_unknown_shares),
		cmocka_unit_test(test_dry_run),
		cmocka_unit_test(test_decide_refuses),
		cmocka_unit_test(test_not_ready),
		cmocka_unit_test(test_ahead_of_the_watch),
		cmocka_unit_test(test_own_choice_is_no_obstacle),
		cmocka_unit_test(test_whole_nodes_of_many_types),
		cmocka_unit_test(test_told_no_too_early),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
