/* Placing by what cards are used, as filter, bind and preempt see it; and what of it stands in annotations. */
#include "../cluster.h"
#include "kube/hami/annotations.h"
#include "verbs.h"

#define S UINT64_C(1000000000)
#define BORROWED "allot.dev/borrowed"
#define LIMITS(mib, cores) "\"nvidia.com/gpumem\":\"" mib "\",\"nvidia.com/gpucores\":\"" cores "\""
#define INFERENCE LIMITS("1000", "20")

/* A model that places by use, with node n of two cards of 8,192 MiB, and a training of 80 on each that holds 4,000. */
static struct model *model_by_use(void)
{
	struct model *m;
	struct model_terms terms = { .request = request_terms_default,
				     .gang_hold_ns = GANG_HOLD_NS };
	terms.request.places_by_use = true;
	assert_int_equal(model_new(&terms, &m), 0);
	for (enum model_kind kind = MODEL_NODES; kind <= MODEL_PODS; kind++) {
		model_list_begin(m, kind);
		model_list_end(m, kind);
	}
	model_advance(m, 1000 * S);
	return m;
}

static json_t *training(const char *name, const char *shares)
{
	json_t *pod = pod_object(name, LIMITS("4000", "80"));
	allocate(pod, "n", shares, "success", true);
	return pod;
}

/* `at`: no two texts are the same. */
static void say_use(struct model *m, int at, int peak, int now, int held)
{
	char text[400];
	json_t *node = node_object("n", 2, 8192, 100);
	snprintf(text, sizeof(text),
		 "{\"t\":%d,\"cards\":[{\"id\":\"n-0\",\"peak\":%d,\"now\":%d,\"held\":%d,\"mem\":"
		 "4000},"
		 "{\"id\":\"n-1\",\"peak\":80,\"now\":80,\"held\":80,\"mem\":4000}]}",
		 at, peak, now, held);
	annotate(node, KUBE_NODE_USE, text);
	give_node(m, node);
}

static struct model *trained(void)
{
	struct model *m = model_by_use();
	give_node(m, node_object("n", 2, 8192, 100));
	give_pod(m, training("t0", "n-0,NVIDIA,4000,80:;"));
	give_pod(m, training("t1", "n-1,NVIDIA,4000,80:;"));
	return m;
}

static json_t *opportunistic_object(const char *name)
{
	json_t *pod = pod_object(name, INFERENCE);
	annotate(pod, "allot.dev/workload", "inference");
	return pod;
}

/* That card or none. */
static json_t *opportunistic_for(const char *name, const char *card)
{
	json_t *pod = opportunistic_object(name);
	annotate(pod, "nvidia.com/use-gpuuuid", card);
	return pod;
}

/* Does it fit n? The pod is given up; with a reason that is said. */
static bool fits(struct model *m, json_t *pod, const char *reason)
{
	json_t *args = filter_args(pod, "n"), *answer = verbs_filter(m, args);
	bool is = *fitting(answer);
	if (!is && strcmp(reason_of(answer, "n"), reason) != 0)
		fail_msg("%s, not %s", reason_of(answer, "n"), reason);
	json_decref(args);
	json_decref(answer);
	return is;
}

/* Chosen, and written to it. The text of what it borrows is to be freed. NULL: nothing. */
static char *place(struct model *m, json_t *pod, const char *name, const char *shares)
{
	struct decision d;
	struct error err = { 0 };
	json_t *args = bind_args(name, "n");
	give_pod(m, json_incref(pod));
	if (extender_decide(m, args, 0, &d, &err) < 0)
		fail_msg("%s", err.text);
	char *text = shares_format(&d.shares);
	assert_string_equal(text, shares);
	char *borrowed = shares_have_borrowed(&d.shares) ? shares_format_borrowed(&d.shares) : NULL;
	allocate(pod, "n", text, "success", true);
	if (borrowed)
		annotate(pod, BORROWED, borrowed);
	give_pod(m, pod);
	free(text);
	decision_free(&d);
	json_decref(args);
	return borrowed;
}

#define NO_CORE "2/2 CardInsufficientCore"
#define NO_CORE_THERE "1/2 CardUuidMismatch, 1/2 CardInsufficientCore"
#define NO_MEMORY "1/2 CardUuidMismatch, 1/2 CardInsufficientMemory"
#define NO_CORE_OR "1/2 CardInsufficientMemory, 1/2 CardInsufficientCore"

