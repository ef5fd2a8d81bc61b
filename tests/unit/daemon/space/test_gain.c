/* What tenants would gain side by side, what they did, and when that is enough; and what a program is known by. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/space/programs.h"

#define NOW INT64_C(1800000000)
#define LEAST 0.1

static void assert_near(double got, double meant)
{
	if (!(fabs(got - meant) < 0.01))
		fail_msg("%.3f, not %.3f", got, meant);
}

/* Of a program that is busy for so much of the time and fills so much of the card's. */
static struct gain_record uses(double busy, double filled)
{
	return (struct gain_record){ .busy_s = 20 * busy,
				     .pause_s = 20 * (1 - busy),
				     .filled_s = 20 * filled };
}

static struct gain_record measured(double gain)
{
	return (struct gain_record){ .done_s = 20 * (1 + gain),
				     .turns_s = 20,
				     .measured_at_s = NOW - 60 };
}

static struct gain_verdict beside(const struct gain_record *self, const struct gain_record *other)
{
	return gain_judge(self, &other, 1, LEAST, NOW);
}

static void test_expected(void **state)
{
	static const struct {
		double busy[2], filled[2], gain;
	} cases[] = {
		{ { 1, 1 }, { 1, 1 }, 0 },          /* each fills the card */
		{ { 1, 1 }, { 0.3, 0.3 }, 1 },      /* neither is in the other's way */
		{ { 1, 1 }, { 0.75, 0.75 }, 0.33 }, /* a little */
		{ { 1, 1 }, { 1, 0.25 }, 0.6 },
		{ { 0.4, 0.4 }, { 0.1, 0.1 }, 0 }, /* turns leave nothing undone */
		{ { 0.7, 0.7 }, { 0.7, 0.7 }, 0 },
		{ { 0.7, 0.7 }, { 0.2, 0.2 }, 0.4 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gain_record a = uses(cases[i].busy[0], cases[i].filled[0]);
		struct gain_record b = uses(cases[i].busy[1], cases[i].filled[1]);
		struct gain_verdict v = beside(&a, &b);
		assert_int_equal(v.source, GAIN_EXPECTED);
		assert_near(v.gain, cases[i].gain);
		assert_int_equal(v.is_enough, cases[i].gain >= LEAST);
	}
}

/* The first of a group is judged by what one more like it would bring; beside somebody unknown nothing is. */
static void test_whom_it_joins(void **state)
{
	struct gain_record small = uses(1, 0.4), full = uses(1, 1), none = { 0 };
	const struct gain_record *two[] = { &small, &full }, *gap[] = { &small, NULL };
	struct gain_verdict v = gain_judge(&small, NULL, 0, LEAST, NOW);
	assert_int_equal(v.source, GAIN_EXPECTED);
	assert_near(v.gain, 1);
	assert_false(gain_judge(&full, NULL, 0, LEAST, NOW).is_enough);
	v = gain_judge(&small, two, 2, LEAST, NOW);
	assert_near(v.gain, 3 / 1.8 - 1);
	assert_int_equal(gain_judge(&small, gap, 2, LEAST, NOW).source, GAIN_UNKNOWN);
	assert_int_equal(beside(&small, &none).source, GAIN_UNKNOWN);
	assert_int_equal(beside(&none, &small).source, GAIN_UNKNOWN);
}

/* What was measured goes before what is expected, for as long as it is not old. */
static void test_measured(void **state)
{
	struct gain_record r = measured(0.02), small = uses(1, 0.3);
	r.busy_s = 20;
	r.filled_s = 6;
	struct gain_verdict v = beside(&r, &small);
	assert_int_equal(v.source, GAIN_MEASURED);
	assert_near(v.gain, 0.02);
	assert_false(v.is_enough);
	r.measured_at_s = NOW - GAIN_MEASURED_FOR_S - 1;
	v = beside(&r, &small);
	assert_int_equal(v.source, GAIN_EXPECTED);
	assert_true(v.is_enough);
	/* What is forgotten does not come back with the next measure. */
	gain_add_measured(&r, 10, 5, NOW);
	assert_true(gain_measured(&r, NOW, &v.gain));
	assert_near(v.gain, 1);
	/* A moment says nothing. */
	r = (struct gain_record){ .done_s = 4, .turns_s = 2, .measured_at_s = NOW };
	assert_int_equal(gain_judge(&r, NULL, 0, LEAST, NOW).source, GAIN_UNKNOWN);
}

/* At the border it stays where it is, whatever it is measured at from start to start. */
static void test_no_flapping(void **state)
{
	bool takes_turns = false;
	int changes = 0;
	for (int i = 0; i < 40; i++) {
		struct gain_record r = measured(i % 2 ? 0.115 : 0.095);
		r.takes_turns = takes_turns;
		bool is_space = gain_judge(&r, NULL, 0, LEAST, NOW).is_enough;
		changes += is_space == takes_turns;
		takes_turns = !is_space;
	}
	assert_int_equal(changes, 1);
	struct gain_record r = measured(0.2);
	r.takes_turns = true;
	assert_true(gain_judge(&r, NULL, 0, LEAST, NOW).is_enough);
}

/* Old work counts less and less; what comes in many small parts counts as it would in one. */
static void test_fading(void **state)
{
	struct gain_record r = { 0 }, other = uses(1, 1);
	for (int i = 0; i < 600; i++)
		gain_add_demand(&r, 0.5, 0.5, 0.5);
	assert_near(r.filled_s / (r.busy_s + r.pause_s), 0.5);
	for (int i = 0; i < 600; i++)
		gain_add_demand(&r, 1, 0, 0.2);
	assert_near(beside(&r, &other).gain, 2 / 1.2 - 1);
	struct gain_record parts = { 0 }, whole = { 0 };
	for (int i = 0; i < 100; i++)
		gain_add_measured(&parts, 0.15, 0.1, NOW);
	gain_add_measured(&whole, 15, 10, NOW);
	double a = 0, b = 0;
	assert_true(gain_measured(&parts, NOW, &a) && gain_measured(&whole, NOW, &b));
	assert_near(a, b);
	/* No time at all is nothing, and no division by it. */
	gain_add_measured(&whole, 5, 0, NOW);
	assert_true(gain_measured(&whole, NOW, &a));
	assert_near(a, b);
}

static void test_keys(void **state)
{
	static const struct {
		const char *namespace_name, *name, *key;
	} cases[] = {
		{ "ml", "ml.web-7d9f4c8b5-x2x7k.main", "namespace/ml/ml.web.main" },
		{ "ml", "ml.train-zx9c4.main", "namespace/ml/ml.train.main" },
		{ "ml", "ml.db-0.main", "namespace/ml/ml.db-0.main" },
		{ "ml", "ml.train-mnist.main-0a1b2c3d", "namespace/ml/ml.train-mnist.main" },
		{ "", "train-zx9c4", "user/7/train-zx9c4" },
		{ "", "sweep", "user/7/sweep" },
	};
	char key[PROGRAM_KEY_MAX], again[PROGRAM_KEY_MAX];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		program_key(cases[i].namespace_name, 7, cases[i].name, 0, key);
		assert_string_equal(key, cases[i].key);
	}
	/* One that nobody named: by its command. */
	program_key("", 7, "p123", getpid(), key);
	program_key("", 7, "p456", getpid(), again);
	assert_string_equal(key, again);
	assert_memory_equal(key, "user/7/command/", strlen("user/7/command/"));
	program_key("", 7, "p1", 1, again);
	assert_string_not_equal(key, again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expected), cmocka_unit_test(test_whom_it_joins),
		cmocka_unit_test(test_measured), cmocka_unit_test(test_no_flapping),
		cmocka_unit_test(test_fading),   cmocka_unit_test(test_keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
