/* Single rules of space.h: members of a card whose work goes on as the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arbiter/space.h"

#define MS UINT64_C(1000000)
#define LOOKS 2000 /* of 1 ms */
#define COUNT 2

struct table {
	struct space space;
	struct space_member member[COUNT];
	struct space_seen seen[COUNT];
	double speed[COUNT]; /* of the card's SM-time, while nobody is held */
	int held[COUNT];     /* looks at which it wanted more than it was allowed */
	uint64_t now;
};

/* Both always want more; each gets on at its speed, unless it is held. */
static void look(struct table *t)
{
	struct space_member *members[COUNT] = { &t->member[0], &t->member[1] };

	t->now += MS;
	for (int i = 0; i < COUNT; i++) {
		struct space_seen *s = &t->seen[i];
		uint64_t allowed = t->member[i].allowance_ns;
		uint64_t wanted = (uint64_t)(t->speed[i] * (double)MS);
		uint64_t step = wanted < allowed ? wanted : allowed;

		t->held[i] += wanted > allowed;
		s->works = s->is_paced = true;
		s->paid_ns += step;
		s->work_ns += step;
		s->inflight_ns = 0;
		space_member_see(&t->member[i], s, true, t->now, MS);
	}
	space_set_allowances(&t->space, members, COUNT, MS);
}

static struct table *run(struct table *t, bool is_promised, double first, double second)
{
	*t = (struct table){ .speed = { first, second }, .now = 1000 * MS };
	for (int i = 0; i < COUNT; i++)
		t->member[i] = (struct space_member){ .weight = 1,
						      .limit = 1,
						      .is_promised = is_promised,
						      .allowance_ns = SPACE_PLENTY_NS };
	for (int i = 0; i < LOOKS; i++)
		look(t);
	return t;
}

/* 8 points apart: what the hardware makes of two that are alike. */
static void test_small_differences_hold_nobody_who_was_promised_nothing(void **state)
{
	struct table t;

	assert_int_equal(run(&t, false, 0.52, 0.48)->held[0], 0);
	assert_int_equal(t.held[1], 0);
}

static void test_a_promise_is_kept_to_the_point(void **state)
{
	struct table t;

	run(&t, true, 0.52, 0.48);
	assert_true(t.held[0] > 0);
	assert_int_equal(t.held[1], 0);
	/* What it may be ahead of the other's target, and no more. */
	assert_true(t.seen[0].paid_ns - t.seen[1].paid_ns <= SPACE_AHEAD_NS);
}

static void test_large_differences_are_held_down(void **state)
{
	struct table t;

	run(&t, false, 0.7, 0.3);
	assert_true(t.held[0] > 0);
	assert_int_equal(t.held[1], 0);
}

static void see(struct space_member *m, struct space_seen *s, uint64_t work_ns, uint64_t untried_ns)
{
	static uint64_t now = 1000 * MS;

	now += MS;
	s->works = s->is_paced = true;
	s->paid_ns += work_ns;
	s->work_ns += work_ns;
	s->untried_ns += untried_ns;
	space_member_see(m, s, true, now, MS);
}

static void test_untried_work_asks_for_a_trial(void **state)
{
	struct space_member m = { .weight = 1, .limit = 1 };
	struct space_seen seen = { 0 };

	see(&m, &seen, MS, MS); /* the base of differences */
	see(&m, &seen, MS, 0);
	assert_false(space_member_asks_for_trial(&m));
	see(&m, &seen, MS, MS);
	assert_true(space_member_asks_for_trial(&m));
	/* A rare kernel is not worth that others stand still for it. */
	for (int i = 0; i < 500; i++)
		see(&m, &seen, MS, MS / 50);
	assert_false(space_member_asks_for_trial(&m));
	/* More than the work that it is a part of: somebody's invention. */
	for (int i = 0; i < 100; i++)
		see(&m, &seen, MS, UINT64_MAX / 2);
	assert_true(m.sums.untried_ns <= m.sums.work_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_differences_hold_nobody_who_was_promised_nothing),
		cmocka_unit_test(test_a_promise_is_kept_to_the_point),
		cmocka_unit_test(test_large_differences_are_held_down),
		cmocka_unit_test(test_untried_work_asks_for_a_trial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
