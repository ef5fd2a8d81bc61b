/*
 * A gang beside pods that come alone, as many as find room, for days of simulated time: without a backfill reservation they keep it waiting for
 * as long as they come; with one it sits once those that were there have ended. And lone pods wait for no gang for ever.
 */
#include "../cluster.h"
#include "kube/hami/annotations.h"
#include "scheduler/gang/backfill_reservation.h"
#include "verbs.h"

#define SECOND UINT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define NODES "a,b,c,d"
#define NODE_COUNT 4
#define LONES 64
#define PATIENCE (5 * MINUTE)
#define LONGEST_MIN 30 /* a lone pod runs */

static uint64_t seed;

static unsigned below(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((seed >> 33) % n);
}

struct lone {
	json_t *pod; /* NULL: none */
	uint64_t ends_ns;
};

struct scene {
	struct model *m;
	struct lone lone[LONES];
	json_t *gang[NODE_COUNT];
	uint64_t now_ns;
	unsigned made, placed;
};

static struct scene begin(uint64_t patience_ns)
{
	const struct model_terms terms = { .request = request_terms_default,
					   .gang_hold_ns = GANG_HOLD_NS,
					   .gang_patience_ns = patience_ns };
	struct scene s = { .now_ns = MINUTE };
	seed = 11;
	assert_int_equal(model_new(&terms, &s.m), 0);
	for (unsigned kind = MODEL_NODES; kind <= MODEL_QUOTAS; kind++) {
		model_list_begin(s.m, kind);
		model_list_end(s.m, kind);
	}
	model_advance(s.m, s.now_ns);
	for (unsigned i = 0; i < NODE_COUNT; i++) {
		const char name[2] = { (char)('a' + i), 0 };
		give_node(s.m, node_object(name, 2, 1000, 100));
	}
	return s;
}

/* Each wants a node as a whole. */
static void add_gang(struct scene *s)
{
	for (unsigned i = 0; i < NODE_COUNT; i++) {
		char name[8];
		snprintf(name, sizeof(name), "g%u", i);
		s->gang[i] = pod_object(name, "\"nvidia.com/gpu\":\"2\"");
		annotate(s->gang[i], "allot.dev/gang", "train");
		annotate(s->gang[i], "allot.dev/gang-size", "4");
		give_pod(s->m, json_incref(s->gang[i]));
	}
}

static void end(struct scene *s)
{
	for (unsigned i = 0; i < LONES; i++)
		json_decref(s->lone[i].pod);
	for (unsigned i = 0; i < NODE_COUNT; i++)
		json_decref(s->gang[i]);
	model_free(s->m);
}

/* The first node that filter names; "": none. */
static void ask(struct scene *s, json_t *pod, char node[8], const char *why_not)
{
	json_t *args = filter_args(json_incref(pod), NODES), *answer = verbs_filter(s->m, args);
	snprintf(node, 8, "%.*s", 1, fitting(answer));
	if (why_not)
		assert_non_null(strstr(reason_of(answer, "a"), why_not));
	json_decref(answer);
	json_decref(args);
}

static void try_lone(struct scene *s, struct lone *lone)
{
	char name[16], node[8], shares[128];
	struct decision d;
	struct error err;
	snprintf(name, sizeof(name), "l%u", s->made++);
	json_t *pod = pod_object(name, "\"nvidia.com/gpu\":\"1\"");
	give_pod(s->m, json_incref(pod));
	ask(s, pod, node, NULL);
	json_t *args = bind_args(name, node);
	if (!*node || extender_decide(s->m, args, s->now_ns, &d, &err) < 0) {
		model_remove_pod(s->m, pod);
		json_decref(pod);
		json_decref(args);
		return;
	}
	snprintf(shares, sizeof(shares), "%s,NVIDIA,1000,100:;", d.shares.share[0].card);
	allocate(pod, node, shares, "success", true);
	give_pod(s->m, json_incref(pod));
	decision_free(&d);
	json_decref(args);
	*lone = (struct lone){ pod, s->now_ns + (1 + below(LONGEST_MIN)) * MINUTE };
	s->placed++;
}

