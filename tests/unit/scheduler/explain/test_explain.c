/* Why a pod is where it is, or waits. */
#include <errno.h>

#include "../cluster.h"
#include "scheduler/explain/explain.h"
#include "verbs.h"

#define MEMORY(mib) GPU ",\"nvidia.com/gpumem\":\"" mib "\""

static json_t *explained(struct model *m, const char *pod, const char *node)
{
	const struct explain_query ask = { "ns", pod, node };
	struct error err = { 0 };
	json_t *answer;
	if (explain_pod(m, &ask, &answer, &err) < 0)
		fail_msg("%s", err.text);
	return answer;
}

/* What stands at a path such as "nodes.0.verdict", as JSON. */
static const char *at(const json_t *object, const char *path)
{
	static char text[4][2048];
	static unsigned turn;
	char copy[256], *rest = copy, *dumped;
	snprintf(copy, sizeof(copy), "%s", path);
	for (char *part; object && (part = strsep(&rest, "."));)
		object = json_is_array(object) ? json_array_get(object, (size_t)atoi(part))
					       : json_object_get(object, part);
	dumped = object ? json_dumps(object, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("nothing");
	turn = (turn + 1) % 4;
	snprintf(text[turn], sizeof(text[turn]), "%s", dumped);
	free(dumped);
	return text[turn];
}

#define assert_at(object, path, wanted) assert_string_equal(at(object, path), wanted)

static void fill(struct model *m, const char *pod, const char *node, const char *shares)
{
	json_t *object = pod_object(pod, GPU);
	allocate(object, node, shares, "success", true);
	give_pod(m, object);
}

static void test_what_it_asks_for(void **state)
{
	struct model *m = model_of_nothing();
	json_t *pod = pod_object("p", "\"nvidia.com/gpu\":\"2\",\"nvidia.com/gpumem-percentage\":"
				      "\"50\",\"nvidia.com/gpucores\":\"30\"");
	annotate(pod, "nvidia.com/use-gputype", "H200,H100");
	give_pod(m, pod);
	json_t *answer = explained(m, "p", NULL);
	assert_at(answer, "state", "\"waiting\"");
	assert_at(
		answer, "asks",
		"[{\"container\":0,\"kind\":\"app\",\"cards\":2,\"cores_pct\":30,\"memory_pct\":50}]");
	assert_at(answer, "use_type", "[\"H200\",\"H100\"]");
	assert_at(answer, "nouse_type", "nothing");
	assert_at(answer, "nodes", "[]");
	assert_at(answer, "on", "nothing");
	json_decref(answer);
	give_pod(m, pod_object("q", MEMORY("-1")));
	answer = explained(m, "q", NULL);
	if (!strstr(at(answer, "broken"), "nvidia.com/gpumem"))
		fail_msg("%s", at(answer, "broken"));
	assert_at(answer, "asks", "nothing");
	assert_at(answer, "nodes", "nothing");
	json_decref(answer);
	model_free(m);
}

/* What its namespace may have is no matter of who is on the cards. */
static void test_quota(void **state)
{
	struct model *m = model_of_nothing();
	give_node(m, node_object("n", 2, 8192, 100));
	fill(m, "r", "n", "n-0,NVIDIA,4000,0:;");
	give_quota(m, "q", "\"limits.nvidia.com/gpumem\":\"5000\"");
	give_pod(m, pod_object("p", MEMORY("1001")));
	json_t *answer = explained(m, "p", NULL);
	assert_at(answer, "quotas",
		  "[{\"resource\":\"nvidia.com/gpumem\",\"limit\":5000,\"used\":4000}]");
	assert_at(answer, "nodes.0.verdict", "\"unfit\"");
	assert_at(answer, "nodes.0.why", "\"2/2 ResourceQuotaNotFit\"");
	assert_at(answer, "nodes.0.lacks", "nothing");
	json_decref(answer);
	answer = explained(m, "p", "n");
	assert_at(answer, "nodes.0.card.1.reason", "\"ResourceQuotaNotFit\"");
	json_decref(answer);
	give_quota(m, "q", "\"limits.nvidia.com/gpumem\":\"5001\"");
	answer = explained(m, "p", NULL);
	assert_at(answer, "nodes.0.verdict", "\"fits\"");
	json_decref(answer);
	model_free(m);
}

static void test_verdicts(void **state)
{
	struct model *m = model_of_nothing();
	give_node(m, node_object("e-free", 2, 8192, 100));
	give_node(m, node_object("b-full", 2, 8192, 100));
	give_node(m, node_object("d-small", 2, 4096, 100));
	json_t *liar = node_saying("a-liar", "[", NULL);
	assert_int_equal(model_update_node(m, liar, NULL), -EINVAL);
	json_decref(liar);
	give_node(m, node_saying("c-bare", NULL, NULL));
	fill(m, "x", "b-full", "b-full-0,NVIDIA,5000,40:;");
	fill(m, "y", "b-full", "b-full-1,NVIDIA,3000,95:;");
	give_pod(m, pod_object("p", MEMORY("6000") ",\"nvidia.com/gpucores\":\"30\""));
	json_t *answer = explained(m, "p", NULL);
	assert_int_equal(json_array_size(json_object_get(answer, "nodes")), 4);
	assert_at(answer, "nodes.0.verdict", "\"aside\"");
	assert_at(answer, "nodes.1",
		  "{\"node\":\"b-full\",\"verdict\":\"full\",\"why\":\"2/2 CardInsufficientMemory\","
		  "\"container\":0,\"beside_others\":false,\"reasons\":{\"CardInsufficientMemory\":2}"
		  ","
		  "\"most_free_mib\":5192,"
		  /* The second card lacks less memory, and compute besides. */
		  "\"lacks\":{\"cards\":1,\"memory_mib\":2808,\"cores_pct\":0,\"permille\":343},"
		  "\"cards\":2}");
	/* Nobody's end would help. */
	assert_at(answer, "nodes.2.verdict", "\"unfit\"");
	assert_at(answer, "nodes.2.lacks", "nothing");
	assert_at(answer, "nodes.3",
		  "{\"node\":\"e-free\",\"verdict\":\"fits\",\"score\":0.0,"
		  "\"cards\":2}");
	assert_at(answer, "cluster",
		  "{\"nodes\":3,\"nodes_without_cards\":1,\"nodes_aside\":1,\"cards\":6,"
		  "\"most_cards_of_a_node\":2,\"cards_cordoned\":0,\"cards_not_healthy\":0,"
		  "\"types\":[{\"type\":\"NVIDIA-H200\",\"cards\":6,\"memory_mib\":8192}]}");
	json_decref(answer);
	model_free(m);
}

/* The verdicts are those of filter, and of bind. */
static void test_the_same_as_filter(void **state)
{
	static const char *const limits[] = {
		GPU,
		MEMORY("6000"),
		MEMORY("9000"),
		GPU ",\"nvidia.com/gpucores\":\"100\"",
		"\"nvidia.com/gpu\":\"2\",\"nvidia.com/gpumem\":\"4000\"",
		"\"nvidia.com/gpu\":\"3\""
	};
	struct model *m = model_of_nothing();
	give_node(m, node_object("n0", 2, 8192, 100));
	give_node(m, node_object("n1", 2, 8192, 100));
	give_node(m, node_object("n2", 1, 8192, 100));
	fill(m, "x", "n0", "n0-0,NVIDIA,5000,40:;");
	fill(m, "y", "n2", "n2-0,NVIDIA,100,100:;");
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		give_pod(m, pod_object("p", limits[i]));
		json_t *args = filter_args(pod_object("p", limits[i]), "n0,n1,n2");
		json_t *filtered = verbs_filter(m, args);
		json_t *answer = explained(m, "p", NULL), *node;
		size_t k;
		json_array_foreach(json_object_get(answer, "nodes"), k, node)
		{
			const char *name = json_string_value(json_object_get(node, "node"));
			const char *why = json_string_value(json_object_get(node, "why"));
			assert_string_equal(reason_of(filtered, name), why ? why : "");
			assert_int_equal(!why, !strcmp(at(node, "verdict"), "\"fits\""));
		}
		json_decref(answer);
		json_decref(filtered);
		json_decref(args);
	}
	model_free(m);
}

