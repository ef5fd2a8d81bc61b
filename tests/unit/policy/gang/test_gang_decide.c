/* Decisions on a gang's turns, fed by hand. Some reports make no sense: the arbiters' reports are not trusted. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gang_model.h"

#define DEVICES 6

/* Has demand, is held at the gate, and its turn has come. */
static struct gang_report due(enum gang_order order)
{
	return (struct gang_report){
		.is_present = true, .wants = true, .waits = true, .is_due = true, .order = order
	};
}

static enum gang_order order(const struct gang_board *b, int gang, unsigned device)
{
	return gang_command(b, gang, device).order;
}

/* The same report from both devices of a gang. */
static void tell(struct gang_board *b, int gang, struct gang_report report, uint64_t now_ns)
{
	for (unsigned d = 0; d < 2; d++)
		gang_set_report(b, gang, d, &report);
	gang_decide(b, now_ns);
}

static struct gang_report holds(void)
{
	struct gang_report r = due(GANG_GO);

	r.waits = false;
	r.holds = true;
	return r;
}

static void test_a_turn(void **state)
{
	struct gang_board *b = gang_board_new();
	int g = gang_add(b);
	struct gang_report r = due(GANG_NONE), other;

	/* On one device alone it is no gang, and not before its turn has come on both. */
	gang_set_report(b, g, 0, &r);
	assert_int_equal(gang_decide(b, 0), 0);
	assert_int_equal(order(b, g, 0), GANG_NONE);
	r.is_due = false;
	gang_set_report(b, g, 1, &r);
	assert_int_equal(gang_decide(b, 0), 3);
	assert_int_equal(order(b, g, 0), GANG_WAIT);
	/* Gathering: at the time at which the later device can be free. */
	r = due(GANG_WAIT);
	r.free_in_ns = 3 * MS;
	gang_set_report(b, g, 1, &r);
	assert_int_equal(gang_decide(b, MS), 3);
	assert_int_equal(order(b, g, 0), GANG_GATHER);
	assert_int_equal(gang_command(b, g, 0).at_ns, 4 * MS);
	/* A device that was vacant before it was kept for the gang may be another's by now. */
	r = due(GANG_WAIT);
	r.is_vacant = true;
	tell(b, g, r, MS);
	assert_int_equal(order(b, g, 0), GANG_GATHER);
	r.order = GANG_GATHER;
	gang_set_report(b, g, 0, &r);
	gang_decide(b, MS);
	assert_int_equal(order(b, g, 0), GANG_GATHER);
	tell(b, g, r, 2 * MS);
	assert_int_equal(order(b, g, 0), GANG_GO);
	assert_int_equal(order(b, g, 1), GANG_GO);
	assert_int_equal(gang_turns(b, g), 1);
	/* Over on one: ended on both, when the longer work in flight is done. */
	tell(b, g, holds(), 10 * MS);
	assert_int_equal(order(b, g, 0), GANG_GO);
	r = holds();
	r.is_over = true;
	r.drain_ns = 2 * MS;
	gang_set_report(b, g, 1, &r);
	gang_decide(b, 20 * MS);
	assert_int_equal(order(b, g, 0), GANG_CLOSE);
	assert_int_equal(gang_command(b, g, 1).at_ns, 22 * MS);
	/* One is drained and held, the other late: that may wait for this one. */
	r = due(GANG_CLOSE);
	gang_set_report(b, g, 0, &r);
	other = due(GANG_CLOSE);
	other.drains = true;
	gang_set_report(b, g, 1, &other);
	gang_decide(b, 22 * MS);
	assert_int_equal(order(b, g, 0), GANG_CLOSE);
	other.is_late = true;
	gang_set_report(b, g, 1, &other);
	gang_decide(b, 23 * MS);
	assert_int_equal(order(b, g, 0), GANG_GO);
	assert_true(gang_command(b, g, 0).is_slip);
	assert_int_equal(order(b, g, 1), GANG_CLOSE);
	/* Both drained. */
	r = due(GANG_CLOSE);
	r.is_due = false;
	tell(b, g, r, 24 * MS);
	assert_int_equal(order(b, g, 0), GANG_WAIT);
	gang_board_free(b);
}

/* Both gangs want both devices: the gang that is further behind gets both, or else the older one; never one device each. */
static void test_two_that_want_the_same(void **state)
{
	for (int behind = 0; behind <= 1; behind++) {
		struct gang_board *b = gang_board_new();
		int first = gang_add(b), second = gang_add(b);
		struct gang_report r = due(GANG_WAIT);

		for (unsigned d = 0; d < 2; d++)
			gang_set_report(b, first, d, &r);
		r.behind = behind;
		tell(b, second, r, 0);
		for (unsigned d = 0; d < 2; d++) {
			assert_int_equal(order(b, first, d), behind ? GANG_WAIT : GANG_GATHER);
			assert_int_equal(order(b, second, d), behind ? GANG_GATHER : GANG_WAIT);
		}
		gang_board_free(b);
	}
}

