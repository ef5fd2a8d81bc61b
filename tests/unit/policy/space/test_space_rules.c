/* Single rules of space.h: members of a card whose work goes on as the test says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/space/space.h"
#include "policy/space/space_trial.h"

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
		s->waits = wanted > allowed;
		s->paid_ns += step;
		s->work_ns += step;
		s->inflight_ns = 0;
		space_member_see(&t->member[i], s, t->now, MS);
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

static double lead(const struct table *t)
{
	return (double)t->seen[0].work_ns - (double)t->seen[1].work_ns;
}

/* The card does half as much again of both as of one, so its floor alone would hold nobody back for long. */
static void test_a_trial_is_paid_for_at_once(void **state)
{
	struct table t;

	run(&t, true, 0.75, 0.75);
	assert_true(fabs(lead(&t)) < 15 * MS);
	t.seen[0].is_tried = true;
	t.speed[0] = 1;
	for (int i = 0; i < 100; i++) {
		t.member[0].allowance_ns = SPACE_PLENTY_NS;
		t.member[1].allowance_ns = 0;
		look(&t);
	}
	assert_true(lead(&t) > 85 * MS);
	t.seen[0].is_tried = false;
	t.speed[0] = 0.75;
	for (int i = 0; i < 120; i++)
		look(&t);
	assert_true(fabs(lead(&t)) < 30 * MS);
}

/* Two at work, of which one has had `ahead_ns` more: whether it is held. */
static bool is_held_ahead(bool comes_first, double ahead_ns)
{
	struct space_member m[2] = { { .weight = 20, .limit = 1, .is_promised = true },
				     { .weight = 80, .limit = 1, .is_promised = true } };
	struct space_member *members[2] = { &m[0], &m[1] };
	struct space space = { 0 };
	struct space_seen seen = { .works = true, .is_paced = true };
	uint64_t now = 1000 * MS;

	m[0].comes_first = comes_first;
	for (int i = 0; i < 100; i++, now += MS) {
		seen.work_ns = seen.paid_ns += MS / 2;
		for (int k = 0; k < 2; k++)
			space_member_see(&m[k], &seen, now, MS);
		space_set_allowances(&space, members, 2, MS);
	}
	m[0].vtime = m[1].vtime + ahead_ns;
	space_set_allowances(&space, members, 2, 0);
	assert_true(space.is_scarce);
	return m[0].allowance_ns == 0;
}

static void test_who_comes_first_may_be_ahead(void **state)
{
	assert_false(is_held_ahead(false, 5 * MS));
	assert_true(is_held_ahead(false, 30 * MS));
	assert_false(is_held_ahead(true, 30 * MS));
	assert_true(is_held_ahead(true, 200 * MS));
}

static void see(struct space_member *m, struct space_seen *s, uint64_t work_ns, uint64_t untried_ns)
{
	static uint64_t now = 1000 * MS;

	now += MS;
	s->works = s->is_paced = true;
	s->paid_ns += work_ns;
	s->work_ns += work_ns;
	s->untried_ns += untried_ns;
	space_member_see(m, s, now, MS);
}

/* Two whose limits leave room for both, looked at seldom: how full the card can be is learned where somebody may be held, and only there. */
static void test_what_the_card_gives_is_learned_where_it_is_scarce(void **state)
{
	struct space_member m[2] = { { .weight = 1, .limit = 0.5 }, { .weight = 1, .limit = 0.5 } };
	struct space_member *members[2] = { &m[0], &m[1] };
	struct space space = { 0 };
	struct space_seen seen = { .works = true, .is_paced = true };
	uint64_t now = 1000 * MS;

	for (int i = 0; i < 100; i++, now += 50 * MS) {
		seen.work_ns += 20 * MS;
		seen.paid_ns += 20 * MS;
		for (int k = 0; k < 2; k++)
			space_member_see(&m[k], &seen, now, 50 * MS);
		space_set_allowances(&space, members, 2, 50 * MS);
		assert_false(space.is_scarce);
		assert_true(fabs(space.gives - 1) < 1e-9);
	}
}