/* A pod that fits a node may still not use it: the room is kept for the pod for which others were evicted. */
static void test_room_that_is_kept(void **state)
{
	static const char why[] = "is reserved for pod ns/urgent, for which other pods are evicted";
	const uint64_t second_ns = UINT64_C(1000000000);
	struct model *m = model_of_nothing();
	struct model_eviction evicted;
	give_node(m, node_object("n", 1, 8192, 100));
	fill(m, "low", "n", "n-0,NVIDIA,6000,0:;");
	json_t *urgent = pod_object("urgent", MEMORY("4000"));
	json_object_set_new(json_object_get(urgent, "spec"), "priority", json_integer(10));
	give_pod(m, json_incref(urgent));
	give_pod(m, pod_object("late", MEMORY("1000")));
	json_t *args = filter_args(urgent, "n");
	model_advance(m, 1000 * second_ns);
	json_decref(verbs_filter(m, args));
	json_t *answer = explained(m, "late", NULL);
	assert_at(answer, "nodes.0.verdict", "\"fits\"");
	json_decref(answer);
	model_advance(m, 1006 * second_ns);
	assert_int_equal(model_take_evictions(m, 0, &evicted, 1), 1);
	answer = explained(m, "late", NULL);
	assert_at(answer, "nodes.0.verdict", "\"left\"");
	json_t *node = json_array_get(json_object_get(answer, "nodes"), 0);
	assert_string_equal(json_string_value(json_object_get(node, "why")), why);
	json_decref(answer);
	json_decref(args);
	model_free(m);
}

