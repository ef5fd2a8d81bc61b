/* What pods have: noted on them, reserved for them, given back. */
#include <errno.h>

#include "../cluster.h"
#include "kube/hami/annotations.h"

#define MIB (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)

static void has(const struct model *m, const char *card, uint64_t mib, unsigned cores,
		unsigned slots)
{
	struct place_card c = card_of(m, card);
	if (c.memory_used_bytes != mib * MIB || c.cores_used_mpct != cores * 1000 ||
	    c.slots_used != slots)
		fail_msg("%s: %llu MiB, %u mpct, %u slots", card,
			 (unsigned long long)(c.memory_used_bytes / MIB), c.cores_used_mpct,
			 c.slots_used);
}

static struct model *two_cards(void)
{
	struct model *m = model_of_nothing();
	give_node(m, node_object("n", 2, 8192, 100));
	return m;
}

static void set_phase(json_t *pod, const char *phase)
{
	json_object_set_new(json_object_get(pod, "status"), "phase", json_string(phase));
}

static json_t *running(const char *name, const char *shares)
{
	json_t *pod = pod_object(name, GPU);
	allocate(pod, "n", shares, "success", true);
	set_phase(pod, "Running");
	return pod;
}

static void test_life(void **state)
{
	struct model *m = two_cards();
	give_pod(m, running("a", "n-0,NVIDIA,3000,30:;"));
	give_pod(m, running("b", "n-0,NVIDIA,1000,10:n-1,NVIDIA,500,5:;"));
	has(m, "n-0", 4000, 40, 2);
	has(m, "n-1", 500, 5, 1);
	/* The same again is the same. */
	give_pod(m, running("a", "n-0,NVIDIA,3000,30:;"));
	has(m, "n-0", 4000, 40, 2);
	/* Once its cards are mounted, to-allocate is empty: what was allocated stays. */
	json_t *pod = running("a", "n-0,NVIDIA,3000,30:;");
	annotate(pod, KUBE_POD_TO_ALLOCATE, ";");
	give_pod(m, pod);
	has(m, "n-0", 4000, 40, 2);
	pod = running("b", "n-0,NVIDIA,1000,10:n-1,NVIDIA,500,5:;");
	set_phase(pod, "Succeeded");
	give_pod(m, pod);
	has(m, "n-0", 3000, 30, 1);
	has(m, "n-1", 0, 0, 0);
	model_list_begin(m, MODEL_PODS);
	model_list_end(m, MODEL_PODS);
	has(m, "n-0", 0, 0, 0);
	assert_int_equal(model_counts(m).pods, 0);
	model_free(m);
}