/* A rank that has nothing to do does not keep its device from others. */
static void test_without_demand(void **state)
{
	struct gang_board *b = gang_board_new();
	int g = gang_add(b);
	struct gang_report r = due(GANG_WAIT), idle = { .is_present = true, .order = GANG_WAIT };

	/* But it had some a moment ago: it is on its way to its next launch. */
	idle.idle_ns = GANG_COME_NS - 1;
	gang_set_report(b, g, 0, &r);
	gang_set_report(b, g, 1, &idle);
	gang_decide(b, 0);
	assert_int_equal(order(b, g, 0), GANG_WAIT);
	idle.idle_ns = GANG_COME_NS;
	gang_set_report(b, g, 1, &idle);
	gang_decide(b, 0);
	assert_int_equal(order(b, g, 0), GANG_GATHER);
	assert_int_equal(order(b, g, 1), GANG_WAIT);
	/* Its work begins after the turn has begun. */
	r = holds();
	gang_set_report(b, g, 0, &r);
	r = due(GANG_GATHER);
	r.is_vacant = true;
	gang_set_report(b, g, 0, &r);
	gang_decide(b, 0);
	assert_int_equal(order(b, g, 0), GANG_GO);
	r = holds();
	gang_set_report(b, g, 0, &r);
	r = due(GANG_WAIT);
	gang_set_report(b, g, 1, &r);
	gang_decide(b, MS);
	assert_int_equal(order(b, g, 1), GANG_GO);
	gang_board_free(b);
}

/* During the gang's turn each device learns the shortest idle time of the ranks on the other devices. */
static void test_rest_elsewhere(void **state)
{
	struct gang_board *b = gang_board_new();
	int g = gang_add(b);
	struct gang_report r = holds(), sync_points = holds();

	sync_points.wants = false;
	gang_set_report(b, g, 0, &r);
	for (unsigned d = 1; d < 3; d++) {
		sync_points.idle_ns = (4 - d) * MS;
		gang_set_report(b, g, d, &sync_points);
	}
	gang_decide(b, 0);
	assert_int_equal(order(b, g, 0), GANG_GO);
	/* Of the ranks on other devices, the shortest idle time. */
	assert_int_equal(gang_command(b, g, 0).idle_elsewhere_ns, 2 * MS);
	assert_int_equal(gang_command(b, g, 1).idle_elsewhere_ns, 0);
	r.wants = false;
	r.idle_ns = MS;
	gang_set_report(b, g, 0, &r);
	gang_decide(b, 0);
	assert_int_equal(gang_command(b, g, 1).idle_elsewhere_ns, MS);
	/* They have work there of before, but no lease. */
	r.holds = sync_points.holds = false;
	gang_set_report(b, g, 0, &r);
	gang_set_report(b, g, 2, &sync_points);
	gang_decide(b, 0);
	assert_int_equal(gang_command(b, g, 1).idle_elsewhere_ns, UINT64_MAX);
	gang_board_free(b);
}

/*
 * A rank that has been idle for long does not give up the turn while another rank has work. When all are idle, all give it up
 * at once.
 */
static void test_all_rest(void **state)
{
	struct gang_board *b = gang_board_new();
	int g = gang_add(b);
	struct gang_report works = holds(), sync_points = holds();

	tell(b, g, holds(), 0);
	sync_points.wants = false;
	sync_points.is_idle = true;
	gang_set_report(b, g, 0, &works);
	gang_set_report(b, g, 1, &sync_points);
	gang_decide(b, 0);
	for (unsigned d = 0; d < 2; d++)
		assert_int_equal(order(b, g, d), GANG_GO);
	/* Not for as long itself: but with the other, it would go on without a device there. */
	works.wants = false;
	gang_set_report(b, g, 0, &works);
	assert_int_equal(gang_decide(b, 0), 3);
	for (unsigned d = 0; d < 2; d++)
		assert_int_equal(order(b, g, d), GANG_CLOSE);
	gang_board_free(b);
}

/*
 * The end of a turn is predicted from the work in flight at each device's last report. If that is old, the end is sooner, never
 * later.
 */
static void test_sooner(void **state)
{
	struct gang_board *b = gang_board_new();
	int g = gang_add(b);
	struct gang_report r = holds();

	tell(b, g, holds(), 0);
	r.drain_ns = 5 * MS;
	gang_set_report(b, g, 1, &r);
	r = holds();
	r.is_over = true;
	gang_set_report(b, g, 0, &r);
	gang_decide(b, SECOND);
	assert_int_equal(order(b, g, 0), GANG_CLOSE);
	assert_int_equal(gang_command(b, g, 0).at_ns, SECOND + 5 * MS);
	/* Not for less than is worth to wake the others. */
	r = holds();
	r.order = GANG_CLOSE;
	r.drain_ns = 5 * MS - MS - GANG_SOONER_NS + 1;
	gang_set_report(b, g, 1, &r);
	gang_decide(b, SECOND + MS);
	assert_int_equal(gang_command(b, g, 0).at_ns, SECOND + 5 * MS);
	r.drain_ns = 0;
	gang_set_report(b, g, 1, &r);
	assert_int_equal(gang_decide(b, SECOND + MS), 3);
	assert_int_equal(gang_command(b, g, 0).at_ns, SECOND + MS);
	r.drain_ns = 9 * MS;
	gang_set_report(b, g, 1, &r);
	gang_decide(b, SECOND + MS);
	assert_int_equal(gang_command(b, g, 0).at_ns, SECOND + MS);
	gang_board_free(b);
}