/* 20 % beside 80 that are promised, of which 30 are used: there is room for three. */
static void test_it_fills(void **state)
{
	struct model *m = trained();
	/* By promises there is room for one on each card. */
	static const char *const names[] = { "a", "b", "c" };
	say_use(m, 1, 30, 30, 80);
	say_use(m, 2, 30, 30, 80);
	for (int i = 0; i < 3; i++) {
		assert_true(fits(m, opportunistic_for(names[i], "n-0"), ""));
		/* Nothing of the card is promised to it. */
		char *borrowed = place(m, opportunistic_for(names[i], "n-0"), names[i],
				       "n-0,NVIDIA,1000,0:;");
		assert_string_equal(borrowed, "n-0,NVIDIA,1000,20:;");
		free(borrowed);
	}
	/* 30 + 10 + 60 of the first, 80 + 20 of the second. */
	assert_false(fits(m, opportunistic_for("d", "n-0"), NO_CORE_THERE));
	free(place(m, opportunistic_object("d"), "d", "n-1,NVIDIA,1000,0:;"));
	assert_false(fits(m, opportunistic_object("e"), NO_CORE));
	assert_int_equal(card_of(m, "n-0").cores_used_mpct, 80000);
	assert_int_equal(card_of(m, "n-0").memory_used_bytes, UINT64_C(7000) << 20);
	/* What was promised to nobody is there for those who want a promise. */
	assert_true(fits(m, pod_object("o", INFERENCE), ""));
	/* Memory is promised: 1,192 MiB are left on the first, 3,192 on the second, which has no time. */
	json_t *large = pod_object("large", LIMITS("1193", "1"));
	annotate(large, "allot.dev/placement", "use");
	assert_false(fits(m, large, NO_CORE_OR));
	model_free(m);
}

static void test_what_is_old_counts_for_nothing(void **state)
{
	struct model *m = trained();
	json_t *half = pod_object("half", LIMITS("100", "50"));
	annotate(half, "allot.dev/placement", "use");
#define HALF_FITS fits(m, json_incref(half), NO_CORE)
	assert_false(HALF_FITS);
	/* What stood there when we came may be of a daemon that is gone. */
	say_use(m, 1, 0, 0, 80);
	assert_false(HALF_FITS);
	say_use(m, 1, 0, 0, 80);
	assert_false(HALF_FITS);
	say_use(m, 2, 0, 0, 80);
	assert_true(HALF_FITS);
	model_advance(m, 1180 * S);
	assert_true(HALF_FITS);
	model_advance(m, 1181 * S);
	assert_false(HALF_FITS);
	say_use(m, 3, 0, 0, 80);
	assert_true(HALF_FITS);
	/* It says nothing any more; nothing that can be read. */
	give_node(m, node_object("n", 2, 8192, 100));
	assert_false(HALF_FITS);
	say_use(m, 4, 0, 0, 80);
	say_use(m, 5, 0, 0, 80);
	assert_true(HALF_FITS);
	json_t *node = node_object("n", 2, 8192, 100);
	struct error err = { 0 };
	annotate(node, KUBE_NODE_USE, "{\"t\":1,\"cards\":[{\"id\":\"n-0\"}]}");
	assert_int_equal(model_update_node(m, node, &err), -22);
	assert_string_equal(err.text,
			    "node n: allot.dev/node-use: GPU 0: peak: must be a whole number "
			    "from 0 to 10000");
	json_decref(node);
	assert_false(HALF_FITS);
	json_decref(half);
	model_free(m);
}

