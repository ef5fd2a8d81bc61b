/* Why a pod that is placed by use waits, in figures. */
#include "../cluster.h"
#include "kube/hami/annotations.h"
#include "scheduler/explain/explain.h"

#define S UINT64_C(1000000000)
#define LIMITS(cores) "\"nvidia.com/gpumem\":\"100\",\"nvidia.com/gpucores\":\"" cores "\""

static struct model *model_by_use(void)
{
	struct model *m;
	struct model_terms terms = { .request = request_terms_default };
	terms.request.places_by_use = true;
	assert_int_equal(model_new(&terms, &m), 0);
	for (enum model_kind kind = MODEL_NODES; kind <= MODEL_PODS; kind++) {
		model_list_begin(m, kind);
		model_list_end(m, kind);
	}
	model_advance(m, 1000 * S);
	return m;
}

/* Of one card, of which 80 are promised; `at`: no two texts are the same. */
static void say_use(struct model *m, int at, int peak, int now, int held)
{
	char text[200];
	json_t *node = node_object("n", 1, 8192, 100);
	snprintf(text, sizeof(text),
		 "{\"t\":%d,\"cards\":[{\"id\":\"n-0\",\"peak\":%d,\"now\":%d,\"held\":%d,\"mem\":0}]}",
		 at, peak, now, held);
	annotate(node, KUBE_NODE_USE, text);
	give_node(m, node);
}

static void give_training(struct model *m)
{
	json_t *pod = pod_object("training", LIMITS("80"));
	allocate(pod, "n", "n-0,NVIDIA,100,80:;", "success", true);
	give_pod(m, pod);
}

/* Placed by use: 20 % of what is left. */
static void give_opportunistic(struct model *m, const char *name)
{
	json_t *pod = pod_object(name, LIMITS("20"));
	allocate(pod, "n", "n-0,NVIDIA,100,0:;", "success", true);
	annotate(pod, "allot.dev/borrowed", "n-0,NVIDIA,100,20:;");
	give_pod(m, pod);
}

static void give_waiting(struct model *m, const char *name, const char *placement)
{
	json_t *pod = pod_object(name, LIMITS("30"));
	annotate(pod, "allot.dev/placement", placement);
	give_pod(m, pod);
}

/* The first node's entry, or what it says of its only card: to be given up. */
static json_t *entry(struct model *m, const char *pod, bool is_card)
{
	const struct explain_query ask = { "ns", pod, is_card ? "n" : NULL };
	struct error err = { 0 };
	json_t *answer;
	if (explain_pod(m, &ask, &answer, &err) < 0)
		fail_msg("%s", err.text);
	json_t *node = json_array_get(json_object_get(answer, "nodes"), 0);
	json_t *found = is_card ? json_array_get(json_object_get(node, "card"), 0) : node;
	json_incref(found);
	json_decref(answer);
	return found;
}

