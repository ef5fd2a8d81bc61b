/*
 * The census: NVML's figure for a process, compared with its ledger. Pure comparisons first, then a daemon with one process of
 * one tenant.
 */
#include "../fixture.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/gpu/census.h"
#include "daemon/gpu/watch/census_compare.h"
#include "daemon/state/node/drain.h"
#include "daemon/tasks/violation/violations.h"
#include "daemon/util/procfs.h"

static void test_costly_readings_are_rarer(void **state)
{
	uint64_t asked_ns = NSEC_PER_SEC;
	assert_int_equal(census_every_ns(asked_ns, 0), asked_ns);
	assert_int_equal(census_every_ns(asked_ns, asked_ns / CENSUS_COST_PART), asked_ns);
	assert_int_equal(census_every_ns(asked_ns, 4 * NSEC_PER_MSEC), 1600 * NSEC_PER_MSEC);
	assert_int_equal(census_every_ns(asked_ns, UINT64_MAX), CENSUS_EVERY_MOST_NS);
	assert_int_equal(census_every_ns(60 * NSEC_PER_SEC, 11 * NSEC_PER_MSEC), 60 * NSEC_PER_SEC);
}

static void test_rest_where_nothing_changes(void **state)
{
	const uint64_t s = NSEC_PER_SEC;
	struct census_stability stability = { 0 };
	assert_false(census_is_stable(&stability, 7, s, s));
	for (uint64_t at = 1; at <= 3; at++) {
		census_stability_note(&stability, 5, 7, at * s);
		assert_false(census_is_stable(&stability, 7, s, at * s));
	}
	census_stability_note(&stability, 5, 7, 4 * s);
	assert_true(census_is_stable(&stability, 7, s, 5 * s));
	assert_false(census_is_stable(&stability, 8, s, 5 * s));
	/* If a census is requested more often than needed, it checks for changes only now and then. */
	assert_false(census_is_stable(&stability, 7, s / 2, 5 * s));
	assert_true(census_is_stable(&stability, 7, s, 4 * s + CENSUS_PAUSE_MAX_NS - 1));
	assert_false(census_is_stable(&stability, 7, s, 4 * s + CENSUS_PAUSE_MAX_NS));
	/* A census that comes anyway and shows no change starts nothing; one with a change does. */
	census_stability_note(&stability, 5, 7, 64 * s);
	assert_true(census_is_stable(&stability, 7, s, 65 * s));
	census_stability_note(&stability, 6, 7, 66 * s);
	assert_false(census_is_stable(&stability, 7, s, 67 * s));
	/* Readings soon after one another are no three intervals. */
	for (int i = 0; i < 9; i++)
		census_stability_note(&stability, 6, 7, 66 * s + s / 2);
	assert_false(census_is_stable(&stability, 7, s, 67 * s));
}

static void test_over(void **state)
{
	assert_false(census_is_over(0, 0));
	assert_false(census_is_over(512 * MIB, 0));
	assert_true(census_is_over(512 * MIB + 1, 0));
	assert_false(census_is_over(100 * MIB, 200 * MIB));
	assert_false(census_is_over(20 * GIB + 1000 * MIB, 20 * GIB));
	assert_true(census_is_over(20 * GIB + 1030 * MIB, 20 * GIB));
}

static void test_agreed_context(void **state)
{
	struct census_least least = { 0 };
	assert_true(census_confirmed_context(&least, "a", 40 * MIB) ==
		    UINT64_MAX); /* only this one shows it */
	assert_true(census_confirmed_context(&least, "a", 30 * MIB) == UINT64_MAX);
	assert_int_equal(census_confirmed_context(&least, "b", 300 * MIB), 300 * MIB);
	assert_int_equal(census_confirmed_context(&least, "c", 280 * MIB), 280 * MIB);
	assert_int_equal(census_confirmed_context(&least, "b", 20 * MIB), 30 * MIB);
	assert_true(census_confirmed_context(&least, "b", 300 * MIB) == UINT64_MAX);
}