/* A step of 10 s: some end, and as many come as there is room for. */
static void step(struct scene *s)
{
	s->now_ns += 10 * SECOND;
	model_advance(s->m, s->now_ns);
	for (unsigned i = 0; i < LONES; i++) {
		struct lone *lone = &s->lone[i];
		if (lone->pod && lone->ends_ns <= s->now_ns) {
			model_remove_pod(s->m, lone->pod);
			json_decref(lone->pod);
			lone->pod = NULL;
		}
	}
	for (unsigned tries = 0; tries < 4; tries++)
		for (unsigned i = 0; i < LONES; i++)
			if (!s->lone[i].pod) {
				try_lone(s, &s->lone[i]);
				break;
			}
}

/* How long until all of it have room; UINT64_MAX: not within that. */
static uint64_t wait_for_gang(struct scene *s, uint64_t most_ns)
{
	uint64_t begun_ns = s->now_ns;
	while (s->now_ns - begun_ns < most_ns) {
		char node[8] = "";
		step(s);
		for (unsigned i = 0; i < NODE_COUNT; i++)
			ask(s, s->gang[i], node, NULL);
		if (*node)
			return s->now_ns - begun_ns;
	}
	return UINT64_MAX;
}

static void test_without_patience_it_waits_for_ever(void **state)
{
	struct scene s = begin(0);
	for (unsigned i = 0; i < 30; i++)
		step(&s);
	add_gang(&s);
	assert_true(wait_for_gang(&s, 2 * 24 * 60 * MINUTE) == UINT64_MAX);
	end(&s);
}

static void test_its_wait_is_bounded(void **state)
{
	struct scene s = begin(PATIENCE);
	for (unsigned i = 0; i < 30; i++)
		step(&s);
	add_gang(&s);
	uint64_t waited_ns = wait_for_gang(&s, 24 * 60 * MINUTE);
	assert_in_range(waited_ns, PATIENCE, PATIENCE + (LONGEST_MIN + 1) * MINUTE);
	end(&s);
}

static void test_who_outranks_it_waits_for_nobody(void **state)
{
	struct scene s = begin(PATIENCE);
	char node[8];
	json_t *full = pod_object("full", "\"nvidia.com/gpu\":\"1\"");
	allocate(full, "a", "a-0,NVIDIA,1000,100:;", "success", true);
	give_pod(s.m, full);
	add_gang(&s);
	ask(&s, s.gang[0], node, NULL);
	s.now_ns += PATIENCE;
	model_advance(s.m, s.now_ns);
	ask(&s, s.gang[0], node, NULL);
	json_t *lone = pod_object("lone", "\"nvidia.com/gpu\":\"1\"");
	give_pod(s.m, json_incref(lone));
	ask(&s, lone, node, "is reserved for gang train, which has waited long for room");
	assert_string_equal(node, "");
	json_t *high = pod_object("high", "\"nvidia.com/gpu\":\"1\"");
	json_object_set_new(json_object_get(high, "spec"), "priority", json_integer(1000));
	give_pod(s.m, json_incref(high));
	ask(&s, high, node, NULL);
	assert_string_equal(node, "a");
	/* Its end is the backfill reservation's. */
	for (unsigned i = 0; i < NODE_COUNT; i++)
		model_remove_pod(s.m, s.gang[i]);
	ask(&s, lone, node, NULL);
	assert_string_equal(node, "a");
	json_decref(lone);
	json_decref(high);
	end(&s);
}