static void assert_member(json_t *object, const char *name, const char *wanted)
{
	json_t *member = json_object_get(object, name);
	char *text = member ? json_dumps(member, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("nothing");
	assert_string_equal(text, wanted);
	free(text);
}

/* 30 of 80 are used at the peak, with a margin of 10; 40 are lent: 20 are left. */
static void test_the_figures(void **state)
{
	struct model *m = model_by_use();
	give_training(m);
	say_use(m, 1, 30, 12, 80);
	say_use(m, 2, 30, 12, 80);
	give_opportunistic(m, "f1");
	give_opportunistic(m, "f2");
	give_waiting(m, "p", "use");
	json_t *card = entry(m, "p", true), *node = entry(m, "p", false);
	assert_member(card, "use",
		      "{\"promised_pct\":80,\"lent_pct\":40,\"measured_pct\":80,\"peak_pct\":30,"
		      "\"now_pct\":12,\"taken_pct\":80}");
	assert_member(card, "free_cores_pct", "20");
	assert_member(card, "reason", "\"CardInsufficientCore\"");
	assert_member(node, "most_free_cores_pct", "20");
	assert_member(node, "verdict", "\"full\"");
	assert_member(node, "cards_shut", "nothing");
	assert_member(node, "use_unknown", "nothing");
	assert_member(json_array_get(json_object_get(card, "pods"), 0), "lent_pct", "20");
	json_decref(card);
	json_decref(node);
	/* To others nothing of this is a reason, and they are told nothing of it. */
	give_waiting(m, "q", "guarantee");
	card = entry(m, "q", true);
	assert_member(card, "use", "nothing");
	assert_member(card, "free_cores_pct", "20");
	json_decref(card);
	/* Less is used: there is room, by the same figures. */
	say_use(m, 3, 10, 0, 80);
	card = entry(m, "p", true);
	assert_member(card, "free_cores_pct", "40");
	assert_member(card, "reason", "\"\"");
	json_decref(card);
	card = entry(m, "q", true);
	assert_member(card, "free_cores_pct", "20");
	assert_member(card, "reason", "\"CardInsufficientCore\"");
	json_decref(card);
	model_free(m);
}

static void assert_unknown(struct model *m, const char *why)
{
	json_t *card = entry(m, "p", true), *node = entry(m, "p", false);
	assert_member(card, "use", "nothing");
	assert_member(card, "use_unknown", why);
	assert_member(node, "use_unknown", why);
	assert_member(node, "cards_of_unknown_use", "1");
	/* By promises. */
	assert_member(card, "free_cores_pct", "20");
	json_decref(card);
	json_decref(node);
}

static void test_why_it_is_not_known(void **state)
{
	struct model *m = model_by_use();
	give_training(m);
	give_node(m, node_object("n", 1, 8192, 100));
	give_waiting(m, "p", "use");
	assert_unknown(
		m,
		"\"the node does not report how busy its GPUs are (annotation allot.dev/node-use)\"");
	say_use(m, 1, 0, 0, 80);
	assert_unknown(
		m,
		"\"the node's report of GPU use has not changed since the scheduler first read it, so it may be stale\"");
	say_use(m, 2, 0, 0, 80);
	json_t *card = entry(m, "p", true);
	assert_member(card, "use_unknown", "nothing");
	json_decref(card);
	model_advance(m, 1181 * S);
	assert_unknown(
		m, "\"the node has not reported the GPU's use for 180 s: is its allotd running?\"");
	json_t *other = node_object("n", 1, 8192, 100);
	annotate(other, KUBE_NODE_USE, "{\"t\":3,\"cards\":[]}");
	give_node(m, other);
	assert_unknown(m, "\"the node does not report the use of this GPU\"");
	model_free(m);
}

/* Opportunistic pods were sent away: nobody's end makes room then. */
static void test_cooldown(void **state)
{
	struct model *m = model_by_use();
	struct model_eviction list[4];
	give_training(m);
	say_use(m, 1, 0, 0, 80);
	say_use(m, 2, 95, 95, 80);
	give_opportunistic(m, "f1");
	assert_int_equal(model_take_evictions(m, S, list, 4), 0);
	model_advance(m, 1001 * S);
	assert_int_equal(model_take_evictions(m, S, list, 4), 1);
	model_advance(m, 1061 * S);
	give_waiting(m, "p", "use");
	json_t *card = entry(m, "p", true), *node = entry(m, "p", false);
	assert_member(json_object_get(card, "use"), "shut_for_s", "540");
	assert_member(json_object_get(card, "use"), "taken_pct", "100");
	assert_member(card, "free_cores_pct", "0");
	assert_member(node, "cards_shut", "1");
	assert_member(node, "open_in_s", "540");
	assert_member(node, "verdict", "\"unfit\"");
	assert_member(node, "lacks", "nothing");
	json_decref(card);
	json_decref(node);
	model_free(m);
}

/* What one has that was placed so. */
static void test_what_it_has(void **state)
{
	struct model *m = model_by_use();
	const struct explain_query ask = { "ns", "f1", NULL };
	json_t *answer;
	give_node(m, node_object("n", 1, 8192, 100));
	give_opportunistic(m, "f1");
	assert_int_equal(explain_pod(m, &ask, &answer, NULL), 0);
	assert_member(answer, "shares",
		      "[{\"container\":0,\"card\":\"n-0\",\"memory_mib\":100,\"cores_pct\":0,"
		      "\"lent_pct\":20}]");
	json_decref(answer);
	give_waiting(m, "p", "use");
	const struct explain_query waiting = { "ns", "p", NULL };
	assert_int_equal(explain_pod(m, &waiting, &answer, NULL), 0);
	assert_member(answer, "placed_by", "\"use\"");
	json_decref(answer);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_figures),
		cmocka_unit_test(test_why_it_is_not_known),
		cmocka_unit_test(test_cooldown),
		cmocka_unit_test(test_what_it_has),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