static void test_unnamed(void **state)
{
	uint64_t before = 0;
	assert_int_equal(census_unnamed(700 * MIB, 600 * MIB, 0, &before), 0); /* seen once */
	assert_int_equal(census_unnamed(690 * MIB, 600 * MIB, 0, &before), 90 * MIB);
	assert_int_equal(census_unnamed(800 * MIB, 600 * MIB, 90 * MIB, &before), 90 * MIB);
	assert_int_equal(census_unnamed(0, 600 * MIB, 90 * MIB, &before),
			 0); /* not reported, or less than charged */
	assert_int_equal(census_unnamed(800 * MIB, 600 * MIB, 0, &before), 0);
	assert_int_equal(before, 200 * MIB);
	/* Its library has measured it: one census confirms that, and corrects errors by others. */
	before = 0;
	assert_int_equal(census_unnamed(700 * MIB, 600 * MIB, 100 * MIB, &before), 100 * MIB);
	assert_int_equal(census_unnamed(700 * MIB, 600 * MIB, 900 * MIB, &before), 100 * MIB);
}

/* A tenant on card 0 with one process, for which NVML reports nothing at first. */
struct one {
	struct fixture *f;
	struct tenant *t;
	int pid;
	struct region_slot_device *slot; /* the process's */
	struct region_control_device *control;
};

static struct one one_process(void **state, client_act act)
{
	struct one one = { .f = *state };

	json_decref(fixture_ok(one.f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\",\"devices\":["
				      "{\"index\":0}]}"));
	one.t = node_find_tenant(one.f->node, "a");
	one.pid = client_spawn(one.f, one.t, 0, act);
	one.slot = &one.t->region.report->slot[0].device[0];
	one.control = &one.t->region.control->device[0];
	return one;
}

/* From now on NVML reports this much for the process. */
static void tell(const struct one *one, uint64_t bytes)
{
	fake_gpu.pid_bytes = bytes;
	fake_gpu.pid = one->pid;
}

/* Takes one census now, with this figure of NVML. */
static void look(const struct one *one, uint64_t bytes)
{
	struct gpu_process process = { .pid = one->pid, .used_known = true, .used_bytes = bytes };
	struct census_card seen = { .processes_known = true,
				    .process_count = 1,
				    .process = &process };

	census_compare(one->f->node, 0, &seen);
}

static void one_context(struct client *c)
{
	struct region_slot_device *d = &c->report->slot[c->reply.slot].device[0];
	d->context_used_bytes = 518 * MIB;
	d->used_bytes = 618 * MIB;
}

static void context_begun(struct client *c)
{
	struct region_slot_device *d = &c->report->slot[c->reply.slot].device[0];
	d->context_used_bytes = 518 * MIB;
	d->used_bytes = 518 * MIB;
}

/* Two tenants of one process each, and as many censuses of both as are needed for any conclusion. */
struct two {
	struct one one;
	struct tenant *t[2];
	struct gpu_process process[2];
};

static struct two two_processes(void **state, client_act act)
{
	struct two two = { .one = one_process(state, act) };
	struct fixture *f = two.one.f;
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"b\",\"devices\":["
				  "{\"index\":0}]}"));
	two.t[0] = two.one.t;
	two.t[1] = node_find_tenant(f->node, "b");
	two.process[0].pid = two.one.pid;
	two.process[1].pid = client_spawn(f, two.t[1], 0, act);
	two.process[0].used_known = two.process[1].used_known = true;
	/* Looks of the test's own alone count, and any number of them. */
	f->node->config.census_ns = 1;
	return two;
}

static void sample_both(struct two *two, uint64_t first, uint64_t second)
{
	struct census_card seen = { .processes_known = true,
				    .process_count = 2,
				    .process = two->process };
	two->process[0].used_bytes = first;
	two->process[1].used_bytes = second;
	for (unsigned i = 0; i <= CENSUS_OVER_COUNT; i++)
		census_compare(two->one.f->node, 0, &seen);
}

static uint64_t context_now(const struct two *two)
{
	struct card *card = &two->one.f->node->card[0];
	assert_int_equal(two->one.control->context_bytes, card->context_bytes);
	return card->context_bytes;
}

static void end_both(struct two *two)
{
	client_kill(two->process[0].pid);
	client_kill(two->process[1].pid);
}