/* A card carries the most of what runs at a time. */
static void test_init_containers(void **state)
{
	static const struct {
		const char *policies[2]; /* of both init containers */
		const char *shares;
		uint64_t mib;
		unsigned cores, slots;
	} rows[] = {
		/* The first is more than all others together ... */
		{ { "", "" },
		  "n-0,NVIDIA,5000,10:;;n-0,NVIDIA,1000,20:;n-0,NVIDIA,2000,30:;",
		  5000,
		  50,
		  2 },
		/* ... or less; init containers do not add up ... */
		{ { "", "" },
		  "n-0,NVIDIA,2000,10:;n-0,NVIDIA,2500,10:;n-0,NVIDIA,3000,0:;;",
		  3000,
		  10,
		  1 },
		/* ... but with the sidecars before them. */
		{ { "Always", "" },
		  "n-0,NVIDIA,2000,10:;n-0,NVIDIA,2500,70:;n-0,NVIDIA,1000,0:;;",
		  4500,
		  80,
		  2 },
		/* HAMi up to v2.8 names no init containers: these two are beside each other. */
		{ { "", "" }, "n-0,NVIDIA,1000,20:;n-0,NVIDIA,2000,30:;", 3000, 50, 2 },
		{ { "", "Always" },
		  "n-0,NVIDIA,2500,70:;n-0,NVIDIA,2000,10:;n-0,NVIDIA,1000,0:;;",
		  3000,
		  70,
		  2 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model *m = two_cards();
		json_t *pod = object_of(
			"{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\","
			"\"resourceVersion\":\"1\"},\"spec\":{\"initContainers\":["
			"{\"name\":\"i\",\"restartPolicy\":\"%s\"},"
			"{\"name\":\"j\",\"restartPolicy\":\"%s\"}],\"containers\":["
			"{\"name\":\"b\",\"resources\":{\"limits\":{" GPU "}}},{\"name\":\"c\"}]},"
			"\"status\":{}}",
			rows[i].policies[0], rows[i].policies[1]);
		allocate(pod, "n", rows[i].shares, "success", true);
		give_pod(m, pod);
		has(m, "n-0", rows[i].mib, rows[i].cores, rows[i].slots);
		model_free(m);
	}
}

/* Anybody can write annotations: what asks for no GPU has none, bound or not, and is named. */
static void test_forged(void **state)
{
	for (int is_bound = 0; is_bound < 2; is_bound++) {
		struct model *m = two_cards();
		struct error err;
		json_t *pod = pod_object("a", "\"cpu\":\"1\"");
		allocate(pod, "n", "n-0,NVIDIA,8192,100:;", "allocating", is_bound);
		assert_int_equal(model_update_pod(m, pod, &err), -EINVAL);
		assert_string_equal(
			err.text,
			"pod ns/a: has annotations with GPU shares but requests no GPU: they are ignored");
		json_decref(pod);
		has(m, "n-0", 0, 0, 0);
		model_free(m);
	}
}

static void test_broken(void **state)
{
	struct model *m = two_cards();
	struct error err;
	give_pod(m, running("a", "n-0,NVIDIA,3000,30:;"));
	json_t *pod = running("a", "n-0,NVIDIA,many,30:;");
	assert_int_equal(model_update_pod(m, pod, &err), -EINVAL);
	assert_string_equal(
		err.text, "pod ns/a: hami.io/vgpu-devices-allocated: container 0: share 0: memory: "
			  "'many': not a whole number; write a whole number from 0 to 2147483647");
	json_decref(pod);
	/* What was known of it stays. */
	has(m, "n-0", 3000, 30, 1);
	model_free(m);
}

/* More than any card has is more than any card has, and goes away as it came. */
static void test_absurd(void **state)
{
	struct model *m = two_cards();
	give_pod(m, running("a", "n-0,NVIDIA,2147483647,2147483647:n-0,NVIDIA,2147483647,1:;"));
	give_pod(m, running("b", "n-0,NVIDIA,2147483647,2147483647:;"));
	struct place_card c = card_of(m, "n-0");
	assert_int_equal(place_memory_left(&c), 0);
	assert_int_equal(place_cores_left(&c), 0);
	json_t *pod = running("a", ";");
	model_remove_pod(m, pod);
	json_decref(pod);
	pod = running("b", ";");
	model_remove_pod(m, pod);
	json_decref(pod);
	has(m, "n-0", 0, 0, 0);
	model_free(m);
}

static struct decision decided(struct model *m, const char *pod, uint64_t now_ns)
{
	struct decision d;
	struct error err;
	json_t *args = bind_args(pod, "n");
	if (extender_decide(m, args, now_ns, &d, &err) < 0)
		fail_msg("%s", err.text);
	json_decref(args);
	return d;
}

#define HALF "\"nvidia.com/gpumem\":\"4096\",\"nvidia.com/gpucores\":\"50\""

static void test_reservation(void **state)
{
	struct model *m = two_cards();
	give_pod(m, pod_object("a", HALF));
	assert_int_equal(model_counts(m).pods_waiting, 1);
	struct decision d = decided(m, "a", SECOND);
	assert_string_equal(d.pod, "a");
	assert_string_equal(d.uid, "uid-a");
	assert_string_equal(d.node, "n");
	assert_int_equal(d.shares.containers, 1);
	assert_int_equal(d.shares.count, 1);
	assert_string_equal(d.shares.share[0].card, "n-0");
	assert_string_equal(d.shares.share[0].kind, "NVIDIA");
	assert_int_equal(d.shares.share[0].memory_mib, 4096);
	assert_int_equal(d.shares.share[0].cores_pct, 50);
	has(m, "n-0", 4096, 50, 1);
	assert_int_equal(model_counts(m).reservations, 1);
	/* An older state of the pod changes nothing. */
	give_pod(m, pod_object("a", HALF));
	has(m, "n-0", 4096, 50, 1);
	/* One that notes an earlier try neither: what was decided last counts. */
	json_t *older = pod_object("a", HALF);
	allocate(older, "n", "n-1,NVIDIA,100,5:;", "allocating", false);
	give_pod(m, older);
	has(m, "n-0", 4096, 50, 1);
	has(m, "n-1", 0, 0, 0);
	/* Asked again, the same is given: what it has is not in its own way. */
	decision_free(&d);
	d = decided(m, "a", 2 * SECOND);
	has(m, "n-0", 4096, 50, 1);
	/* Written to the pod it counts once, before it is bound and after. */
	json_t *pod = pod_object("a", HALF);
	allocate(pod, "n", "n-0,NVIDIA,4096,50:;", "allocating", false);
	give_pod(m, json_incref(pod));
	has(m, "n-0", 4096, 50, 1);
	json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string("n"));
	give_pod(m, json_incref(pod));
	has(m, "n-0", 4096, 50, 1);
	assert_int_equal(model_counts(m).reservations, 0);
	/* Time takes nothing from who is bound. */
	model_advance(m, 10000 * SECOND);
	model_release(m, "uid-a");
	has(m, "n-0", 4096, 50, 1);
	model_remove_pod(m, pod);
	has(m, "n-0", 0, 0, 0);
	decision_free(&d);
	json_decref(pod);
	model_free(m);
}