/* What came since the node has measured is taken as used; and who does not say so is judged by promises. */
static void test_who_is_judged_how(void **state)
{
	struct model *m = trained();
	say_use(m, 1, 0, 0, 50);
	say_use(m, 2, 0, 0, 50);
	json_t *pod = pod_object("p", LIMITS("100", "61"));
	assert_false(fits(m, json_incref(pod), NO_CORE));
	annotate(pod, "allot.dev/workload", "inference");
	assert_false(fits(m, json_incref(pod), NO_CORE));
	say_use(m, 3, 0, 0, 80);
	assert_true(fits(m, json_incref(pod), ""));
	annotate(pod, "allot.dev/placement", "guarantee");
	assert_false(fits(m, json_incref(pod), NO_CORE));
	annotate(pod, "allot.dev/placement", "use");
	annotate(pod, "allot.dev/workload", "training");
	assert_true(fits(m, json_incref(pod), ""));
	annotate(pod, "allot.dev/placement", "usage");
	assert_false(fits(m, pod, "allot.dev/placement: 'usage': must be 'use' or 'guarantee'"));
	/* Whole cards, and gpu-manager's units, which the kubelet counts itself, are promised. */
	json_t *vcuda = pod_object("v", "\"tencent.com/vcuda-core\":\"61\",\"tencent.com/"
					"vcuda-memory\":\"1\"");
	annotate(vcuda, "allot.dev/placement", "use");
	assert_false(fits(m, vcuda, NO_CORE));
	json_t *whole = pod_object("w", LIMITS("100", "100"));
	annotate(whole, "allot.dev/placement", "use");
	assert_false(fits(m, whole, NO_CORE));
	model_free(m);
}

/* Where no use is known an opportunistic pod is like anybody: so nodes of HAMi's limit it as they do. */
static void test_without_use_it_is_a_promise(void **state)
{
	struct model *m = trained();
	assert_null(place(m, opportunistic_object("a"), "a", "n-0,NVIDIA,1000,20:;"));
	assert_int_equal(card_of(m, "n-0").cores_used_mpct, 100000);
	model_free(m);
}

static struct model *filled(void)
{
	struct model *m = trained();
	say_use(m, 1, 0, 0, 80);
	say_use(m, 2, 0, 0, 80);
	for (int i = 0; i < 4; i++) {
		char name[8], since[24];
		snprintf(name, sizeof(name), "f%d", i);
		json_t *pod = opportunistic_for(name, "n-0");
		snprintf(since, sizeof(since), "%d", 1790000000 + i);
		annotate(pod, KUBE_POD_BIND_TIME, since);
		free(place(m, pod, name, "n-0,NVIDIA,1000,0:;"));
	}
	return m;
}

static const char *evicted(struct model *m, uint64_t now_s, size_t most)
{
	static char text[200];
	struct model_eviction list[8];
	size_t at = 0;
	model_advance(m, now_s * S);
	size_t count = model_take_evictions(m, 60 * S, list, most);
	text[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		assert_true(list[i].is_displaced || !strcmp(list[i].card, "n-0"));
		assert_string_equal(list[i].node, "n");
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? "," : "",
				       list[i].name);
	}
	return text;
}

/* The training comes back: what it leaves is enough for one. */
static void test_it_goes(void **state)
{
	struct model *m = filled();
	assert_string_equal(evicted(m, 1001, 8), "");
	say_use(m, 3, 80, 80, 80);
	assert_string_equal(evicted(m, 1002, 8), "");
	assert_string_equal(evicted(m, 1061, 8), "");
	/* The youngest; by and by. */
	assert_string_equal(evicted(m, 1062, 2), "f3,f2");
	assert_string_equal(evicted(m, 1063, 8), "");
	assert_string_equal(evicted(m, 1122, 8), "");
	assert_string_equal(evicted(m, 1123, 8), "f1");
	assert_string_equal(evicted(m, 1170, 8), "");
	for (int i = 1; i < 4; i++) {
		char name[8];
		snprintf(name, sizeof(name), "f%d", i);
		json_t *gone = opportunistic_object(name);
		model_remove_pod(m, gone);
		json_decref(gone);
	}
	/* Nobody comes while it is shut, though nobody works. */
	say_use(m, 4, 0, 0, 80);
	assert_false(fits(m, opportunistic_for("g", "n-0"), NO_CORE_THERE));
	model_advance(m, 1123 * S + 1200 * S);
	say_use(m, 5, 0, 0, 80);
	assert_true(fits(m, opportunistic_for("g", "n-0"), ""));
	model_free(m);
}