static void test_context_is_learned(void **state)
{
	struct two two = two_processes(state, one_context);
	/* Figures of one tenant alone change nothing, whatever its ledger has. */
	sample_both(&two, 400 * MIB, 800 * MIB);
	assert_int_equal(context_now(&two), 518 * MIB);
	sample_both(&two, 400 * MIB, 300 * MIB);
	assert_int_equal(context_now(&two), 400 * MIB);
	assert_int_equal(two.one.f->node->card[1].context_bytes, 518 * MIB);
	sample_both(&two, 450 * MIB, 300 * MIB);
	assert_int_equal(context_now(&two), 400 * MIB);
	assert_int_equal(two.t[0]->violations[VIOLATION_OVER_LEDGER], 0);
	end_both(&two);
}

static void test_no_context_is_learned_while_it_is_made(void **state)
{
	struct two two = two_processes(state, context_begun);
	sample_both(&two, 100 * MIB, 100 * MIB);
	assert_int_equal(context_now(&two), 518 * MIB);
	/* It has run something: now it is there. */
	for (unsigned i = 0; i < 2; i++)
		two.t[i]->region.report->slot[0].device[0].launches = 1;
	sample_both(&two, 300 * MIB, 300 * MIB);
	assert_int_equal(context_now(&two), 300 * MIB);
	end_both(&two);
}

static void test_no_context_is_learned_of_the_stopped(void **state)
{
	struct two two = two_processes(state, one_context);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(kill(two.process[i].pid, SIGSTOP), 0);
		for (unsigned k = 0; k < 2000 && !procfs_is_stopped(two.process[i].pid); k++)
			fixture_turn(two.one.f, 1);
	}
	sample_both(&two, 100 * MIB, 100 * MIB);
	assert_int_equal(context_now(&two), 518 * MIB);
	end_both(&two);
}

/* 518 MiB by the setting: an eighth of that is no context. Nor does anything count that changes. */
static void test_no_context_is_learned_of_a_part(void **state)
{
	struct two two = two_processes(state, one_context);
	sample_both(&two, 64 * MIB, 64 * MIB);
	assert_int_equal(context_now(&two), 518 * MIB);
	for (unsigned i = 0; i < 10; i++) {
		struct census_card seen = { .processes_known = true,
					    .process_count = 2,
					    .process = two.process };
		two.process[0].used_bytes = two.process[1].used_bytes = (100 + i) * MIB;
		census_compare(two.one.f->node, 0, &seen);
	}
	assert_int_equal(context_now(&two), 518 * MIB);
	end_both(&two);
}

static void test_unnamed_is_charged(void **state)
{
	struct one one = one_process(state, one_context);
	tell(&one, 658 * MIB);
	fixture_until(one.f, one.slot->unnamed_bytes == 40 * MIB);
	assert_int_equal(tenant_usage(one.t, 0).used_bytes, 658 * MIB);
	assert_int_equal(tenant_usage(one.t, 0).unnamed_bytes, 40 * MIB);
	assert_int_equal(one.slot->used_bytes, 618 * MIB);
	/* It no longer counts once a census shows less. */
	tell(&one, 628 * MIB);
	fixture_until(one.f, one.slot->unnamed_bytes == 10 * MIB);
	/* It ends with the process, and is drained like the rest. */
	tell(&one, 658 * MIB);
	fixture_until(one.f, one.slot->unnamed_bytes == 40 * MIB);
	client_kill(one.pid);
	fixture_until(one.f, one.t->process_count == 0);
	assert_int_equal(tenant_usage(one.t, 0).used_bytes, 0);
	assert_int_equal(one.slot->unnamed_bytes, 0);
	assert_int_equal(drain_bytes(&one.f->node->card[0]), 658 * MIB);
	assert_int_equal(one.t->violations[VIOLATION_OVER_LEDGER], 0);
}