static void test_reservation_ends(void **state)
{
	struct model *m = two_cards();
	give_pod(m, pod_object("a", HALF));
	struct decision d = decided(m, "a", SECOND);
	decision_free(&d);
	model_release(m, "uid-a");
	has(m, "n-0", 0, 0, 0);
	d = decided(m, "a", SECOND);
	decision_free(&d);
	model_advance(m, 300 * SECOND);
	has(m, "n-0", 4096, 50, 1);
	model_advance(m, 301 * SECOND);
	has(m, "n-0", 0, 0, 0);
	d = decided(m, "a", 400 * SECOND);
	decision_free(&d);
	json_t *pod = pod_object("a", HALF);
	model_remove_pod(m, pod);
	has(m, "n-0", 0, 0, 0);
	json_decref(pod);
	model_release(m, "uid-a");
	model_free(m);
}

/* Of a scheduler that is gone: what it chose and never bound holds for a while; what failed does not. */
static void test_left_behind(void **state)
{
	struct model *m = two_cards();
	model_advance(m, 100 * SECOND);
	for (unsigned i = 0; i < 3; i++) {
		json_t *pod = pod_object("a", HALF);
		allocate(pod, "n", "n-1,NVIDIA,4096,50:;", i < 2 ? "allocating" : "failed", false);
		give_pod(m, pod);
		has(m, "n-1", i < 2 ? 4096 : 0, i < 2 ? 50 : 0, i < 2);
	}
	for (unsigned i = 0; i < 3; i++) {
		json_t *pod = pod_object("a", HALF);
		allocate(pod, "n", "n-1,NVIDIA,4096,50:;", "allocating", false);
		/* The same said again gets no more time. */
		model_advance(m, (100 + 150 * i) * SECOND);
		give_pod(m, pod);
		has(m, "n-1", i < 2 ? 4096 : 0, i < 2 ? 50 : 0, i < 2);
	}
	/* Bound after all, it has it. */
	json_t *pod = pod_object("a", HALF);
	allocate(pod, "n", "n-1,NVIDIA,4096,50:;", "allocating", true);
	give_pod(m, pod);
	has(m, "n-1", 4096, 50, 1);
	model_free(m);
}

/* Once a pod is decided anew, what was noted for it before does not come back. */
static void test_earlier_try_is_over(void **state)
{
	struct model *m = two_cards();
	json_t *pod = pod_object("a", HALF);
	allocate(pod, "n", "n-1,NVIDIA,8192,100:;", "allocating", false);
	give_pod(m, json_incref(pod));
	has(m, "n-1", 8192, 100, 1);
	struct decision d = decided(m, "a", SECOND);
	has(m, "n-0", 4096, 50, 1);
	has(m, "n-1", 0, 0, 0);
	model_release(m, "uid-a");
	has(m, "n-1", 0, 0, 0);
	give_pod(m, json_incref(pod));
	has(m, "n-1", 0, 0, 0);
	/* But if it turns out to be bound there, it is. */
	json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string("n"));
	give_pod(m, pod);
	has(m, "n-1", 8192, 100, 1);
	decision_free(&d);
	model_free(m);
}

static void note_share(void *data, const struct model_share_view *view)
{
	char *text = data;
	sprintf(text + strlen(text), "%s/%s %zu %s %s %llu %u;", view->pod_namespace, view->pod,
		view->container, view->node, view->card, (unsigned long long)view->memory_mib,
		view->cores_pct);
}

static void test_view(void **state)
{
	struct model *m = two_cards();
	char text[512] = "";
	give_pod(m, running("a", ";n-0,NVIDIA,3000,30:n-1,NVIDIA,20,0:;"));
	model_each_share(m, note_share, text);
	assert_string_equal(text, "ns/a 1 n n-0 3000 30;ns/a 1 n n-1 20 0;");
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_init_containers),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_absurd),
		cmocka_unit_test(test_reservation),
		cmocka_unit_test(test_reservation_ends),
		cmocka_unit_test(test_left_behind),
		cmocka_unit_test(test_earlier_try_is_over),
		cmocka_unit_test(test_view),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