/* Nothing is evicted for a lone pod from a node that is left to a gang: the pod would not be let in. */
static void test_nothing_is_evicted_for_a_lone_pod(void **state)
{
	struct scene s = begin(PATIENCE);
	struct model_eviction list[4];
	char node[8];
	for (unsigned i = 0; i < 2; i++) {
		char name[8], shares[32];
		snprintf(name, sizeof(name), "v%u", i);
		snprintf(shares, sizeof(shares), "a-%u,NVIDIA,1000,100:;", i);
		json_t *victim = pod_object(name, "\"nvidia.com/gpu\":\"1\"");
		json_object_set_new(json_object_get(victim, "spec"), "priority", json_integer(-1));
		allocate(victim, "a", shares, "success", true);
		give_pod(s.m, victim);
	}
	add_gang(&s);
	ask(&s, s.gang[0], node, NULL);
	s.now_ns += PATIENCE;
	model_advance(s.m, s.now_ns);
	ask(&s, s.gang[0], node, NULL);
	json_t *lone = pod_object("lone", "\"nvidia.com/gpu\":\"1\"");
	give_pod(s.m, json_incref(lone));
	ask(&s, lone, node, "CardInsufficient");
	assert_string_equal(node, "");
	model_advance(s.m, s.now_ns + 10 * SECOND);
	assert_int_equal(model_take_evictions(s.m, 0, list, 4), 0);
	json_t *args = json_pack("{s:O,s:{s:{s:[]}}}", "Pod", lone, "NodeNameToMetaVictims", "a",
				 "Pods");
	json_t *answer = extender_preempt(s.m, args);
	assert_int_equal(json_object_size(json_object_get(answer, "NodeNameToMetaVictims")), 0);
	json_decref(answer);
	json_decref(args);
	json_decref(lone);
	end(&s);
}

/* What is in the way never ends: nobody waits for longer than that. */
static void test_lone_pods_do_not_wait_for_ever(void **state)
{
	struct scene s = begin(PATIENCE);
	char node[8];
	uint64_t open_ns = 0, begun_ns;
	json_t *full = pod_object("full", "\"nvidia.com/gpu\":\"1\"");
	json_t *lone = pod_object("lone", "\"nvidia.com/gpu\":\"1\"");
	allocate(full, "a", "a-0,NVIDIA,1000,100:;", "success", true);
	give_pod(s.m, full);
	give_pod(s.m, json_incref(lone));
	add_gang(&s);
	begun_ns = s.now_ns;
	for (; s.now_ns - begun_ns < 24 * 60 * MINUTE; s.now_ns += 10 * SECOND) {
		model_advance(s.m, s.now_ns);
		ask(&s, s.gang[0], node, NULL);
		ask(&s, lone, node, NULL);
		open_ns += *node ? 10 * SECOND : 0;
	}
	/* It has a patience's time in each RESERVATION_MOST_NS. */
	assert_in_range(open_ns, 24 * 60 * MINUTE / (RESERVATION_MOST_NS + PATIENCE) * PATIENCE,
			24 * 60 * MINUTE / 2);
	json_decref(lone);
	end(&s);
}

/* One that would not sit on an empty cluster keeps nobody away. */
static void test_what_never_fits_has_no_reservation(void **state)
{
	struct scene s = begin(PATIENCE);
	char node[8];
	for (unsigned i = 0; i < 2; i++) {
		char name[8];
		snprintf(name, sizeof(name), "x%u", i);
		s.gang[i] = pod_object(name, "\"nvidia.com/gpu\":\"3\"");
		annotate(s.gang[i], "allot.dev/gang", "large");
		annotate(s.gang[i], "allot.dev/gang-size", "2");
		give_pod(s.m, json_incref(s.gang[i]));
	}
	json_t *lone = pod_object("lone", "\"nvidia.com/gpu\":\"1\"");
	give_pod(s.m, json_incref(lone));
	for (unsigned i = 0; i < 200; i++, s.now_ns += 10 * SECOND) {
		model_advance(s.m, s.now_ns);
		ask(&s, s.gang[0], node, NULL);
		ask(&s, lone, node, NULL);
		assert_string_equal(node, "a");
	}
	json_decref(lone);
	end(&s);
}