static void test_untried_work_asks_for_a_trial(void **state)
{
	struct space_member m = { .weight = 1,
				  .limit = 1,
				  .speed = { .for_ns = 1e9, .done_ns = 1e9 } };
	struct space_seen seen = { 0 };
	uint64_t now = 1500 * MS; /* so its speed was known a short time ago */

	see(&m, &seen, MS, MS); /* the base of differences */
	see(&m, &seen, MS, 0);
	assert_false(space_member_asks_for_trial(&m, true, now));
	see(&m, &seen, MS, MS);
	assert_true(space_member_asks_for_trial(&m, true, now));
	/* A rare kernel is not worth that others stand still for it. */
	for (int i = 0; i < 500; i++)
		see(&m, &seen, MS, MS / 50);
	assert_false(space_member_asks_for_trial(&m, true, now));
	/* More than the work that it is a part of: somebody's invention. */
	for (int i = 0; i < 100; i++)
		see(&m, &seen, MS, UINT64_MAX / 2);
	assert_true(m.sums.untried_ns <= m.sums.work_ns);
}

/* A few new kernels are no reason to begin anew; many are. */
static void test_what_is_learned_stays_so(void **state)
{
	struct space_member m = { .weight = 1, .limit = 1 };
	struct space_seen seen = { 0 };

	for (int i = 0; i < 2000; i++)
		see(&m, &seen, MS, MS / 5);
	assert_false(m.is_learned);
	for (int i = 0; i < 2000; i++)
		see(&m, &seen, MS, 0);
	assert_true(m.is_learned);
	for (int i = 0; i < 2000; i++)
		see(&m, &seen, MS, MS / 5);
	assert_true(m.is_learned);
	for (int i = 0; i < 2000; i++)
		see(&m, &seen, MS, MS / 2);
	assert_false(m.is_learned);
}

/* Pieces end every 500 us, each of which is told to be `told` times as long, and a launch is seen half counted; from 20 ms on it is alone. */
static struct space_member try_alone(double told, bool is_tried)
{
	struct space_member m = { .weight = 1, .limit = 1 };
	struct space_seen s = { .works = true, .is_paced = true };
	uint64_t now = 1000 * MS, piece = (uint64_t)(told * (double)(MS / 2));

	for (int i = 0; i < 20000; i++, now += MS / 10) {
		s.is_tried = is_tried && i >= 200;
		s.inflight_ns = 4 * piece;
		if (i % 5 == 0)
			s.work_ns += piece;
		else if (i % 5 == 2)
			s.inflight_ns += piece;
		s.paid_ns = s.work_ns;
		space_member_see(&m, &s, now, MS / 10);
	}
	return m;
}

static void test_a_trial_tells_what_is_told_of_alone(void **state)
{
	static const double told[] = { 0.5, 1, 3, 8 };

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		struct space_member m = try_alone(told[i], true);

		assert_true(fabs(m.speed.done_ns / m.speed.for_ns / told[i] - 1) < 0.01);
		assert_false(space_member_asks_for_trial(&m, false, 2000 * MS));
		/* So it has done no more, and no less, than the time allows for. */
		assert_true(fabs(m.sums.begun_ns / m.sums.work_ns * told[i] - 1) < 0.03);
	}
	assert_true(space_member_asks_for_trial(&(struct space_member){ .weight = 1, .limit = 1 },
						false, 0));
	assert_true(try_alone(3, false).speed.for_ns <= 0);
}

