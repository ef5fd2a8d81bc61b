/* The verbs filter, prioritize and bind: nodes by HAMi's formulas, reasons in HAMi's words. */
#include "extender_fixture.h"

#include "policy/placement/score.h"
#include "scheduler/model/model_inside.h"
#include "verbs.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scores),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_room_of_a_type),
		cmocka_unit_test(test_card_policy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
