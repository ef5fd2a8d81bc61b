/* Whose end makes room: those that kube-scheduler named, and as few more as it takes. */
#include "../cluster.h"
#include "verbs.h"

static void add_running(struct model *m, const char *name, int priority, const char *shares)
{
	json_t *pod = pod_object(name, GPU);
	allocate(pod, "n", shares, "success", true);
	json_object_set_new(json_object_get(pod, "spec"), "priority", json_integer(priority));
	give_pod(m, pod);
}

/* Two cards of 8,192 MiB: 2,192 MiB and 1,192 MiB are free. */
static struct model *full_node(void)
{
	struct model *m = model_of_nothing();
	give_node(m, node_object("n", 2, 8192, 100));
	add_running(m, "low", 1, "n-0,NVIDIA,2000,0:;");
	add_running(m, "middle", 5, "n-0,NVIDIA,4000,0:;");
	add_running(m, "other", 5, "n-1,NVIDIA,1000,0:;");
	add_running(m, "high", 100, "n-1,NVIDIA,6000,0:;");
	return m;
}

static const char *victims_for(struct model *m, const char *limits, int priority, const char *named)
{
	static char text[512];
	json_t *pod = pod_object("new", limits), *one;
	size_t i, at = 0;
	json_object_set_new(json_object_get(pod, "spec"), "priority", json_integer(priority));
	json_t *args = json_pack("{s:o,s:o}", "Pod", pod, "NodeNameToMetaVictims",
				 object_of("{\"n\":{\"Pods\":[%s],\"NumPDBViolations\":2}}", named));
	json_t *answer = extender_preempt(m, args);
	json_t *all = json_object_get(answer, "NodeNameToMetaVictims");
	json_t *n = json_object_get(all, "n");
	snprintf(text, sizeof(text), "%s", n ? "" : "none");
	if (n)
		assert_int_equal(json_integer_value(json_object_get(n, "NumPDBViolations")), 2);
	json_array_foreach(json_object_get(n, "Pods"), i, one)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? "," : "",
				       json_string_value(json_object_get(one, "UID")));
	json_decref(args);
	json_decref(answer);
	return text;
}

#define MIB(n) "\"nvidia.com/gpumem\":\"" n "\""

static void test_victims(void **state)
{
	static const struct {
		const char *limits;
		int priority;
		const char *named, *victims;
	} rows[] = {
		/* There is room: only those named end, for kube-scheduler's own reasons. */
		{ MIB("2000"), 10, "{\"UID\":\"cpu\"}", "cpu" },
		{ MIB("4000"), 10, "{\"UID\":\"uid-low\"}", "uid-low" },
		/* What they free does not suffice. */
		{ MIB("4000"), 10, "{\"UID\":\"cpu\"}", "cpu,uid-low" },
		/* The lowest one was ended first, and then not needed. */
		{ MIB("6000"), 10, "{\"UID\":\"cpu\"}", "cpu,uid-middle" },
		{ MIB("8000"), 10, "{\"UID\":\"cpu\"}", "cpu,uid-low,uid-middle" },
		/* Only those of lower priority do. */
		{ MIB("6000"), 5, "{\"UID\":\"cpu\"}", "none" },
		{ MIB("9000"), 1000, "{\"UID\":\"cpu\"}", "none" },
		{ "\"nvidia.com/gpumem\":\"-1\"", 1000, "{\"UID\":\"cpu\"}", "none" },
		{ "\"cpu\":\"1\"", 10, "{\"UID\":\"cpu\"}", "cpu" },
	};
	struct model *m = full_node();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(victims_for(m, rows[i].limits, rows[i].priority, rows[i].named),
				    rows[i].victims);
	/* Nothing has changed by it. */
	assert_int_equal(card_of(m, "n-0").memory_used_bytes, UINT64_C(6000) << 20);
	assert_int_equal(card_of(m, "n-1").memory_used_bytes, UINT64_C(7000) << 20);
	model_free(m);
}

/* Victims that came whole; a node that is not known. */
static void test_whole(void **state)
{
	struct model *m = full_node();
	json_t *pod = pod_object("new", MIB("4000"));
	json_t *args = json_pack("{s:o,s:n,s:o}", "Pod", pod, "NodeNameToMetaVictims",
				 "NodeNameToVictims",
				 object_of("{\"n\":{\"Pods\":[{\"metadata\":{\"uid\":\"uid-low\"}}]},"
					   "\"elsewhere\":{\"Pods\":[]}}"));
	json_t *answer = extender_preempt(m, args);
	json_t *expected = object_of("{\"NodeNameToMetaVictims\":{\"n\":{\"Pods\":[{\"UID\":"
				     "\"uid-low\"}],\"NumPDBViolations\":0}}}");
	assert_true(json_equal(answer, expected));
	json_decref(expected);
	json_decref(answer);
	json_decref(args);
	model_free(m);
}

