/* Buckets of step lengths, and the report on recent steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/arbitrate/step_window.h"

#define MS NSEC_PER_MSEC
#define SECOND NSEC_PER_SEC

static struct step_counts counts;
static struct step_window window;
static uint64_t now_ns;

static int begin(void **state)
{
	counts = (struct step_counts){ 0 };
	now_ns = 7 * SECOND;
	step_window_init(&window, now_ns);
	return 0;
}

static void count(uint64_t ns)
{
	counts.bucket[step_bucket_of(ns)]++;
	counts.sum_ns += ns;
	counts.count++;
}

/* Consecutive steps, and the daemon's reads of them. */
static void run(unsigned steps, uint64_t ns)
{
	for (unsigned i = 0; i < steps; i++) {
		now_ns += ns;
		count(ns);
		step_window_read(&window, &counts, now_ns);
	}
}

static void rest(uint64_t ns)
{
	for (; ns; ns -= SECOND) {
		now_ns += SECOND;
		step_window_read(&window, &counts, now_ns);
	}
}

static struct step_figures figures(void)
{
	return step_window_figures(&window, &counts, now_ns);
}

static void check(double got, double wanted, double slack)
{
	if (got < wanted * (1 - slack) || got > wanted * (1 + slack))
		fail_msg("%g, wanted %g to %g", got, wanted, slack);
}

static void test_a_length_is_within_its_bucket(void **state)
{
	assert_int_equal(step_bucket_of(0), 0);
	assert_int_equal(step_bucket_of(UINT64_MAX), STEP_BUCKETS - 1);
	for (unsigned i = 0; i < STEP_BUCKETS; i++) {
		uint64_t from_ns = step_bucket_from_ns(i), to_ns = step_bucket_from_ns(i + 1);

		assert_int_equal(step_bucket_of(from_ns), i);
		assert_int_equal(step_bucket_of(to_ns - 1), i);
		assert_true(to_ns - from_ns <= from_ns / 8 || to_ns - from_ns == STEP_UNIT_NS);
	}
}

static void test_without_steps_nothing_is_known(void **state)
{
	rest(20 * SECOND);
	struct step_figures f = figures();
	assert_false(f.is_known);
	assert_int_equal(f.count, 0);
}

static void test_steps_of_one_length(void **state)
{
	run(2000, 10 * MS);
	struct step_figures f = figures();
	assert_true(f.is_known);
	check(f.per_second, 100, 0.01);
	check((double)f.p50_ns, 10 * MS, 0.07);
	check((double)f.p99_ns, 10 * MS, 0.07);
	assert_int_equal(f.count, 2000);
	assert_int_equal(f.sum_ns, 20 * SECOND);
}

static void test_a_percentile_is_what_so_many_are_below(void **state)
{
	/* One of 40 is ten times as long: beyond the median, within the last hundredth. */
	for (int i = 0; i < 20; i++) {
		run(39, 10 * MS);
		run(1, 100 * MS);
	}
	struct step_figures f = figures();
	check((double)f.p50_ns, 10 * MS, 0.07);
	check((double)f.p99_ns, 100 * MS, 0.07);

	/* One of 400 is not. */
	begin(NULL);
	run(399, 10 * MS);
	run(1, 100 * MS);
	check((double)figures().p99_ns, 10 * MS, 0.07);
}

static void test_what_several_processes_count_is_merged(void **state)
{
	/* Two at the same time, of which one has twice the other's steps. */
	for (int i = 0; i < 500; i++) {
		count(10 * MS);
		count(10 * MS);
		count(20 * MS);
		now_ns += 20 * MS;
		step_window_read(&window, &counts, now_ns);
	}
	struct step_figures f = figures();
	check(f.per_second, 150, 0.01);
	check((double)f.p50_ns, 10 * MS, 0.07);
	check((double)f.p99_ns, 20 * MS, 0.07);
}

static void test_what_was_before_is_forgotten_in_ten_seconds(void **state)
{
	run(2000, 10 * MS);
	run(220, 50 * MS);
	struct step_figures f = figures();
	check((double)f.p50_ns, 50 * MS, 0.07);
	check(f.per_second, 20, 0.02);
	rest(11 * SECOND);
	f = figures();
	assert_false(f.is_known);
	assert_int_equal(f.count, 2220);
}

/* Its figures would be there and gone by turns. */
static void test_few_steps_are_looked_at_for_longer(void **state)
{
	for (int i = 0; i < 12; i++) {
		rest(15 * SECOND);
		count(15 * SECOND);
		assert_true(figures().is_known);
		check((double)figures().p50_ns, 15 * SECOND, 0.07);
	}
	/* There are two to four in it, with one at its very end. */
	check(figures().per_second, 1 / 15.0, 0.51);
	rest(62 * SECOND);
	assert_false(figures().is_known);
}

/* The tenant may write any value. */
static void test_impossible_counts_do_no_harm(void **state)
{
	run(2000, 10 * MS);
	for (unsigned i = 0; i < STEP_BUCKETS; i++)
		counts.bucket[i] = UINT64_MAX - i;
	counts.count = UINT64_MAX;
	struct step_figures f = figures();
	assert_true(f.p50_ns <= step_bucket_from_ns(STEP_BUCKETS));
	assert_true(f.p99_ns >= f.p50_ns && f.p99_ns <= step_bucket_from_ns(STEP_BUCKETS));
	counts = (struct step_counts){ 0 };
	assert_false(figures().is_known);
	/* More steps than before, but in no bucket. */
	counts.count = UINT64_MAX;
	assert_false(figures().is_known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_length_is_within_its_bucket, begin),
		cmocka_unit_test_setup(test_without_steps_nothing_is_known, begin),
		cmocka_unit_test_setup(test_steps_of_one_length, begin),
		cmocka_unit_test_setup(test_a_percentile_is_what_so_many_are_below, begin),
		cmocka_unit_test_setup(test_what_several_processes_count_is_merged, begin),
		cmocka_unit_test_setup(test_what_was_before_is_forgotten_in_ten_seconds, begin),
		cmocka_unit_test_setup(test_few_steps_are_looked_at_for_longer, begin),
		cmocka_unit_test_setup(test_impossible_counts_do_no_harm, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