/* Bytes that are moved out by the slot, but that NVML still shows, are counted once. */
static void test_memory_that_moves_is_counted_once(void **state)
{
	struct one one = one_process(state, one_context);
	one.t->terms.on_full = ON_FULL_SWAP;
	struct region_slot *slot = &one.t->region.report->slot[0];
	struct process_census *c = &one.t->process[0]->census[0];
	look(&one, 658 * MIB);
	look(&one, 658 * MIB);
	assert_int_equal(one.slot->unnamed_bytes, 40 * MIB);
	slot->swap_state = SWAP_LEAVING;
	slot->swap[0].out_bytes = 100 * MIB;
	for (int i = 0; i < 9; i++)
		look(&one, 658 * MIB);
	assert_int_equal(tenant_usage(one.t, 0).used_bytes, 658 * MIB);
	/* It has ended meanwhile, and the reading is from before. */
	slot->swap_state = SWAP_OUT;
	for (int i = 0; i < 9; i++)
		look(&one, 658 * MIB);
	c->swapped_before = 100 * MIB;
	c->was_moving = true;
	for (int i = 0; i < 9; i++)
		look(&one, 658 * MIB);
	assert_int_equal(tenant_usage(one.t, 0).used_bytes, 658 * MIB);
	assert_int_equal(one.t->violations[VIOLATION_OVER_LEDGER], 0);
	/* Now both are of the same state. */
	c->was_moving = false;
	look(&one, 568 * MIB);
	look(&one, 568 * MIB);
	assert_int_equal(one.slot->unnamed_bytes, 50 * MIB);
	client_kill(one.pid);
}

/* The library's measurement counts at once, and is replaced by the next census, which is taken soon. */
static void test_fresh_is_looked_at_soon(void **state)
{
	struct one one = one_process(state, one_context);
	one.f->node->config.census_ns = 3600 * NSEC_PER_SEC;
	tell(&one, 658 * MIB);
	one.slot->fresh_bytes = 90 * MIB;
	assert_int_equal(tenant_usage(one.t, 0).used_bytes, 708 * MIB);
	fixture_until(one.f, one.slot->fresh_bytes == 0);
	assert_int_equal(one.slot->unnamed_bytes, 40 * MIB);
	assert_int_equal(tenant_usage(one.t, 0).used_bytes, 658 * MIB);
	/* Nonsense is bounded by the card. */
	one.slot->fresh_bytes = UINT64_MAX;
	assert_true(tenant_usage(one.t, 0).unnamed_bytes <=
		    one.t->terms.device[0].card->info.memory_bytes);
	client_kill(one.pid);
}

/* Measured while NVML was being read: this census may not show it, so it stays. */
static void test_fresh_during_a_census_stays(void **state)
{
	struct one one = one_process(state, one_context);
	one.slot->fresh_bytes = 90 * MIB;
	one.t->process[0]->census[0].fresh_before = 0;
	look(&one, 618 * MIB);
	assert_int_equal(one.slot->fresh_bytes, 90 * MIB);
	one.t->process[0]->census[0].fresh_before = 90 * MIB;
	look(&one, 618 * MIB);
	assert_int_equal(one.slot->fresh_bytes, 0);
	assert_int_equal(one.slot->unnamed_bytes, 0);
	client_kill(one.pid);
}

/* Memory that was allocated and freed while NVML was being read was the ledger's. */
static void test_a_peak_of_this_census_explains(void **state)
{
	struct one one = one_process(state, one_context);
	one.slot->census_peak_bytes = 650 * MIB;
	one.slot->census = one.t->region.control->census;
	look(&one, 658 * MIB);
	look(&one, 658 * MIB);
	assert_int_equal(one.slot->unnamed_bytes, 8 * MIB);
	one.slot->census--; /* of an older census */
	look(&one, 658 * MIB);
	assert_int_equal(one.slot->unnamed_bytes, 8 * MIB);
	look(&one, 658 * MIB);
	assert_int_equal(one.slot->unnamed_bytes, 40 * MIB);
	client_kill(one.pid);
}

static void claims_little(struct client *c)
{
	c->report->slot[c->reply.slot].device[0].used_bytes = 10 * MIB;
}

static void test_violation(void **state)
{
	struct one one = one_process(state, claims_little);
	tell(&one, 2 * GIB);
	fixture_until(one.f, one.t->violations[VIOLATION_OVER_LEDGER] == 1);
	fixture_turn(one.f, 300);
	assert_int_equal(one.t->violations[VIOLATION_OVER_LEDGER], 1); /* once a process */
	client_kill(one.pid);
}