static void test_card_by_card(void **state)
{
	struct model *m = model_of_nothing();
	give_node(m, node_object("n", 2, 8192, 100));
	fill(m, "x", "n", "n-0,NVIDIA,5000,40:;");
	give_pod(m, pod_object("p", MEMORY("6000")));
	json_t *answer = explained(m, "p", "n");
	/* A node that fits is told of whole as well. */
	assert_at(answer, "nodes.0.verdict", "\"fits\"");
	assert_at(answer, "nodes.0.card.0",
		  "{\"uuid\":\"n-0\",\"index\":0,\"type\":\"NVIDIA-H200\",\"memory_mib\":8192,"
		  "\"free_mib\":3192,\"cores_pct\":100,\"free_cores_pct\":60,\"slots\":10,"
		  "\"slots_used\":1,\"reason\":\"CardInsufficientMemory\",\"pods\":[{\"namespace\":"
		  "\"ns\",\"pod\":\"x\",\"container\":0,\"memory_mib\":5000,\"cores_pct\":40}]}");
	assert_at(answer, "nodes.0.card.1.reason", "\"\"");
	assert_at(answer, "nodes.0.card.1.pods", "[]");
	json_decref(answer);
	model_free(m);
}

/* Several cards: how many more would have to serve, and what each lacks. */
static void test_what_is_lacking(void **state)
{
	struct model *m = model_of_nothing();
	json_t *lacks;
	give_node(m, node_object("n", 4, 8000, 100));
	fill(m, "a", "n", "n-0,NVIDIA,4000,10:;");
	fill(m, "b", "n", "n-1,NVIDIA,2000,10:;");
	fill(m, "c", "n", "n-2,NVIDIA,1000,10:;");
	give_pod(m, pod_object("p", "\"nvidia.com/gpu\":\"3\",\"nvidia.com/gpumem\":\"7500\""));
	json_t *answer = explained(m, "p", NULL);
	assert_at(answer, "nodes.0.reasons",
		  "{\"CardInsufficientMemory\":3,\"AllocatedCardsInsufficientRequest\":1}");
	assert_at(answer, "nodes.0.lacks",
		  "{\"cards\":2,\"memory_mib\":1500,\"cores_pct\":0,\"permille\":250}");
	json_decref(answer);
	/* A card alone: what is on it would have to end. */
	give_pod(m, pod_object("p", "\"nvidia.com/gpu\":\"4\",\"nvidia.com/gpumem\":\"100\","
				    "\"nvidia.com/gpucores\":\"100\""));
	answer = explained(m, "p", NULL);
	lacks = json_object_get(json_array_get(json_object_get(answer, "nodes"), 0), "lacks");
	assert_at(lacks, "cards", "3");
	assert_at(lacks, "cores_pct", "10");
	json_decref(answer);
	/* More cards than it has. */
	give_pod(m, pod_object("p", "\"nvidia.com/gpu\":\"5\",\"nvidia.com/gpumem\":\"1\""));
	answer = explained(m, "p", NULL);
	assert_at(answer, "nodes.0.reasons", "{\"NodeInsufficientDevice\":4}");
	assert_at(answer, "nodes.0.verdict", "\"unfit\"");
	json_decref(answer);
	model_free(m);
}

/* Each of two containers would find a card, both do not. */
static void test_containers_in_each_others_way(void **state)
{
	struct model *m = model_of_nothing();
	give_node(m, node_object("n", 1, 8000, 100));
	json_t *pod = pod_object("p", MEMORY("5000"));
	json_t *list = json_object_get(json_object_get(pod, "spec"), "containers");
	json_array_append_new(list, json_deep_copy(json_array_get(list, 0)));
	give_pod(m, pod);
	json_t *answer = explained(m, "p", "n");
	assert_at(answer, "nodes.0.beside_others", "true");
	assert_at(answer, "nodes.0.container", "1");
	assert_at(answer, "nodes.0.most_free_mib", "3000");
	assert_at(answer, "nodes.0.lacks.memory_mib", "2000");
	assert_at(answer, "nodes.0.card.0.free_mib", "3000");
	json_decref(answer);
	model_free(m);
}

