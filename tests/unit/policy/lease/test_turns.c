/* Turns among a tenant's processes: single rules, fed by hand on virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/lease/turns.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define MOST 4

struct table {
	struct arbiter_config config;
	struct turns turns;
	struct turns_process process[MOST];
	struct turns_observation seen[MOST]; /* by place */
	size_t count;
	struct turns_lease lease;
	uint64_t next;
};

static void setup(struct table *t, size_t count)
{
	*t = (struct table){ .config = arbiter_default_config(), .count = count };
	t->lease = (struct turns_lease){ .now_ns = SECOND,
					 .quantum_ns = 25 * MS,
					 .handover_ns = 300e3,
					 .state = TURNS_AWAY,
					 .config = &t->config };
	for (size_t i = 0; i < count; i++)
		t->process[i].slot = 10 + (unsigned)i;
}

static void step(struct table *t, uint64_t after_ns)
{
	t->lease.now_ns += after_ns;
	for (size_t i = 0; i < t->count; i++)
		turns_observe(&t->turns, &t->process[i], &t->seen[i], t->lease.now_ns);
	t->next = turns_step(&t->turns, t->process, t->count, &t->lease);
}

/* The place of the process that has the turn; -1: all have it. */
static int turn(const struct table *t)
{
	return t->turns.turn ? (int)t->turns.turn - 11 : -1;
}

static void work(struct table *t, int place)
{
	t->seen[place].works = true;
	t->seen[place].waits = false;
	t->seen[place].inflight_ns = MS;
	t->seen[place].launches++;
}

static void rest(struct table *t, int place)
{
	t->seen[place].works = t->seen[place].waits = false;
	t->seen[place].inflight_ns = 0;
}

static void wait(struct table *t, int place)
{
	rest(t, place);
	t->seen[place].waits = true;
}

static void all_wait(struct table *t)
{
	for (size_t i = 0; i < t->count; i++)
		wait(t, (int)i);
}

static void grant(struct table *t)
{
	t->lease.state = TURNS_HELD;
	t->lease.number++;
	step(t, 100 * US);
}

static void take_away(struct table *t)
{
	t->lease.state = TURNS_AWAY;
	step(t, 100 * US);
}

/* The process with the turn works for this long, in samples of 1 ms; then it is held again. */
static void use_lease(struct table *t, uint64_t length_ns)
{
	for (uint64_t past = 0; past < length_ns; past += MS) {
		int own = turn(t);

		assert_true(own >= 0);
		work(t, own);
		step(t, MS);
		if (turn(t) != own)
			wait(t, own);
	}
	if (turn(t) >= 0)
		wait(t, turn(t));
}