/* ---- what kube-scheduler does not see ---- */

#define S UINT64_C(1000000000)

static json_t *waiting(const char *name, int priority, const char *policy)
{
	json_t *pod = pod_object(name, MIB("4000"));
	json_t *spec = json_object_get(pod, "spec");
	json_object_set_new(spec, "priority", json_integer(priority));
	if (policy)
		json_object_set_new(spec, "preemptionPolicy", json_string(policy));
	return pod;
}

static const char *turned_away_from(struct model *m, json_t *pod, const char *node)
{
	static char text[200];
	json_t *args = filter_args(pod, node), *answer = verbs_filter(m, args);
	snprintf(text, sizeof(text), "%s", reason_of(answer, node));
	json_decref(args);
	json_decref(answer);
	return text;
}

static const char *turned_away(struct model *m, json_t *pod)
{
	return turned_away_from(m, pod, "n");
}

static size_t evictions(struct model *m, uint64_t now_s, struct model_eviction list[8])
{
	model_advance(m, now_s * S);
	return model_take_evictions(m, 0, list, 8);
}

static void test_pods_that_find_no_room(void **state)
{
	static const char no_memory[] = "2/2 CardInsufficientMemory";
	struct model *m = full_node();
	struct model_eviction list[8];
	json_t *gone = pod_object("low", GPU);
	model_advance(m, 1000 * S);
	/* Nobody ends for who has no higher priority, or does not want it. */
	assert_string_equal(turned_away(m, waiting("equal", 1, NULL)), no_memory);
	assert_string_equal(turned_away(m, waiting("never", 1000, "Never")), no_memory);
	assert_int_equal(evictions(m, 1010, list), 0);
	/* The lowest that suffices, once the pod has waited for some seconds. */
	assert_string_equal(turned_away(m, waiting("urgent", 1000, NULL)), no_memory);
	assert_int_equal(evictions(m, 1014, list), 0);
	assert_int_equal(evictions(m, 1016, list), 1);
	assert_string_equal(list[0].name, "low");
	assert_string_equal(list[0].for_pod, "urgent");
	assert_true(list[0].is_displaced);
	assert_int_equal(evictions(m, 1020, list), 0);
	/* Its place is the pod's: others that do not outrank it wait, until it sits, or has had two minutes. */
	model_remove_pod(m, gone);
	json_decref(gone);
	assert_string_equal(turned_away(m, waiting("late", 1000, NULL)),
			    "is reserved for pod ns/urgent, for which other pods are evicted");
	assert_string_equal(turned_away(m, waiting("outranks", 1001, NULL)), "");
	assert_string_equal(turned_away(m, waiting("urgent", 1000, NULL)), "");
	assert_int_equal(evictions(m, 1140, list), 0);
	assert_string_equal(turned_away(m, waiting("late", 1000, NULL)), "");
	model_free(m);
}

static void assert_evicted(struct model *m, uint64_t now_s, size_t most, const char *names)
{
	struct model_eviction list[8];
	char text[200] = "";
	size_t at = 0;
	model_advance(m, now_s * S);
	size_t count = model_take_evictions(m, 0, list, most);
	for (size_t i = 0; i < count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? "," : "",
				       list[i].name);
	assert_string_equal(text, names);
}

static json_t *waiting_for(const char *name, const char *limits, int priority)
{
	json_t *pod = pod_object(name, limits);
	json_object_set_new(json_object_get(pod, "spec"), "priority", json_integer(priority));
	return pod;
}

static void end_pod(struct model *m, const char *name)
{
	json_t *gone = pod_object(name, GPU);
	model_remove_pod(m, gone);
	json_decref(gone);
}

/* A pod that needs more victims than may be evicted at once gets the others at the next calls. */
static void test_more_victims_than_at_once(void **state)
{
	struct model *m = full_node();
	model_advance(m, 1000 * S);
	turned_away(m, waiting_for("big", MIB("8000"), 10));
	assert_evicted(m, 1006, 1, "low");
	/* Its second victim has not ended yet: what the first one frees is not another pod's meanwhile. */
	end_pod(m, "low");
	assert_string_equal(turned_away(m, waiting_for("late", MIB("4000"), 10)),
			    "is reserved for pod ns/big, for which other pods are evicted");
	assert_evicted(m, 1007, 1, "middle");
	assert_evicted(m, 1008, 1, "");
	end_pod(m, "middle");
	assert_string_equal(turned_away(m, waiting_for("big", MIB("8000"), 10)), "");
	model_free(m);
}