/* Old news send nobody away. */
static void test_nobody_goes_unseen(void **state)
{
	struct model *m = filled();
	say_use(m, 3, 80, 80, 80);
	assert_string_equal(evicted(m, 1001, 8), "");
	assert_string_equal(evicted(m, 1182, 8), "");
	say_use(m, 4, 80, 80, 80);
	assert_string_equal(evicted(m, 1183, 8), "");
	model_free(m);
}

/* Who wants memory has theirs first, whatever the priorities are. */
static void test_they_are_victims(void **state)
{
	struct model *m = filled();
	json_t *pod = pod_object("o", LIMITS("2192", "20"));
	annotate(pod, "nvidia.com/use-gpuuuid", "n-0");
	json_t *args = json_pack("{s:o,s:o}", "Pod", pod, "NodeNameToMetaVictims",
				 object_of("{\"n\":{\"Pods\":[{\"UID\":\"cpu\"}]}}"));
	json_t *answer = extender_preempt(m, args);
	json_t *n = json_object_get(json_object_get(answer, "NodeNameToMetaVictims"), "n");
	/* 192 MiB are free: two of 1,000 go, and not the training, which has no higher priority. */
	json_t *expected = object_of("[{\"UID\":\"cpu\"},{\"UID\":\"uid-f3\"},{\"UID\":\"uid-f2\"}]");
	assert_true(json_equal(json_object_get(n, "Pods"), expected));
	json_decref(expected);
	json_decref(answer);
	/* Not so an opportunistic pod. */
	annotate(pod, "allot.dev/placement", "use");
	answer = extender_preempt(m, args);
	assert_int_equal(json_object_size(json_object_get(answer, "NodeNameToMetaVictims")), 0);
	json_decref(answer);
	json_decref(args);
	model_free(m);
}

/* Who finds no room for their sake has theirs soon, without any priority; as few go as that takes, and none comes back. */
static void test_they_give_way(void **state)
{
	struct model *m = filled();
	struct model_eviction list[8];
	json_t *pod = pod_object("o", LIMITS("2192", "20"));
	annotate(pod, "nvidia.com/use-gpuuuid", "n-0");
	assert_false(fits(m, json_incref(pod), NO_MEMORY));
	assert_string_equal(evicted(m, 1001, 8), "");
	model_advance(m, 1006 * S);
	assert_int_equal(model_take_evictions(m, 60 * S, list, 8), 2);
	assert_string_equal(list[0].name, "f3");
	assert_string_equal(list[1].name, "f2");
	assert_true(list[0].is_displaced && list[1].is_displaced);
	/* They have not ended yet: nobody goes beside them. */
	assert_false(fits(m, json_incref(pod), NO_MEMORY));
	assert_string_equal(evicted(m, 1020, 8), "");
	for (int i = 2; i < 4; i++) {
		char name[8];
		snprintf(name, sizeof(name), "f%d", i);
		json_t *gone = opportunistic_object(name);
		model_remove_pod(m, gone);
		json_decref(gone);
	}
	/* Who has gone does not come back before it is there. */
	say_use(m, 9, 0, 0, 80);
	assert_false(fits(m, opportunistic_for("f4", "n-0"), NO_CORE_THERE));
	assert_true(fits(m, pod, ""));
	model_free(m);
}

/* If more of them must go than may at once, the others follow. */
static void test_they_give_way_one_by_one(void **state)
{
	struct model *m = filled();
	json_t *pod = pod_object("o", LIMITS("2192", "20"));
	annotate(pod, "nvidia.com/use-gpuuuid", "n-0");
	assert_false(fits(m, pod, NO_MEMORY));
	assert_string_equal(evicted(m, 1006, 1), "f3");
	assert_string_equal(evicted(m, 1007, 1), "f2");
	assert_string_equal(evicted(m, 1008, 1), "");
	model_free(m);
}

static json_t *gang_pod(const char *name, const char *limits, const char *card)
{
	json_t *pod = pod_object(name, limits);
	annotate(pod, "allot.dev/gang", "train");
	annotate(pod, "allot.dev/gang-size", "2");
	annotate(pod, "nvidia.com/use-gpuuuid", card);
	return pod;
}