/* For example large modules: the library reported them, so none bypassed it. */
static void test_measured_is_no_violation(void **state)
{
	struct one one = one_process(state, claims_little);
	one.slot->fresh_bytes = 2 * GIB;
	tell(&one, 2 * GIB);
	fixture_until(one.f, one.slot->fresh_bytes == 0);
	fixture_turn(one.f, 500);
	assert_int_equal(one.t->violations[VIOLATION_OVER_LEDGER], 0);
	tell(&one, 3 * GIB);
	fixture_until(one.f, one.t->violations[VIOLATION_OVER_LEDGER] == 1);
	client_kill(one.pid);
}

/* A tenant's own report excuses nothing beyond its quota, here the card's unpromised 8 GiB. */
static void admits_all(struct client *c)
{
	c->report->slot[c->reply.slot].device[0].used_bytes = 6 * GIB;
}

static struct two two_with_quota(void **state, client_act act)
{
	struct two two = two_processes(state, act);
	struct promise *p = &two.t[0]->terms.device[0].promise;
	p->memory_given = true;
	p->quota_bytes = 2 * GIB;
	return two;
}

static unsigned over_quota(const struct two *two)
{
	assert_int_equal(two->t[1]->violations[VIOLATION_OVER_QUOTA], 0);
	return two->t[0]->violations[VIOLATION_OVER_QUOTA];
}

static void test_a_ledger_that_admits_it_excuses_nothing(void **state)
{
	struct two two = two_with_quota(state, admits_all);
	sample_both(&two, 2 * GIB + 500 * MIB, GIB);
	assert_int_equal(over_quota(&two), 0);
	sample_both(&two, 4 * GIB, GIB);
	assert_int_equal(over_quota(&two), 1);
	sample_both(&two, 4 * GIB, GIB);
	assert_int_equal(over_quota(&two), 1);
	end_both(&two);
}

static void test_fresh_excuses_nothing(void **state)
{
	struct two two = two_with_quota(state, one_context);
	struct process_census *c = &two.t[0]->process[0]->census[0];
	two.one.slot->fresh_bytes = c->fresh_before = 1;
	sample_both(&two, GIB, GIB);
	two.one.slot->fresh_bytes = c->fresh_before = 1;
	sample_both(&two, 2 * GIB, GIB);
	assert_true(c->measured <= 2);
	/* Within its quota it is reported for its ledger, beyond the quota for that. */
	assert_int_equal(two.t[0]->violations[VIOLATION_OVER_LEDGER], 1);
	end_both(&two);
}

/* A context and code for each process come on top, and no more of them than the quota has room for. */
static void test_contexts_of_several_are_within_the_quota(void **state)
{
	struct two two = two_with_quota(state, admits_all);
	int third = client_spawn(two.one.f, two.t[0], 0, admits_all);
	int pids[] = { two.process[0].pid, third };
	struct gpu_process list[] = { { .pid = pids[0], .used_known = true, .used_bytes = GIB },
				      { .pid = third, .used_known = true, .used_bytes = 2 * GIB } };
	struct census_card seen = { .processes_known = true, .process_count = 2, .process = list };
	for (unsigned i = 0; i < 9; i++)
		census_compare(two.one.f->node, 0, &seen);
	assert_int_equal(over_quota(&two), 0);
	list[1].used_bytes = 3 * GIB;
	for (unsigned i = 0; i < 9; i++)
		census_compare(two.one.f->node, 0, &seen);
	assert_int_equal(over_quota(&two), 1);
	json_t *offenders = violations_of_tenant(two.one.f->node->violations, "a");
	const json_t *offender = json_array_get(offenders, 0);
	assert_int_equal(json_integer_value(json_object_get(offender, "pid")), third);
	json_decref(offenders);
	client_kill(third);
	end_both(&two);
}