static void test_where_it_is(void **state)
{
	struct model *m = model_of_nothing();
	struct decision decision;
	struct error err;
	give_node(m, node_object("n", 1, 8192, 100));
	give_pod(m, pod_object("p", MEMORY("6000")));
	json_t *args = bind_args("p", "n");
	assert_int_equal(extender_decide(m, args, 1, &decision, &err), 0);
	struct place_card before = card_of(m, "n-0");
	json_t *answer = explained(m, "p", NULL);
	assert_at(answer, "state", "\"reserved\"");
	assert_at(answer, "on", "\"n\"");
	assert_at(answer, "held_for_s", "300");
	assert_at(answer, "shares",
		  "[{\"container\":0,\"card\":\"n-0\",\"memory_mib\":6000,\"cores_pct\":0}]");
	/* Its own reservation is not in its way, and stays. */
	assert_at(answer, "nodes.0.verdict", "\"fits\"");
	assert_int_equal(card_of(m, "n-0").memory_used_bytes, before.memory_used_bytes);
	assert_int_equal(card_of(m, "n-0").slots_used, 1);
	json_decref(answer);
	json_t *bound = pod_object("p", MEMORY("6000"));
	allocate(bound, "n", "n-0,NVIDIA,6000,0:;", "allocating", true);
	give_pod(m, bound);
	answer = explained(m, "p", NULL);
	assert_at(answer, "state", "\"bound\"");
	assert_at(answer, "held_for_s", "nothing");
	assert_at(answer, "nodes", "nothing");
	json_decref(answer);
	json_decref(args);
	decision_free(&decision);
	model_free(m);
}

static void assert_refused(struct model *m, const char *pod, const char *node, int code,
			   const char *part)
{
	const struct explain_query ask = { "ns", pod, node };
	struct error err = { 0 };
	json_t *answer = NULL;
	assert_int_equal(explain_pod(m, &ask, &answer, &err), -code);
	assert_null(answer);
	if (!strstr(err.text, part))
		fail_msg("%s", err.text);
}

/* Nothing is looked for by that: it is what a filter has found, or may. */
static void test_one_of_a_gang(void **state)
{
	struct model *m = model_of_nothing();
	json_t *pod = pod_object("p", GPU), *other = pod_object("q", GPU);
	annotate(pod, "allot.dev/gang", "train");
	annotate(pod, "allot.dev/gang-size", "2");
	annotate(other, "allot.dev/gang", "train");
	give_node(m, node_object("n", 1, 1000, 100));
	give_pod(m, json_incref(pod));
	json_t *answer = explained(m, "p", NULL);
	assert_at(answer, "gang",
		  "\"gang train: only 1 of its 2 pods exist: none is placed before all exist\"");
	json_decref(answer);
	give_pod(m, other);
	answer = explained(m, "p", NULL);
	assert_at(
		answer, "gang",
		"\"gang train: room for its 2 pods is searched when kube-scheduler next tries one of them\"");
	json_decref(answer);
	json_t *args = filter_args(json_incref(pod), "n");
	json_decref(verbs_filter(m, args));
	answer = explained(m, "p", NULL);
	assert_at(answer, "gang",
		  "\"gang train: only 1 of its 2 pods have room: all must be placed at once\"");
	json_decref(answer);
	give_node(m, node_object("n", 2, 1000, 100));
	json_decref(verbs_filter(m, args));
	answer = explained(m, "p", NULL);
	assert_at(answer, "gang", "\"gang train: 0 of 2 pods are ready to be bound\"");
	assert_at(answer, "state", "\"reserved\"");
	json_decref(answer);
	json_decref(args);
	json_decref(pod);
	model_free(m);
}

static void test_what_is_not_known(void **state)
{
	const struct model_terms terms = { .request = request_terms_default };
	struct model *m;
	assert_int_equal(model_new(&terms, &m), 0);
	assert_refused(m, "p", NULL, EAGAIN, "still being read");
	model_free(m);
	m = model_of_nothing();
	assert_refused(m, "p", NULL, ENOENT,
		       "pod ns/p: not found: it requests no GPU, or does not exist");
	give_pod(m, pod_object("p", GPU));
	assert_refused(m, "p", "n", ENOENT, "node n: not found");
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_it_asks_for),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_the_same_as_filter),
		cmocka_unit_test(test_room_that_is_kept),
		cmocka_unit_test(test_card_by_card),
		cmocka_unit_test(test_what_is_lacking),
		cmocka_unit_test(test_containers_in_each_others_way),
		cmocka_unit_test(test_where_it_is),
		cmocka_unit_test(test_one_of_a_gang),
		cmocka_unit_test(test_what_is_not_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