static void test_leases_go_round(void **state)
{
	int had[MOST] = { 0 };
	struct table t;

	setup(&t, 4);
	all_wait(&t);
	for (int i = 0; i < 40; i++) {
		grant(&t);
		had[turn(&t)]++;
		/* Each has the whole lease, and no other process runs in it. */
		use_lease(&t, 20 * MS);
		assert_int_equal(t.turns.given, i + 1);
		take_away(&t);
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(had[i], 10);
	assert_int_equal(t.turns.given_up, 0);
}

static void test_short_leases_come_first(void **state)
{
	struct table t;
	int first;

	setup(&t, 2);
	all_wait(&t);
	grant(&t);
	first = turn(&t);
	use_lease(&t, 5 * MS);
	take_away(&t);
	grant(&t);
	assert_int_equal(turn(&t), !first);
	use_lease(&t, 20 * MS);
	take_away(&t);
	/* 5 ms had one, 20 the other: so the first has three more of 5. */
	for (int i = 0; i < 3; i++) {
		grant(&t);
		assert_int_equal(turn(&t), first);
		use_lease(&t, 5 * MS);
		take_away(&t);
	}
}

static void test_one_alone_needs_no_turn(void **state)
{
	struct table t;

	setup(&t, 3);
	wait(&t, 1);
	grant(&t);
	assert_int_equal(turn(&t), -1);
	work(&t, 1);
	step(&t, MS);
	assert_int_equal(turn(&t), -1);
	/* A second one went ahead unasked: from here on one of them waits. */
	work(&t, 2);
	step(&t, MS);
	assert_true(turn(&t) == 1 || turn(&t) == 2);
	/* Both are done: no process has the turn. */
	rest(&t, 1);
	rest(&t, 2);
	step(&t, MS);
	step(&t, MS);
	assert_int_equal(turn(&t), -1);
}

static void test_a_long_lease_is_shared(void **state)
{
	struct table t;

	setup(&t, 4);
	all_wait(&t);
	grant(&t);
	use_lease(&t, 400 * MS);
	assert_in_range(t.turns.given, 14, 17);
	for (int i = 0; i < 4; i++)
		assert_in_range(t.process[i].served_ns, 75 * MS, 125 * MS);
}

static void test_short_leases_of_one_alone_are_one_turn(void **state)
{
	struct table t;

	setup(&t, 2);
	all_wait(&t);
	t.lease.is_again = true;
	t.lease.quantum_ns = 5 * MS;
	for (int i = 0; i < 24; i++) {
		grant(&t);
		use_lease(&t, 4 * MS);
		take_away(&t);
	}
	/* 96 ms of leases, 25 a turn at least. */
	assert_in_range(t.turns.given, 3, 5);
}

/* A cap's lease may end as soon as it begins: the tenant then uses it only for its drain. */
static void test_leases_that_are_but_a_drain(void **state)
{
	int had[2] = { 0 };
	struct table t;

	setup(&t, 2);
	all_wait(&t);
	t.lease.is_again = true;
	for (int i = 0; i < 100; i++) {
		int own;

		grant(&t);
		own = turn(&t);
		had[own]++;
		work(&t, own);
		take_away(&t);
		step(&t, 5 * MS);
		wait(&t, own);
		step(&t, 100 * US);
	}
	assert_in_range(had[0], 40, 60);
	assert_in_range(t.turns.given, 10, 25);
}

static void test_an_idle_process_loses_the_turn(void **state)
{
	struct table t;
	int own;

	setup(&t, 2);
	all_wait(&t);
	grant(&t);
	own = turn(&t);
	work(&t, own);
	step(&t, 5 * MS);
	rest(&t, own);
	step(&t, 100 * US);
	assert_int_equal(turn(&t), own);
	/* The result has the time of the next poll. */
	assert_true(t.next <= t.lease.now_ns + 200 * US);
	step(&t, 150 * US);
	assert_int_equal(turn(&t), !own);
	/* It reported a long idle time: no poll was needed in between. */
	work(&t, !own);
	step(&t, 5 * MS);
	wait(&t, own);
	t.seen[!own].launches++;
	t.seen[!own].idle_ns = 500 * US;
	rest(&t, !own);
	step(&t, 2 * MS);
	assert_int_equal(turn(&t), own);
}

static void test_patience_grows_with_early_returns(void **state)
{
	struct table t;
	uint64_t before;
	int own;

	setup(&t, 2);
	all_wait(&t);
	grant(&t);
	own = turn(&t);
	before = t.process[own].patience.ns;
	work(&t, own);
	step(&t, 20 * MS);
	rest(&t, own);
	step(&t, 250 * US);
	assert_int_equal(turn(&t), !own);
	wait(&t, own);
	step(&t, 100 * US);
	assert_int_equal(t.process[own].patience.ns, 2 * before);
}

static void test_one_that_dies_in_its_turn(void **state)
{
	struct table t;
	int own;

	setup(&t, 3);
	all_wait(&t);
	grant(&t);
	own = turn(&t);
	work(&t, own);
	step(&t, MS);
	/* As the daemon does: the last one takes its place. */
	t.count--;
	t.process[own] = t.process[t.count];
	t.seen[own] = t.seen[t.count];
	step(&t, 100 * US);
	assert_int_not_equal(t.turns.turn, 10 + (unsigned)own + 1);
	assert_int_not_equal(t.turns.turn, 0);
	/* Only one process is left: no process waits for a turn. */
	t.count = 1;
	t.process[0] = (struct turns_process){ .slot = 20 };
	wait(&t, 0);
	step(&t, 100 * US);
	assert_int_equal(t.turns.turn, 0);
}

static void test_a_return_is_not_far_behind(void **state)
{
	struct table t;

	setup(&t, 3);
	wait(&t, 0);
	wait(&t, 1);
	for (int i = 0; i < 20; i++) {
		grant(&t);
		use_lease(&t, 20 * MS);
		take_away(&t);
	}
	wait(&t, 2);
	step(&t, MS);
	for (int i = 0, had = 0; i < 9; i++) {
		grant(&t);
		had += turn(&t) == 2;
		assert_true(had <= i / 3 + 1);
		use_lease(&t, 20 * MS);
		take_away(&t);
	}
}

/* The process with the turn has a kernel that spins for the work that another process has to launch. */
static void spin(struct table *t, uint64_t for_ns)
{
	int own = turn(t);

	assert_true(own >= 0);
	work(t, own);
	for (uint64_t past = 0; past < for_ns && turn(t) >= 0; past += MS)
		step(t, MS);
}

static void test_processes_that_need_each_other_run_together(void **state)
{
	uint64_t off_ns = 100 * MS;
	struct table t;

	setup(&t, 2);
	all_wait(&t);
	for (int i = 0; i < 12; i++) {
		grant(&t);
		spin(&t, 100 * MS);
		assert_int_equal(turn(&t), -1);
		assert_int_equal(t.turns.given_up, i + 1);
		/* In all of its leases, until then. */
		all_wait(&t);
		take_away(&t);
		for (uint64_t past = 0; past + 20 * MS < off_ns; past += 20 * MS) {
			grant(&t);
			assert_int_equal(turn(&t), -1);
			step(&t, 19800 * US);
			take_away(&t);
		}
		step(&t, 20 * MS);
		off_ns = 2 * off_ns < 60 * SECOND ? 2 * off_ns : 60 * SECOND;
	}
	/* After a minute of turns without that, it is as at first. */
	for (int i = 0; i < 4000; i++) {
		grant(&t);
		use_lease(&t, 20 * MS);
		take_away(&t);
	}
	grant(&t);
	spin(&t, 100 * MS);
	assert_int_equal(t.turns.given_up, 13);
	all_wait(&t);
	step(&t, 100 * MS);
	grant(&t);
	assert_true(turn(&t) >= 0);
}

static void test_how_long_work_may_last(void **state)
{
	struct table t;

	setup(&t, 2);
	all_wait(&t);
	grant(&t);
	/* 20 ms in flight, as predicted: 80 without another launch are not too long. */
	work(&t, turn(&t));
	t.seen[turn(&t)].inflight_ns = 20 * MS;
	for (int i = 0; i < 24; i++)
		step(&t, MS);
	take_away(&t);
	step(&t, 50 * MS);
	assert_int_equal(t.turns.given_up, 0);
	/* The lease is over, and its work is not: the same as a drain that has expired. */
	step(&t, 10 * MS);
	assert_int_equal(t.turns.given_up, 1);
}

static void test_no_other_process_waits(void **state)
{
	struct table t;

	setup(&t, 2);
	all_wait(&t);
	grant(&t);
	rest(&t, !turn(&t));
	work(&t, turn(&t));
	for (int i = 0; i < 300; i++)
		step(&t, MS);
	assert_int_equal(t.turns.given_up, 0);
}

static void test_a_gate_that_gave_up(void **state)
{
	struct table t;

	setup(&t, 2);
	all_wait(&t);
	grant(&t);
	work(&t, turn(&t));
	step(&t, MS);
	t.seen[turn(&t)].stuck++;
	step(&t, MS);
	assert_int_equal(turn(&t), -1);
	assert_int_equal(t.turns.given_up, 1);
}

static void test_turns_that_are_rested_away(void **state)
{
	struct table t;

	setup(&t, 2);
	all_wait(&t);
	grant(&t);
	/* Each works for 0.3 ms, and then waits for the other's result. */
	for (int i = 0; i < 100 && turn(&t) >= 0; i++) {
		int own = turn(&t);

		work(&t, own);
		step(&t, 300 * US);
		rest(&t, own);
		for (int k = 0; k < 20 && turn(&t) == own; k++)
			step(&t, 100 * US);
		wait(&t, own);
	}
	assert_int_equal(turn(&t), -1);
	assert_int_equal(t.turns.given_up, 1);
	/* Soon: after about 10 ms of idle time. */
	assert_true(t.lease.now_ns < SECOND + 40 * MS);
}

static void test_one_that_does_not_begin(void **state)
{
	struct table t;

	setup(&t, 3);
	all_wait(&t);
	grant(&t);
	/* It is stopped, for example: woken, but no work is observed. */
	for (int i = 0; i < 3; i++)
		step(&t, MS);
	assert_int_equal(turn(&t), -1);
	step(&t, MS);
	assert_int_equal(turn(&t), -1);
	take_away(&t);
	grant(&t);
	assert_true(turn(&t) >= 0);
}

static void test_without_a_lease(void **state)
{
	struct table t;

	setup(&t, 2);
	all_wait(&t);
	grant(&t);
	assert_true(turn(&t) >= 0);
	/* Free run, or turns switched off: no process waits for a turn. */
	t.lease.state = TURNS_OPEN;
	step(&t, MS);
	assert_int_equal(turn(&t), -1);
	assert_true(t.next == UINT64_MAX);
}

static void test_nonsense(void **state)
{
	uint64_t random = 1;
	struct table t;

	setup(&t, 4);
	for (int i = 0; i < 100000; i++) {
		unsigned char *bytes = (unsigned char *)t.seen;

		for (size_t k = 0; k < sizeof(t.seen); k++) {
			random = random * 6364136223846793005U + 1442695040888963407U;
			bytes[k] = (unsigned char)(random >> 56);
		}
		for (int k = 0; k < MOST; k++) {
			memset(&t.seen[k].waits, (int)(random >> 60 & 1), 1);
			memset(&t.seen[k].works, (int)(random >> 61 & 1), 1);
		}
		t.lease.state = (enum turns_lease_state)(random % 3);
		t.lease.number += random % 2;
		step(&t, random % (2 * MS));
		assert_true(t.turns.turn == 0 || (t.turns.turn >= 11 && t.turns.turn <= 14));
		assert_true(t.turns.turn == 0 || t.lease.state != TURNS_OPEN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leases_go_round),
		cmocka_unit_test(test_short_leases_come_first),
		cmocka_unit_test(test_one_alone_needs_no_turn),
		cmocka_unit_test(test_a_long_lease_is_shared),
		cmocka_unit_test(test_short_leases_of_one_alone_are_one_turn),
		cmocka_unit_test(test_leases_that_are_but_a_drain),
		cmocka_unit_test(test_an_idle_process_loses_the_turn),
		cmocka_unit_test(test_patience_grows_with_early_returns),
		cmocka_unit_test(test_one_that_dies_in_its_turn),
		cmocka_unit_test(test_a_return_is_not_far_behind),
		cmocka_unit_test(test_processes_that_need_each_other_run_together),
		cmocka_unit_test(test_how_long_work_may_last),
		cmocka_unit_test(test_no_other_process_waits),
		cmocka_unit_test(test_a_gate_that_gave_up),
		cmocka_unit_test(test_turns_that_are_rested_away),
		cmocka_unit_test(test_one_that_does_not_begin),
		cmocka_unit_test(test_without_a_lease),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
