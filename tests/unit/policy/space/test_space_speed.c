/* How fast a program is, as its trials tell: programs whose rate is known go through trials of 100 us looks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/space/space_speed.h"
#include "policy/space/space_trial.h"

#define MS UINT64_C(1000000)
#define LOOK_NS (MS / 10)

/* It does one part of a step after the other, each at a rate of its own; 0: it rests. */
struct program {
	struct {
		double ms, rate; /* told of in a nanosecond */
	} part[3];
	uint64_t at; /* in its step, ns */
	bool waits;  /* for all of it at the end of a step */
};

static double step_ms(const struct program *p)
{
	return p->part[0].ms + p->part[1].ms + p->part[2].ms;
}

static double rate_of(const struct program *p)
{
	double sum = 0;

	for (int i = 0; i < 3; i++)
		sum += p->part[i].ms * p->part[i].rate;
	return sum / step_ms(p);
}

/* Its rate now; goes on by a look. */
static double go_on(struct program *p)
{
	double at_ms = (double)p->at / 1e6;
	int i = 0;

	p->at = (p->at + LOOK_NS) % (uint64_t)(step_ms(p) * 1e6);
	for (; i < 2 && at_ms >= p->part[i].ms; i++)
		at_ms -= p->part[i].ms;
	return p->part[i].rate;
}

/* One trial, which ends when it is clear, or at the latest as trials do. Returns how long it took. */
static uint64_t try_once(struct space_speed *speed, struct program *p, uint64_t *now, bool learns)
{
	uint64_t begun = *now;

	do {
		uint64_t before = p->at;
		double rate = go_on(p);
		struct space_speed_seen seen = { .is_tried = true,
						 .learns = learns,
						 .works = rate > 0,
						 .done_ns = rate * (double)LOOK_NS,
						 .begun_ns = rate * (double)LOOK_NS,
						 .rests = p->waits && p->at < before };

		*now += LOOK_NS;
		space_speed_see(speed, &seen, *now, LOOK_NS);
	} while (*now - begun < SPACE_TRIAL_NS ||
		 (!space_speed_is_clear(speed) && *now - begun < SPACE_TRIAL_MOST_NS));
	begun = *now - begun;
	*now += LOOK_NS;
	space_speed_see(speed, &(struct space_speed_seen){ 0 }, *now, LOOK_NS);
	*now += 200 * MS;
	return begun;
}

static void test_a_steady_one_is_known_soon(void **state)
{
	struct program p = { .part = { { 10, 2 } } };
	struct space_speed speed = { 0 };
	uint64_t now = 1000 * MS;

	try_once(&speed, &p, &now, false);
	assert_true(fabs(space_speed(&speed) / 2 - 1) < 0.005);
	for (int i = 0; i < 5; i++)
		assert_true(try_once(&speed, &p, &now, false) == SPACE_TRIAL_NS);
	assert_true(fabs(space_speed(&speed) / 2 - 1) < 0.005);
	assert_false(space_speed_wants_trials(&speed, false));
}

/* Its speed is another one by now: the next trial says so, and goes on until that is sure. */
static void test_a_change_is_found_out(void **state)
{
	struct program p = { .part = { { 10, 2 } } };
	struct space_speed speed = { 0 };
	uint64_t now = 1000 * MS;

	for (int i = 0; i < 3; i++)
		try_once(&speed, &p, &now, false);
	p.part[0].rate = 2.4;
	assert_true(try_once(&speed, &p, &now, false) == SPACE_TRIAL_MOST_NS);
	for (int i = 0; i < 3; i++)
		try_once(&speed, &p, &now, false);
	assert_true(fabs(space_speed(&speed) / 2.4 - 1) < 0.03);
}

/* A training whose layers overlap forwards: of 30 ms nothing follows for a step of 22. */
static void test_phases_of_a_step(void **state)
{
	for (int phase = 0; phase < 22; phase++) {
		struct program p = { .part = { { 15, 3 }, { 7, 1.2 } }, .at = (uint64_t)phase * MS };
		struct space_speed speed = { 0 };
		uint64_t now = 1000 * MS;

		for (int i = 0; i < 3; i++) {
			p.at = (p.at + (uint64_t)i * 7 * MS) % (22 * MS);
			assert_true(try_once(&speed, &p, &now, false) > 2 * SPACE_TRIAL_NS);
		}
		assert_true(fabs(space_speed(&speed) / rate_of(&p) - 1) < 0.02);
	}
}