/* Trials of 30 ms of a program whose streams end in two groups, one `after` the other in a period of 4.57 ms; seen each 100 us. */
static double speed_of_groups(double first, double second, uint64_t after, bool is_late)
{
	struct space_speed speed = { 0 };
	const uint64_t period = 4570000, look_ns = MS / 10;
	uint64_t now = 1000 * MS, ended[2] = { 0, 0 };

	for (int trial = 0; trial < 8; trial++) {
		uint64_t begun = now, last = now;

		for (unsigned looks = 1; now - begun < 30 * MS; looks++) {
			struct space_speed_seen seen = { .is_tried = true, .works = true };

			now += look_ns;
			if (is_late && looks % 10 < 5)
				continue; /* the daemon had no CPU */
			for (int k = 0; k < 2; k++) {
				uint64_t n = (now - begun + period - (k ? after : 0)) / period;

				seen.done_ns += (double)(n - ended[k]) * (k ? second : first) * 1e6;
				ended[k] = n;
			}
			space_speed_see(&speed, &seen, now, now - last);
			last = now;
		}
		ended[0] = ended[1] = 0;
		space_speed_see(&speed, &(struct space_speed_seen){ 0 }, now, look_ns);
		now += 100 * MS + (uint64_t)trial * MS / 3;
	}
	assert_true(space_speed_is_known(&speed));
	return space_speed(&speed) / ((first + second) * 1e6 / (double)period);
}

/* From the first end to the last one it would be up to a tenth too much, or too little. */
static void test_streams_that_are_not_in_step(void **state)
{
	for (uint64_t after = 1200000; after < 4000000; after += 100000) {
		assert_true(fabs(speed_of_groups(4, 4, after, false) - 1) < 0.025);
		assert_true(fabs(speed_of_groups(2, 6, after, false) - 1) < 0.025);
		assert_true(fabs(speed_of_groups(7, 1, after, false) - 1) < 0.025);
	}
	/* Looks that come late say what was done, and not when. */
	assert_true(fabs(speed_of_groups(4, 4, 2000000, true) - 1) < 0.04);
}

/* While its lengths were being learned it was told of half as much in the same time: once they are known that is soon forgotten. */
static void test_what_was_seen_while_learning_is_soon_forgotten(void **state)
{
	struct space_member m = { .weight = 1, .limit = 1 };
	struct space_seen s = { .works = true, .is_paced = true, .is_tried = true };
	uint64_t now = 1000 * MS;

	for (int i = 0; i < 10000; i++, now += MS / 10) {
		bool learns = i < 5000;

		if (i % 5 == 0) {
			s.work_ns += learns ? MS : 2 * MS;
			s.untried_ns += learns ? MS : 0;
		}
		s.paid_ns = s.work_ns;
		space_member_see(&m, &s, now, MS / 10);
		if (i == 4999) {
			assert_false(m.is_learned);
			assert_true(fabs(space_speed(&m.speed) / 2 - 1) < 0.02);
		}
	}
	assert_true(m.is_learned);
	assert_true(fabs(space_speed(&m.speed) / 4 - 1) < 0.01);
}

/* For a minute everybody asks; the others' work takes a while to end. */
static void test_trials_keep_to_their_budget(void **state)
{
	enum { MEMBERS = 3, SECONDS = 60 };
	struct space_trials trials = space_trials_new(1000 * MS);
	struct space_trial_seen seen[MEMBERS];
	uint64_t now = 1000 * MS, most, drained_at = 0, ran[MEMBERS] = { 0 }, steps = 0;

	for (int i = 0; i < MEMBERS; i++)
		space_trials_came(&trials);
	for (; now < (1000 + SECONDS * 1000) * MS; now += MS / 4, steps++) {
		if (trials.whose == SPACE_TRIAL_NOBODY)
			drained_at = now + 6 * MS;
		for (int i = 0; i < MEMBERS; i++)
			seen[i] = (struct space_trial_seen){
				.who = i,
				.may = true,
				.asks = true,
				.works = trials.whose == SPACE_TRIAL_NOBODY || trials.whose == i ||
					 now < drained_at,
				.tried_ns = ran[i],
			};
		space_trials_step(&trials, seen, MEMBERS, now, MS / 4);
		if (trials.runs)
			ran[trials.whose] += MS / 4;
	}
	most = MEMBERS * SPACE_TRIAL_FIRST_NS + SECONDS * 10 * MS + SPACE_TRIAL_MOST_NS;
	assert_true(trials.spent_ns <= most);
	assert_true(trials.spent_ns > most / 2);
	for (int i = 0; i < MEMBERS; i++)
		assert_true(ran[i] > 60 * MS);
}