/* A node that is reserved for a pod of a gang is open to the gang's other pods. */
static void test_they_give_way_to_a_gang(void **state)
{
	struct model *m = filled();
	json_t *pod = gang_pod("g0", LIMITS("2192", "20"), "n-0");
	give_pod(m, gang_pod("g1", LIMITS("500", "10"), "n-1"));
	give_pod(m, json_incref(pod));
	assert_false(fits(m, json_incref(pod), NO_MEMORY));
	assert_string_equal(evicted(m, 1006, 1), "f3");
	assert_string_equal(evicted(m, 1007, 1), "f2");
	for (int i = 2; i < 4; i++) {
		char name[8];
		snprintf(name, sizeof(name), "f%d", i);
		json_t *gone = opportunistic_object(name);
		model_remove_pod(m, gone);
		json_decref(gone);
	}
	assert_true(fits(m, pod, ""));
	model_free(m);
}

/* No opportunistic pod goes for one pod of a gang while another pod of the gang has no room even without them. */
static void test_they_stay_for_half_a_gang(void **state)
{
	struct model *m = filled();
	json_t *pod = gang_pod("g0", LIMITS("2192", "20"), "n-0");
	json_t *big = gang_pod("g1", LIMITS("9000", "10"), "n-1");
	give_pod(m, json_incref(big));
	give_pod(m, json_incref(pod));
	assert_false(fits(m, json_incref(pod), NO_MEMORY));
	assert_string_equal(evicted(m, 1006, 8), "");
	model_remove_pod(m, big);
	json_decref(big);
	give_pod(m, gang_pod("g2", LIMITS("500", "10"), "n-1"));
	assert_false(fits(m, pod, NO_MEMORY));
	assert_string_equal(evicted(m, 1012, 8), "f3,f2");
	model_free(m);
}

/* Whom nobody's end helps, and who is an opportunistic pod itself, sends nobody away; who has ended by then neither. */
static void test_they_stay(void **state)
{
	struct model *m = filled();
	json_t *pod = pod_object("much", LIMITS("8000", "20"));
	annotate(pod, "nvidia.com/use-gpuuuid", "n-0");
	assert_false(fits(m, pod, NO_MEMORY));
	assert_string_equal(evicted(m, 1010, 8), "");
	pod = pod_object("filler", LIMITS("2192", "1"));
	annotate(pod, "nvidia.com/use-gpuuuid", "n-0");
	annotate(pod, "allot.dev/placement", "use");
	assert_false(fits(m, pod, NO_MEMORY));
	assert_string_equal(evicted(m, 1020, 8), "");
	pod = pod_object("o", LIMITS("2192", "20"));
	annotate(pod, "nvidia.com/use-gpuuuid", "n-0");
	assert_false(fits(m, json_incref(pod), NO_MEMORY));
	model_remove_pod(m, pod);
	json_decref(pod);
	assert_string_equal(evicted(m, 1030, 8), "");
	model_free(m);
}

/* What a pod says itself of what it borrows takes nothing back of what it has. */
static void test_a_lie(void **state)
{
	struct model *m = trained();
	static const char *const lies[] = { "garbage", "n-0,NVIDIA,1000,20:;",
					    "n-0,NVIDIA,3000,99:;", "n-0,NVIDIA,2000,4000000:;" };
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		json_t *pod = pod_object("liar", LIMITS("2000", "10"));
		allocate(pod, "n", "n-0,NVIDIA,2000,10:;", "success", true);
		annotate(pod, BORROWED, lies[i]);
		give_pod(m, pod);
		assert_int_equal(card_of(m, "n-0").memory_used_bytes, UINT64_C(6000) << 20);
		assert_int_equal(card_of(m, "n-0").cores_used_mpct, 90000);
	}
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_fills),
		cmocka_unit_test(test_what_is_old_counts_for_nothing),
		cmocka_unit_test(test_who_is_judged_how),
		cmocka_unit_test(test_without_use_it_is_a_promise),
		cmocka_unit_test(test_it_goes),
		cmocka_unit_test(test_nobody_goes_unseen),
		cmocka_unit_test(test_they_are_victims),
		cmocka_unit_test(test_they_give_way),
		cmocka_unit_test(test_they_give_way_one_by_one),
		cmocka_unit_test(test_they_give_way_to_a_gang),
		cmocka_unit_test(test_they_stay_for_half_a_gang),
		cmocka_unit_test(test_they_stay),
		cmocka_unit_test(test_a_lie),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