/* What a step takes for its end is a part of it; a pause is not. */
static void test_short_rests_count(void **state)
{
	struct program steps = { .part = { { 18.5, 1 }, { 1.5, 0 } } },
		       requests = { .part = { { 20, 1.5 }, { 8, 0 } } };
	struct space_speed speed = { 0 };
	uint64_t now = 1000 * MS;

	for (int i = 0; i < 3; i++)
		try_once(&speed, &steps, &now, false);
	assert_true(fabs(space_speed(&speed) / rate_of(&steps) - 1) < 0.02);
	speed = (struct space_speed){ 0 };
	for (int i = 0; i < 3; i++)
		try_once(&speed, &requests, &now, false);
	assert_true(fabs(space_speed(&speed) / 1.5 - 1) < 0.02);
}

/* While lengths are learned little is in flight, and it looks slow: it goes by that until one trial has told more. */
static void test_what_was_learned_in_is_left_behind(void **state)
{
	struct program p = { .part = { { 10, 1.8 } } };
	struct space_speed speed = { 0 };
	uint64_t now = 1000 * MS;

	for (int i = 0; i < 10; i++)
		assert_true(try_once(&speed, &p, &now, true) == SPACE_TRIAL_NS);
	assert_true(fabs(space_speed(&speed) / 1.8 - 1) < 0.01);
	assert_true(space_speed_wants_trials(&speed, false));
	p.part[0].rate = 2.2;
	try_once(&speed, &p, &now, false);
	assert_true(fabs(space_speed(&speed) / 2.2 - 1) < 0.01);
}

/* They are known in the middle of a trial: what follows is not taken for how it runs. */
static void test_lengths_are_known_in_a_trial(void **state)
{
	struct space_speed_seen seen = { .is_tried = true, .learns = true, .works = true };
	struct space_speed speed = { 0 };
	uint64_t now = 1000 * MS;

	for (; now < 1070 * MS; now += LOOK_NS) {
		seen.learns = now < 1040 * MS;
		seen.done_ns = (seen.learns ? 1.8 : 1.0) * (double)LOOK_NS;
		space_speed_see(&speed, &seen, now, LOOK_NS);
		assert_true(space_speed_is_clear(&speed));
	}
	space_speed_see(&speed, &(struct space_speed_seen){ 0 }, now, LOOK_NS);
	assert_true(fabs(space_speed(&speed) / 1.8 - 1) < 0.01);
	assert_true(space_speed_wants_trials(&speed, false));
}

/* Its group's turns are shorter than any line: the trial does not wait for one. */
static void test_turns_cut_lines(void **state)
{
	struct space_speed speed = { 0 };
	uint64_t now = 1000 * MS, in_trial = 0;

	while (in_trial < SPACE_TRIAL_NS) {
		bool is_ours = now / MS % 16 < 8;
		struct space_speed_seen seen = { .is_tried = true,
						 .works = is_ours,
						 .done_ns = is_ours ? 3.0 * (double)LOOK_NS : 0 };

		now += LOOK_NS;
		in_trial += is_ours ? LOOK_NS : 0;
		space_speed_see(&speed, &seen, now, is_ours ? LOOK_NS : 0);
	}
	assert_true(space_speed_is_clear(&speed));
	space_speed_see(&speed, &(struct space_speed_seen){ 0 }, now, LOOK_NS);
	assert_true(fabs(space_speed(&speed) / 3 - 1) < 0.03);
}

/* What is about as long as it takes is so long, as far as looks tell; but whole steps tell more. */
static void test_steps_tell_of_one_in_a_hundred(void **state)
{
	struct program p = { .part = { { 25, 1.014 } } };
	struct space_speed by_line = { 0 }, by_steps = { 0 };
	uint64_t now = 1000 * MS;

	try_once(&by_line, &p, &now, false);
	assert_true(space_speed(&by_line) == 1);
	p.waits = true;
	for (int i = 0; i < 2; i++) {
		try_once(&by_steps, &p, &now, false);
		assert_true(fabs(space_speed(&by_steps) / 1.014 - 1) < 0.003);
	}
}

/* A transformer's: what was told of the same steps by longer lengths is no part of its speed. */
static void test_lengths_get_better(void **state)
{
	const double told[] = { 1.03, 1.003, 0.976, 0.961 };
	struct program p = { .part = { { 19, 0 } }, .waits = true };
	struct space_speed speed = { 0 };
	uint64_t now = 1000 * MS;

	for (int i = 0; i < 4; i++) {
		p.part[0].rate = told[i];
		try_once(&speed, &p, &now, false);
	}
	assert_true(fabs(space_speed(&speed) / 0.961 - 1) < 0.003);
}