/* One that went away before its trial told anything has the next one, though another asks as well. */
static void test_who_was_tried_least_is_next(void **state)
{
	struct space_trials trials = space_trials_new(0);
	struct space_trial_seen seen[] = {
		{ .who = 0, .may = true, .asks = true, .tried_ns = 40 * MS },
		{ .who = 1, .may = true, .asks = true }
	};
	uint64_t now = 0;

	space_trials_came(&trials);
	for (; trials.whose == SPACE_TRIAL_NOBODY; now += MS)
		space_trials_step(&trials, seen, 2, now, MS);
	assert_int_equal(trials.whose, 1);
	seen[1].may = false;
	space_trials_step(&trials, seen, 2, now, MS);
	assert_int_equal(trials.whose, SPACE_TRIAL_NOBODY);
	seen[1].may = true;
	for (; trials.whose == SPACE_TRIAL_NOBODY; now += MS)
		space_trials_step(&trials, seen, 2, now, MS);
	assert_int_equal(trials.whose, 1);
	space_trials_step(&trials, seen, 2, now, MS);
	for (; trials.whose == 1; now += MS)
		space_trials_step(&trials, seen, 2, now, MS);
	seen[1].tried_ns = 60 * MS;
	for (; trials.whose == SPACE_TRIAL_NOBODY; now += MS)
		space_trials_step(&trials, seen, 2, now, MS);
	assert_int_equal(trials.whose, 0);
}

/* Nobody asks, or one has just come: nobody is held. One whose neighbours don't stop is no trial. */
static void test_trials_that_are_none(void **state)
{
	struct space_trials trials = space_trials_new(0);
	struct space_trial_seen seen[2] = { { .who = 0, .may = true, .asks = true, .works = true },
					    { .who = 1, .may = true, .works = true } };
	uint64_t now = 0;

	space_trials_came(&trials);
	seen[1].came_at = 150 * MS;
	for (; now < 200 * MS; now += MS)
		space_trials_step(&trials, seen, 2, now, MS);
	assert_int_equal(trials.whose, SPACE_TRIAL_NOBODY);
	for (; now < 212 * MS; now += MS)
		space_trials_step(&trials, seen, 2, now, MS);
	assert_int_equal(trials.whose, 0);
	for (; now < 230 * MS; now += MS) {
		space_trials_step(&trials, seen, 2, now, MS);
		assert_false(trials.runs);
	}
	assert_int_equal(trials.whose, SPACE_TRIAL_NOBODY);
	seen[0].asks = false;
	for (; now < 4000 * MS; now += MS) {
		space_trials_step(&trials, seen, 2, now, MS);
		assert_int_equal(trials.whose, SPACE_TRIAL_NOBODY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_differences_hold_nobody_who_was_promised_nothing),
		cmocka_unit_test(test_a_promise_is_kept_to_the_point),
		cmocka_unit_test(test_large_differences_are_held_down),
		cmocka_unit_test(test_a_trial_is_paid_for_at_once),
		cmocka_unit_test(test_who_comes_first_may_be_ahead),
		cmocka_unit_test(test_what_the_card_gives_is_learned_where_it_is_scarce),
		cmocka_unit_test(test_untried_work_asks_for_a_trial),
		cmocka_unit_test(test_what_is_learned_stays_so),
		cmocka_unit_test(test_a_trial_tells_what_is_told_of_alone),
		cmocka_unit_test(test_streams_that_are_not_in_step),
		cmocka_unit_test(test_what_was_seen_while_learning_is_soon_forgotten),
		cmocka_unit_test(test_trials_keep_to_their_budget),
		cmocka_unit_test(test_who_was_tried_least_is_next),
		cmocka_unit_test(test_trials_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
