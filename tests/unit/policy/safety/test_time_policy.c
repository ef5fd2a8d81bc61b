#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "policy/safety/time_policy.h"

#define MS UINT64_C(1000000)

static uint64_t likely_found_after_ns(double certain, double likely, double peak)
{
	struct time_account unpaid = { 0 };
	for (unsigned i = 1; i <= 10000; i++) {
		const struct time_reading reading = { 500 * MS, peak, certain, likely };
		if (time_is_over(&unpaid, &reading))
			return i * 500 * MS;
	}
	return 0;
}

/* Returns the time after which a tenant with such readings, each half a second after the last, is in violation; 0: never. */
static uint64_t found_after_ns(double certain, double peak)
{
	return likely_found_after_ns(certain, 0, peak);
}

static void test_likely_time_takes_long_to_be_found(void **state)
{
	assert_int_equal(likely_found_after_ns(0, 1, 0.5), 25000 * MS);
	assert_int_equal(likely_found_after_ns(0, 0.6, 0.5), 0);
	assert_int_equal(likely_found_after_ns(1, 1, 0), 1000 * MS);
}

/* For twenty seconds, each sample counts for the same of two tenants, though each works half of the time. */
static void test_turns_in_the_rhythm_of_the_samples(void **state)
{
	struct time_account unpaid = { 0 };
	for (unsigned i = 0; i < 10000; i++) {
		double likely = i % 80 < 40 ? 1 : 0;
		const struct time_reading reading = { 500 * MS, 0.5, 0, likely };
		assert_false(time_is_over(&unpaid, &reading));
	}
}

static void test_work_that_is_not_charged(void **state)
{
	assert_int_equal(found_after_ns(1, 0), 1000 * MS);
	assert_int_equal(found_after_ns(0.5, 0), 1500 * MS);
	assert_int_equal(found_after_ns(0.48, 0.1), 2000 * MS);
	assert_true(found_after_ns(0.2, 0.05) > 0);
}

/* Work that is charged in full, but that the tenant might not begin, is found like work that is not charged. */
static void test_unauthorized_work(void **state)
{
	struct time_reading reading = { .passed_ns = 500 * MS,
					.peak = 0.5,
					.certain = 0.5,
					.likely = 0.5,
					.charged = 0.4,
					.unauthorized = 0.4 };
	struct time_account unpaid = { 0 };
	unsigned readings = 1;
	assert_true(time_paid(&reading) == 0);
	while (!time_is_over(&unpaid, &reading))
		readings++;
	assert_int_equal(readings, 3);
	reading.unauthorized = 0.1;
	assert_true(time_paid(&reading) > 0.37 && time_paid(&reading) < 0.38);
	reading.unauthorized = 0;
	assert_true(time_paid(&reading) >= 0.5);
	reading = (struct time_reading){ .peak = 0.5, .unauthorized = 0.1 };
	assert_true(time_paid(&reading) == 0);
}

static void test_charged_work_is_no_violation(void **state)
{
	assert_int_equal(found_after_ns(1, 1), 0);
	assert_int_equal(found_after_ns(0.55, 0.5), 0);
	assert_int_equal(found_after_ns(0.1, 0), 0);
	assert_int_equal(found_after_ns(0, 0), 0);
}

/* A sample with a large error, or one late charge, is outweighed by the readings around it. */
static void test_one_wrong_sample_is_no_violation(void **state)
{
	struct time_account unpaid = { 0 };
	for (unsigned i = 0; i < 10000; i++) {
		const struct time_reading reading = { 500 * MS, 0.5, i % 10 ? 0.5 : 1, 0 };
		assert_false(time_is_over(&unpaid, &reading));
	}
}

static void test_a_long_pause_between_looks_counts_little(void **state)
{
	struct time_account unpaid = { 0 };
	const struct time_reading reading = { 3600000 * MS, 0.4, 0.7, 0.7 };
	assert_false(time_is_over(&unpaid, &reading));
}

/* A tenant that stays in violation is so at each reading that shows unpaid time. */
static void test_a_tenant_that_has_stopped_is_not_over_for_long(void **state)
{
	struct time_account unpaid = { 0 };
	const struct time_reading cheats = { 500 * MS, 0, 1, 1 }, idles = { 500 * MS, 0, 0, 0 };
	for (unsigned i = 0; i < 1000; i++)
		time_is_over(&unpaid, &cheats);
	assert_true(time_is_over(&unpaid, &cheats));
	assert_false(time_is_over(&unpaid, &idles));
	for (unsigned i = 0; i < 20; i++)
		time_is_over(&unpaid, &idles);
	const struct time_reading once = { 500 * MS, 0, 0.3, 0.3 };
	assert_false(time_is_over(&unpaid, &once));
}

static void test_unexplained(void **state)
{
	assert_true(time_unexplained(1, 1) == 0);
	assert_true(time_unexplained(1, 0.95) == 0);
	assert_true(time_unexplained(1, 1.8) == 0);
	assert_true(time_unexplained(1, 0.5) > 0.49);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work_that_is_not_charged),
		cmocka_unit_test(test_unauthorized_work),
		cmocka_unit_test(test_likely_time_takes_long_to_be_found),
		cmocka_unit_test(test_turns_in_the_rhythm_of_the_samples),
		cmocka_unit_test(test_charged_work_is_no_violation),
		cmocka_unit_test(test_one_wrong_sample_is_no_violation),
		cmocka_unit_test(test_a_long_pause_between_looks_counts_little),
		cmocka_unit_test(test_a_tenant_that_has_stopped_is_not_over_for_long),
		cmocka_unit_test(test_unexplained),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