/* Who is on a node that the gang is not asked about ends for no backfill reservation: what is short there, its quota, no backfill reservation makes good. */
static void test_who_is_elsewhere_counts_as_there(void **state)
{
	struct scene s = begin(PATIENCE);
	char node[8];
	give_quota(s.m, "q", "\"limits.nvidia.com/gpumem\":\"8000\"");
	give_node(s.m, node_object("z", 1, 1000, 100));
	json_t *elsewhere = pod_object("elsewhere", "\"nvidia.com/gpu\":\"1\"");
	allocate(elsewhere, "z", "z-0,NVIDIA,1000,100:;", "success", true);
	give_pod(s.m, elsewhere);
	add_gang(&s);
	json_t *lone = pod_object("lone", "\"nvidia.com/gpu\":\"1\"");
	give_pod(s.m, json_incref(lone));
	for (unsigned i = 0; i < 100; i++, s.now_ns += 10 * SECOND) {
		model_advance(s.m, s.now_ns);
		for (unsigned k = 0; k < NODE_COUNT; k++)
			ask(&s, s.gang[k], node, NULL);
		assert_string_equal(node, "");
		ask(&s, lone, node, NULL);
		assert_string_equal(node, "a");
	}
	json_decref(lone);
	end(&s);
}

#define WALL_S \
	INT64_C(1700000000) /* seconds since 1970 at the begin of the scenes with deadlines */

/* A pod on that node and its card 0, that came `ago_s` before WALL_S and has this deadline. */
static void add_running(struct scene *s, const char *node, int64_t ago_s, int deadline_s)
{
	char name[8], shares[32], since[32];
	snprintf(name, sizeof(name), "r%s", node);
	snprintf(shares, sizeof(shares), "%s-0,NVIDIA,1000,100:;", node);
	snprintf(since, sizeof(since), "%lld", (long long)(WALL_S - ago_s));
	json_t *pod = pod_object(name, GPU);
	allocate(pod, node, shares, "success", true);
	annotate(pod, KUBE_POD_BIND_TIME, since);
	if (deadline_s)
		json_object_set_new(json_object_get(pod, "spec"), "activeDeadlineSeconds",
				    json_integer(deadline_s));
	give_pod(s->m, pod);
}

/* Waits until the gang has its backfill reservation. WALL_S is then. */
static void wait_for_reservation(struct scene *s)
{
	char node[8];
	add_gang(s);
	ask(s, s->gang[0], node, NULL);
	s->now_ns += PATIENCE;
	model_advance(s->m, s->now_ns);
	model_set_wall(s->m, WALL_S);
	ask(s, s->gang[0], node, NULL);
	assert_string_equal(node, "");
}

/* Whether a new lone pod with this deadline and grace period has room. */
static bool has_room(struct scene *s, int deadline_s, int grace_s)
{
	static unsigned count;
	char name[16], node[8];
	snprintf(name, sizeof(name), "d%u", count++);
	json_t *pod = pod_object(name, GPU), *spec = json_object_get(pod, "spec");
	if (deadline_s)
		json_object_set_new(spec, "activeDeadlineSeconds", json_integer(deadline_s));
	json_object_set_new(spec, "terminationGracePeriodSeconds", json_integer(grace_s));
	give_pod(s->m, json_incref(pod));
	ask(s, pod, node, NULL);
	model_remove_pod(s->m, pod);
	json_decref(pod);
	return *node;
}

/* The gang needs all four nodes: it has room when the last of the pods there ends, in 1700 s. */
static void test_pods_that_end_in_time_pass(void **state)
{
	struct scene s = begin(PATIENCE);
	add_running(&s, "a", 100, 400);
	add_running(&s, "b", 300, 2000);
	wait_for_reservation(&s);
	assert_true(has_room(&s, 1700, 0));
	assert_true(has_room(&s, 1670, 30));
	assert_false(has_room(&s, 1671, 30));
	assert_false(has_room(&s, 0, 0));
	/* Later, there is less time. */
	model_set_wall(s.m, WALL_S + 1000);
	assert_true(has_room(&s, 700, 0));
	assert_false(has_room(&s, 701, 0));
	end(&s);
}

/* Not every pod in the way has a deadline, or one is past its deadline: when the gang has room is unknown. */
static void test_no_pod_passes_at_an_unknown_time(void **state)
{
	const struct {
		int ago_s, deadline_s;
	} late[] = { { 100, 0 }, { 100, 50 }, { 100, 100 + RESERVATION_MOST_S + 1 } };
	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
		struct scene s = begin(PATIENCE);
		add_running(&s, "a", 100, 400);
		add_running(&s, "b", late[i].ago_s, late[i].deadline_s);
		wait_for_reservation(&s);
		assert_false(has_room(&s, 1, 0));
		end(&s);
	}
}