static void test_bad_numbers(void **state)
{
	struct gang_board *b = gang_board_new();
	struct gang_report r = due(GANG_NONE);

	for (int i = 0; i < GANG_MAX; i++)
		assert_int_equal(gang_add(b), i);
	assert_int_equal(gang_add(b), -ENOSPC);
	gang_remove(b, 5);
	gang_remove(b, 5);
	gang_remove(b, -1);
	gang_remove(b, GANG_MAX);
	assert_int_equal(gang_add(b), 5);
	gang_set_report(b, -1, 0, &r);
	gang_set_report(b, GANG_MAX, 0, &r);
	gang_set_report(b, 0, GANG_MAX_DEVICES, &r);
	gang_set_report(b, 0, GANG_MAX_DEVICES - 1, &r);
	gang_set_report(b, 0, 0, &r);
	assert_int_equal(gang_decide(b, 0), UINT64_C(1) << (GANG_MAX_DEVICES - 1) | 1);
	assert_int_equal(order(b, -1, 0), GANG_NONE);
	assert_int_equal(order(b, 0, GANG_MAX_DEVICES), GANG_NONE);
	assert_int_equal(gang_turns(b, GANG_MAX), 0);
	gang_board_free(b);
	gang_board_free(NULL);

	struct arbiter_config config = arbiter_default_config();
	struct arbiter *a = arbiter_new(&config);
	static const struct gang_command go = { .order = GANG_GO };

	assert_int_equal(arbiter_gang_report(a, -1).order, GANG_NONE);
	assert_int_equal(arbiter_gang_report(a, ARBITER_MAX_TENANTS).is_present, false);
	assert_false(arbiter_set_gang(a, 3, go));
	arbiter_free(a);
}

static struct gang_report garbage(uint64_t *random)
{
	static const double numbers[] = { 0, -1, 1e300, -1e300, 5e-324 };
	uint64_t bits = random_next(random), pick = random_between(random, 0, 6);
	struct gang_report r = {
		.is_present = (bits & 7) != 0,
		.wants = bits >> 3 & 1,
		.waits = bits >> 4 & 1,
		.is_due = bits >> 5 & 1,
		.holds = bits >> 6 & 1,
		.drains = bits >> 7 & 1,
		.is_late = bits >> 8 & 1,
		.is_stuck = bits >> 9 & 1,
		.may_yield = bits >> 10 & 1,
		.is_over = bits >> 11 & 1,
		.is_vacant = bits >> 12 & 1,
		.behind = pick == 5   ? (double)NAN
			  : pick == 6 ? (double)INFINITY
				      : numbers[pick],
		.free_in_ns = bits >> 13 & 1 ? UINT64_MAX : bits >> 40,
		.drain_ns = bits >> 14 & 1 ? UINT64_MAX : bits >> 44,
		.order = (enum gang_order)random_between(random, 0, 4),
	};

	return r;
}

/* For any reports in any order, no device belongs to two gangs. */
static void test_garbage(void **state)
{
	uint64_t random = 4711, now = 0, gos = 0;
	struct gang_board *b = gang_board_new();
	int gangs[5];

	for (int i = 0; i < 5; i++)
		gangs[i] = gang_add(b);
	for (int i = 0; i < 300000; i++) {
		int g = (int)random_between(&random, 0, 4);
		struct gang_report r = garbage(&random);

		if (i % 5000 == 0) {
			gang_remove(b, gangs[g]);
			gangs[g] = gang_add(b);
		}
		gang_set_report(b, gangs[g], (unsigned)random_between(&random, 0, DEVICES - 1), &r);
		now += random_between(&random, 0, 500 * US);
		gang_decide(b, now);
		for (unsigned d = 0; d < DEVICES; d++) {
			int owners = 0;

			for (int k = 0; k < 5; k++)
				owners += order(b, gangs[k], d) == GANG_GO ||
					  order(b, gangs[k], d) == GANG_GATHER;
			assert_true(owners <= 1);
			gos += (uint64_t)owners;
		}
	}
	assert_true(gos > 1000);
	gang_board_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_turn),
		cmocka_unit_test(test_two_that_want_the_same),
		cmocka_unit_test(test_without_demand),
		cmocka_unit_test(test_rest_elsewhere),
		cmocka_unit_test(test_all_rest),
		cmocka_unit_test(test_sooner),
		cmocka_unit_test(test_bad_numbers),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