/* Victims that don't fit into the rest of a call are all named by the next one, so that none is evicted in vain. */
static void test_victims_are_named_together(void **state)
{
	struct model *m = full_node();
	give_node(m, node_object("n2", 1, 8192, 100));
	json_t *pod = pod_object("else", GPU);
	allocate(pod, "n2", "n2-0,NVIDIA,6000,0:;", "success", true);
	give_pod(m, pod);
	model_advance(m, 1000 * S);
	turned_away_from(m, waiting_for("first", MIB("4000"), 20), "n2");
	turned_away(m, waiting_for("big", MIB("8000"), 10));
	assert_evicted(m, 1006, 0, "");
	assert_evicted(m, 1006, 2, "else");
	assert_evicted(m, 1007, 2, "low,middle");
	model_free(m);
}

/* The time for which the room is kept begins with the first eviction, however long the pod waited for that. */
static void test_room_is_kept_after_a_long_wait(void **state)
{
	struct model *m = full_node();
	model_advance(m, 1000 * S);
	turned_away(m, waiting_for("big", MIB("8000"), 10));
	assert_evicted(m, 1200, 1, "low");
	assert_evicted(m, 1201, 1, "middle");
	end_pod(m, "low");
	assert_string_equal(turned_away(m, waiting_for("late", MIB("4000"), 10)),
			    "is reserved for pod ns/big, for which other pods are evicted");
	model_free(m);
}

/* If the eviction of a victim is refused, another pod goes instead. */
static void test_a_victim_that_is_refused(void **state)
{
	struct model *m = full_node();
	model_advance(m, 1000 * S);
	turned_away(m, waiting_for("urgent", MIB("4000"), 10));
	assert_evicted(m, 1006, 8, "low");
	model_eviction_refused(m, "uid-low");
	assert_evicted(m, 1007, 8, "middle");
	assert_evicted(m, 1008, 8, "");
	model_free(m);
}

/* The room goes to the pod of the highest priority, and among equals to the pod that has waited longest. */
static void test_who_is_served_first(void **state)
{
	for (int priority = 10; priority <= 11; priority++) {
		struct model *m = full_node();
		struct model_eviction list[1];
		model_advance(m, 1000 * S);
		turned_away(m, waiting_for("earlier", MIB("4000"), 10));
		model_advance(m, 1001 * S);
		turned_away(m, waiting_for("later", MIB("4000"), priority));
		model_advance(m, 1010 * S);
		assert_int_equal(model_take_evictions(m, 0, list, 1), 1);
		assert_string_equal(list[0].for_pod, priority == 10 ? "earlier" : "later");
		model_free(m);
	}
}

/* On a node that is reserved for another pod, nothing is evicted for a pod that may not go there. */
static void test_a_node_that_is_reserved(void **state)
{
	struct model *m = full_node();
	model_advance(m, 1000 * S);
	turned_away(m, waiting_for("urgent", MIB("4000"), 50));
	assert_evicted(m, 1006, 8, "low");
	turned_away(m, waiting_for("same", MIB("6000"), 50));
	turned_away(m, waiting_for("lower", MIB("6000"), 10));
	assert_evicted(m, 1013, 8, "");
	assert_string_equal(victims_for(m, MIB("6000"), 50, "{\"UID\":\"cpu\"}"), "none");
	/* A pod of higher priority may, and has the node from then on. */
	turned_away(m, waiting_for("outranks", MIB("6000"), 60));
	assert_evicted(m, 1019, 8, "middle");
	assert_string_equal(turned_away(m, waiting_for("late", MIB("1000"), 60)),
			    "is reserved for pod ns/outranks, for which other pods are evicted");
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_victims),
					    cmocka_unit_test(test_pods_that_find_no_room),
					    cmocka_unit_test(test_more_victims_than_at_once),
					    cmocka_unit_test(test_victims_are_named_together),
					    cmocka_unit_test(test_room_is_kept_after_a_long_wait),
					    cmocka_unit_test(test_a_victim_that_is_refused),
					    cmocka_unit_test(test_who_is_served_first),
					    cmocka_unit_test(test_a_node_that_is_reserved),
					    cmocka_unit_test(test_whole) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