/* Of five nodes the gang needs four. Those that have room first are reserved, and the fifth is free for all. */
static void test_the_nodes_with_room_first_are_reserved(void **state)
{
	struct scene s = begin(PATIENCE);
	char node[8];
	add_running(&s, "a", 0, 3000);
	add_running(&s, "b", 0, 60);
	give_node(s.m, node_object("e", 2, 1000, 100));
	add_gang(&s);
	for (unsigned i = 0; i < 2; i++) {
		json_t *args = filter_args(json_incref(s.gang[0]), "a,b,c,d,e");
		json_decref(verbs_filter(s.m, args));
		json_decref(args);
		s.now_ns += PATIENCE;
		model_advance(s.m, s.now_ns);
		model_set_wall(s.m, WALL_S);
	}
	json_t *lone = pod_object("lone", GPU);
	give_pod(s.m, json_incref(lone));
	ask(&s, lone, node, NULL);
	assert_string_equal(node, "a");
	json_decref(lone);
	end(&s);
}

/*
 * Four pods of 10 minutes each are on the nodes, and lone pods of 1 to 20 minutes come. Those that may pass keep nodes in use,
 * and the gang waits no longer than without them.
 */
static void test_passing_pods_do_not_delay_the_gang(void **state)
{
	struct scene s = begin(PATIENCE);
	unsigned passed = 0;
	for (unsigned i = 0; i < NODE_COUNT; i++)
		add_running(&s, (const char[]){ (char)('a' + i), 0 }, 0, 600);
	wait_for_reservation(&s);
	struct {
		json_t *pod;
		int64_t ends_s;
	} lone[NODE_COUNT] = { 0 };
	for (int64_t at_s = 0; at_s <= 600; at_s += 10) {
		s.now_ns += 10 * SECOND;
		model_advance(s.m, s.now_ns);
		model_set_wall(s.m, WALL_S + at_s);
		for (unsigned i = 0; i < NODE_COUNT; i++) {
			if (lone[i].pod && lone[i].ends_s <= at_s) {
				model_remove_pod(s.m, lone[i].pod);
				json_decref(lone[i].pod);
				lone[i].pod = NULL;
			}
			int deadline_s = (int)(60 + below(1140));
			if (lone[i].pod || !has_room(&s, deadline_s, 0))
				continue;
			char name[16], shares[32], node[2] = { (char)('a' + i), 0 };
			snprintf(name, sizeof(name), "p%u", passed++);
			snprintf(shares, sizeof(shares), "%s-1,NVIDIA,1000,100:;", node);
			lone[i].pod = pod_object(name, GPU);
			lone[i].ends_s = at_s + deadline_s;
			allocate(lone[i].pod, node, shares, "success", true);
			give_pod(s.m, json_incref(lone[i].pod));
		}
	}
	assert_true(passed > NODE_COUNT);
	for (unsigned i = 0; i < NODE_COUNT; i++) {
		char name[8];
		snprintf(name, sizeof(name), "r%c", 'a' + i);
		json_t *gone = pod_object(name, GPU);
		model_remove_pod(s.m, gone);
		json_decref(gone);
		assert_null(lone[i].pod);
	}
	char node[8];
	ask(&s, s.gang[0], node, NULL);
	assert_string_not_equal(node, "");
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_patience_it_waits_for_ever),
		cmocka_unit_test(test_its_wait_is_bounded),
		cmocka_unit_test(test_who_outranks_it_waits_for_nobody),
		cmocka_unit_test(test_nothing_is_evicted_for_a_lone_pod),
		cmocka_unit_test(test_lone_pods_do_not_wait_for_ever),
		cmocka_unit_test(test_what_never_fits_has_no_reservation),
		cmocka_unit_test(test_who_is_elsewhere_counts_as_there),
		cmocka_unit_test(test_pods_that_end_in_time_pass),
		cmocka_unit_test(test_no_pod_passes_at_an_unknown_time),
		cmocka_unit_test(test_the_nodes_with_room_first_are_reserved),
		cmocka_unit_test(test_passing_pods_do_not_delay_the_gang),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