static void test_draining(void **state)
{
	struct one one = one_process(state, one_context);
	tell(&one, 618 * MIB);
	fake_gpu.used_bytes = 700 * MIB;
	fixture_until(one.f, one.f->node->card[0].memory_used_bytes == 700 * MIB);
	client_kill(one.pid);
	fixture_until(one.f, one.t->process_count == 0);
	assert_int_equal(drain_bytes(&one.f->node->card[0]), 618 * MIB);
	fixture_turn(one.f, 100); /* the driver has not let go yet */
	assert_int_equal(drain_bytes(&one.f->node->card[0]), 618 * MIB);
	fake_gpu.pid = 0;
	fixture_turn(one.f, 100);
	assert_int_equal(drain_bytes(&one.f->node->card[0]), 618 * MIB);
	fake_gpu.used_bytes = 82 * MIB;
	fixture_until(one.f, drain_bytes(&one.f->node->card[0]) == 0);
}

/* The memory of one has been freed, that of the other not yet: one fall is not two. */
static void test_draining_of_two(void **state)
{
	struct two two = two_processes(state, one_context);
	struct fixture *f = two.one.f;
	const struct card *card = &f->node->card[0];
	fake_gpu.used_bytes = 1400 * MIB;
	fixture_until(f, card->memory_used_bytes == 1400 * MIB);
	end_both(&two);
	fixture_until(f, two.t[0]->process_count + two.t[1]->process_count == 0);
	assert_int_equal(drain_bytes(card), 2 * 618 * MIB);
	fake_gpu.used_bytes = (1400 - 618) * MIB;
	fixture_until(f, drain_bytes(card) == 618 * MIB);
	fixture_turn(f, 100);
	assert_int_equal(drain_bytes(card), 618 * MIB);
	fake_gpu.used_bytes = (1400 - 2 * 618) * MIB;
	fixture_until(f, drain_bytes(card) == 0);
}

/* Another process takes as much meanwhile: the total does not fall, but the list shows which process has all of it. */
static void test_draining_while_another_allocates(void **state)
{
	struct one one = one_process(state, one_context);
	tell(&one, 618 * MIB);
	fake_gpu.used_bytes = 700 * MIB;
	fixture_until(one.f, one.f->node->card[0].unlisted_bytes == 82 * MIB);
	client_kill(one.pid);
	fixture_until(one.f, one.t->process_count == 0);
	fake_gpu.pid = 1;
	fake_gpu.pid_bytes = 900 * MIB;
	fake_gpu.used_bytes = (900 + 82 + 618) * MIB;
	fixture_turn(one.f, 100);
	assert_int_equal(drain_bytes(&one.f->node->card[0]), 618 * MIB);
	fake_gpu.used_bytes = (900 + 82) * MIB;
	fixture_until(one.f, drain_bytes(&one.f->node->card[0]) == 0);
	fake_gpu.pid = 0;
}

static void test_draining_ends(void **state)
{
	struct one one = one_process(state, one_context);
	fake_gpu.used_bytes = 700 * MIB;
	fixture_turn(one.f, 100);
	uint64_t begun_ns = clock_now_ns();
	client_kill(one.pid);
	fixture_until(one.f, one.t->process_count == 0);
	while (drain_bytes(&one.f->node->card[0]))
		fixture_turn(one.f, 50);
	assert_true(clock_now_ns() - begun_ns >= DRAIN_MAX_NS);
}

#define test(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_costly_readings_are_rarer),
		cmocka_unit_test(test_rest_where_nothing_changes),
		cmocka_unit_test(test_over),
		cmocka_unit_test(test_agreed_context),
		cmocka_unit_test(test_unnamed),
		test(test_context_is_learned),
		test(test_no_context_is_learned_while_it_is_made),
		test(test_no_context_is_learned_of_the_stopped),
		test(test_no_context_is_learned_of_a_part),
		test(test_memory_that_moves_is_counted_once),
		test(test_fresh_is_looked_at_soon),
		test(test_fresh_during_a_census_stays),
		test(test_unnamed_is_charged),
		test(test_a_peak_of_this_census_explains),
		test(test_violation),
		test(test_measured_is_no_violation),
		test(test_a_ledger_that_admits_it_excuses_nothing),
		test(test_fresh_excuses_nothing),
		test(test_contexts_of_several_are_within_the_quota),
		test(test_draining),
		test(test_draining_of_two),
		test(test_draining_while_another_allocates),
		test(test_draining_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