/* Steps beside others, each told of as so much, by looks that see some of the next: the last of each tells of the rest. */
static void run_beside_others(struct space_speed *speed, uint64_t *now, double told_ms, int steps,
			      int seen_each)
{
	for (int look = 1; look <= steps * 40; look++) {
		struct space_speed_seen seen = { .works = true,
						 .begun_ns = told_ms * 1e6 / 40,
						 .rests = look % (40 * seen_each) == look / 40 % 3 };

		*now += MS;
		space_speed_see(speed, &seen, *now, MS);
	}
}

/* Lengths that get better after its last trial are not less work. */
static void test_lengths_change_beside_others(void **state)
{
	struct program p = { .part = { { 19, 0.995 } }, .waits = true };
	uint64_t now = 1000 * MS;

	for (int seen_each = 1; seen_each <= 3; seen_each++) {
		struct space_speed speed = { 0 };

		for (int i = 0; i < 2; i++)
			try_once(&speed, &p, &now, false);
		assert_true(fabs(space_speed(&speed) / 0.995 - 1) < 0.003);
		run_beside_others(&speed, &now, 0.961 * 19, 300, seen_each);
		assert_true(fabs(space_speed(&speed) / 0.961 - 1) < 0.005);
		/* Other steps tell nothing, nor do rests in the middle of them. */
		run_beside_others(&speed, &now, 1.3 * 19, 50, seen_each);
		run_beside_others(&speed, &now, 0.2 * 19, 50, 1);
		assert_true(fabs(space_speed(&speed) / 0.961 - 1) < 0.01);
	}
}

/* Steps of another length are those of another program: it is not known at once how fast that is. */
static void test_other_steps_are_no_better_lengths(void **state)
{
	struct program p = { .part = { { 20, 2 } }, .waits = true };
	struct space_speed speed = { 0 };
	uint64_t now = 1000 * MS;

	for (int i = 0; i < 6; i++)
		try_once(&speed, &p, &now, false);
	p.part[0].ms = 15;
	p.part[0].rate = 1.6;
	try_once(&speed, &p, &now, false);
	assert_true(space_speed(&speed) > 1.65 && space_speed(&speed) < 1.95);
	for (int i = 0; i < 30; i++)
		try_once(&speed, &p, &now, false);
	assert_true(fabs(space_speed(&speed) / 1.6 - 1) < 0.01);
}

/* Whose trials tell the same again and again is tried seldomer; who has changed is not. */
static void test_who_stays_as_he_is_has_peace(void **state)
{
	struct program p = { .part = { { 10, 2 } } };
	struct space_speed speed = { 0 };
	uint64_t now = 1000 * MS;

	try_once(&speed, &p, &now, false);
	assert_true(space_speed_is_stale(&speed, speed.tried_at + 1501 * MS));
	for (int i = 0; i < 3; i++)
		try_once(&speed, &p, &now, false);
	assert_false(space_speed_is_stale(&speed, speed.tried_at + 5999 * MS));
	assert_true(space_speed_is_stale(&speed, speed.tried_at + 6001 * MS));
	for (int i = 0; i < 9; i++)
		try_once(&speed, &p, &now, false);
	assert_true(space_speed_is_stale(&speed, speed.tried_at + 10001 * MS));
	p.part[0].rate = 2.4;
	try_once(&speed, &p, &now, false);
	assert_true(space_speed_is_stale(&speed, speed.tried_at + 1501 * MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_steady_one_is_known_soon),
		cmocka_unit_test(test_a_change_is_found_out),
		cmocka_unit_test(test_phases_of_a_step),
		cmocka_unit_test(test_short_rests_count),
		cmocka_unit_test(test_what_was_learned_in_is_left_behind),
		cmocka_unit_test(test_lengths_are_known_in_a_trial),
		cmocka_unit_test(test_turns_cut_lines),
		cmocka_unit_test(test_steps_tell_of_one_in_a_hundred),
		cmocka_unit_test(test_lengths_get_better),
		cmocka_unit_test(test_lengths_change_beside_others),
		cmocka_unit_test(test_other_steps_are_no_better_lengths),
		cmocka_unit_test(test_who_stays_as_he_is_has_peace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
