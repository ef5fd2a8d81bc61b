/* The verb prioritize and the choice of a node's GPU: scores by HAMi's formulas and by fragmentation. */
#include "extender_fixture.h"

#include "policy/placement/score.h"
#include "scheduler/model/model_inside.h"
#include "verbs.h"

/* A tenth of the memory of a GPU of node_of_type(), and 10 or 60 % of its time. */
#define FEW_CORES MEMORY("1600") ",\"nvidia.com/gpucores\":\"10\""
#define MOST_CORES MEMORY("1600") ",\"nvidia.com/gpucores\":\"60\""

static void test_node_scores(void **state)
{
	static const struct {
		const char *policy;
		int first, second, third;
	} rows[] = { { "binpack", 10, 4, 0 }, { "spread", 0, 4, 10 } };
	struct model *m = model_of_nothing();
	give_node(m, node_object("n1", 4, 8192, 100));
	give_node(m, node_object("n2", 4, 8192, 100));
	give_node(m, node_object("n3", 4, 8192, 100));
	give_pod(m, running_pod("a", "n1",
				"n1-0,NVIDIA,8000,100:n1-1,NVIDIA,8000,100:n1-2,NVIDIA,4480,40:;"));
	give_pod(m, running_pod("b", "n2", "n2-0,NVIDIA,4096,60:n2-3,NVIDIA,4096,60:;"));
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

static json_t *fragmentation_pod(const char *name, const char *limits, const char *type)
{
	json_t *pod = pod_object(name, limits);
	annotate(pod, "hami.io/node-scheduler-policy", "fragmentation");
	annotate(pod, "hami.io/gpu-scheduler-policy", "fragmentation");
	if (type)
		annotate(pod, "nvidia.com/use-gputype", type);
	return pod;
}

/*
 * One GPU has 60 % left, two are free. A pod of 10 % goes to the first, as by binpack. If most pods ask for 60 %, it goes to a
 * free GPU, because on the first it would take the room of such a pod.
 */
static void test_fragmentation_score(void **state)
{
	struct model *m = model_of_nothing();
	char name[8];
	give_node(m, node_of_type("a", 1, "T4"));
	give_node(m, node_of_type("b", 2, "T4"));
	give_node(m, node_saying("bare", NULL, NULL));
	give_pod(m, running_pod("r", "a", "a-0,NVIDIA,1600,40:;"));
	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		give_pod(m, fragmentation_pod(name, FEW_CORES, NULL));
	}
	assert_string_equal(
		best_node(m, fragmentation_pod("p", FEW_CORES, NULL), "a,bare,b,nowhere"), "a");
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "l%u", i);
		give_pod(m, fragmentation_pod(name, MOST_CORES, NULL));
	}
	assert_string_equal(
		best_node(m, fragmentation_pod("p", FEW_CORES, NULL), "a,bare,b,nowhere"), "b");
	model_free(m);
}

/* A pod that accepts any type leaves the scarce type to pods that need it. Binpack would take the fuller node. */
static void test_fragmentation_score_of_gpu_types(void **state)
{
	struct model *m = model_of_nothing();
	struct decision d;
	struct error err;
	char name[8];
	give_node(m, node_of_type("v", 2, "V100"));
	give_node(m, node_of_type("t", 4, "T4"));
	give_pod(m, running_pod("r", "v", "v-0,NVIDIA,16000,100:;"));
	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "v%u", i);
		give_pod(m, fragmentation_pod(name, GPU, i % 2 ? "V100" : NULL));
	}
	json_t *binpack = pod_object("p", GPU);
	assert_string_equal(best_node(m, binpack, "v,t"), "v");
	assert_string_equal(best_node(m, fragmentation_pod("p", GPU, NULL), "v,t"), "t");
	assert_string_equal(best_node(m, fragmentation_pod("p", GPU, "V100"), "v"), "v");
	/* Nodes in the call are scored by their own GPUs. The model does not know the first one. */
	json_t *whole = json_pack("{s:o,s:{s:[o,o]}}", "Pod", fragmentation_pod("p", GPU, NULL),
				  "Nodes", "items", node_of_type("new", 1, "T4"),
				  node_of_type("v", 2, "V100"));
	json_t *list = verbs_prioritize(m, whole);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "Score")), 10);
	json_decref(list);
	json_decref(whole);
	/* Of one node's GPUs it takes the one in partial use, which a pod of a whole GPU could not have. */
	give_pod(m, running_pod("q", "t", "t-2,NVIDIA,1600,10:;"));
	give_pod(m, fragmentation_pod("part", FEW_CORES, NULL));
	json_t *args = bind_args("part", "t");
	assert_int_equal(extender_decide(m, args, 1, &d, &err), 0);
	assert_string_equal(d.shares.share[0].card, "t-2");
	json_decref(args);
	decision_free(&d);
	model_free(m);
}

/* By HAMi's formula, the two GPUs have scores of 9.75 and 24.75. Binpack takes the higher one, spread the lower one. */
static void test_gpu_policies(void **state)
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
			give_pod(m, running_pod(name, "n", shares));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_node_scores),
		cmocka_unit_test(test_fragmentation_score),
		cmocka_unit_test(test_fragmentation_score_of_gpu_types),
		cmocka_unit_test(test_gpu_policies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
