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

static void test_time_within_the_share_is_no_violation(void **state)
{
	struct time_reading reading = {
		.passed_ns = 500 * MS, .peak = 0.2, .certain = 0.7, .likely = 0.7, .share = 0.7
	};
	struct time_account unpaid = { 0 };
	for (unsigned i = 0; i < 1000; i++)
		assert_false(time_is_over(&unpaid, &reading));
	assert_int_equal(unpaid.certain_ns, 0);
	reading.share = 0.4;
	unsigned readings = 1;
	while (!time_is_over(&unpaid, &reading))
		readings++;
	assert_int_equal(readings, 4);
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

static struct time_claim claim_of(double charged, double sampled)
{
	return (struct time_claim){
		.peak_150ms = charged, .peak_600ms = charged, .charged = charged, .sampled = sampled
	};
}

static void test_unexplained(void **state)
{
	const struct time_claim half[] = { claim_of(0.5, 0) },
				both[] = { claim_of(0.5, 0.8), claim_of(0.15, 0) };
	assert_true(time_unexplained(half, 1, 0.5) == 0);
	assert_true(time_unexplained(half, 1, 0.55) == 0);
	assert_true(time_unexplained(half, 1, 1) > 0.49);
	assert_true(time_unexplained(both, 2, 1) == 0);
	assert_true(time_unexplained(NULL, 0, 0.3) > 0.29);
}

static bool is_about(double value, double expected)
{
	return value > expected - 0.001 && value < expected + 0.001;
}

/* The samples of one of two tenants show its own work, or also that of the other. */
static void test_samples_of_neighbours(void **state)
{
	struct time_claim k[] = { claim_of(0.5, 1), claim_of(0.5, 0) };
	time_weigh(k, 2, 1, false);
	assert_true(is_about(k[0].certain, 0.5) && is_about(k[0].likely, 0.5));
	k[1].sampled = 0.4;
	time_weigh(k, 2, 1, false);
	assert_true(is_about(k[0].certain, 0.9) && is_about(k[0].likely, 1));
	/* The charges do not explain all of the busy time. */
	k[0] = claim_of(0.2, 1);
	k[1] = claim_of(0.5, 0);
	time_weigh(k, 2, 1, false);
	assert_true(is_about(k[0].certain, 0.5) && is_about(k[0].likely, 0.5));
	/* One was charged for nothing, or only for what it might not do. */
	k[0] = claim_of(0, 0.33);
	time_weigh(k, 2, 1, false);
	assert_true(is_about(k[0].certain, 0.33));
	k[0] = claim_of(0.33, 0.66);
	k[0].unauthorized = 0.33;
	time_weigh(k, 2, 1, false);
	assert_true(is_about(k[0].certain, 0.66));
}

/* A tenant and a native program take turns in the rhythm of the samples, which all find the tenant. */
static void test_samples_beside_a_native_program(void **state)
{
	struct time_claim k[] = { claim_of(0.5, 1), claim_of(0, 0.33) };
	time_weigh(k, 1, 1, false);
	assert_true(is_about(k[0].certain, 1));
	time_weigh(k, 1, 1, true);
	assert_true(is_about(k[0].certain, 0.5) && is_about(k[0].likely, 1));
	/* A tenant that was charged for nothing certainly worked past the library. */
	time_weigh(k, 2, 1, true);
	assert_true(is_about(k[1].certain, 0.33));
}

static struct time_claim terms_of(double cores, double limit, double charged, double sampled)
{
	struct time_claim k = claim_of(charged, sampled);
	k.cores = cores;
	k.limit = limit;
	return k;
}

static void test_share(void **state)
{
	/* Alone, a tenant may use the GPU up to its cap. */
	struct time_claim k[] = { terms_of(0, 1, 0, 0.7), terms_of(0, 1, 0, 0),
				  terms_of(0, 1, 0, 0) };
	time_weigh(k, 1, 0.7, false);
	assert_true(is_about(k[0].share, 1));
	k[0].limit = 0.1;
	time_weigh(k, 1, 0.7, false);
	assert_true(is_about(k[0].share, 0.1));
	/* Beside a tenant that always works: its part by guarantees. */
	k[0] = terms_of(0.1, 1, 0, 0.7);
	k[1] = terms_of(0.5, 1, 1, 0.3);
	time_weigh(k, 2, 1, false);
	assert_true(is_about(k[0].share, 1 / 6.0) && is_about(k[1].share, 5 / 6.0));
	/* Tenants without a guarantee divide the rest. None can use another one to get more. */
	k[0] = terms_of(0, 1, 0, 0.33);
	k[1] = terms_of(0.5, 1, 1, 0.33);
	k[2] = terms_of(0, 1, 0, 0.33);
	time_weigh(k, 3, 1, false);
	assert_true(is_about(k[0].share, 0.25) && is_about(k[2].share, 0.25));
	/* Many small tenants that hardly work take little of a share. */
	k[0] = terms_of(0, 1, 0.1, 0.3);
	k[1] = terms_of(0, 1, 0.02, 0);
	k[2] = terms_of(0, 1, 0.02, 0);
	time_weigh(k, 3, 0.4, false);
	assert_true(is_about(k[0].share, 0.96));
	/* Several that never launch can't each count the same time as left. */
	k[0] = terms_of(0, 1, 0, 0.33);
	k[1] = terms_of(0.5, 0.5, 0.5, 0.33);
	k[2] = terms_of(0, 1, 0, 0.33);
	time_weigh(k, 3, 1, false);
	assert_true(is_about(k[0].share, 0.25) && is_about(k[2].share, 0.25));
	/* A tenant whose memory is off the GPU takes nothing from others. */
	k[0] = terms_of(0, 1, 0, 0.7);
	k[1] = terms_of(0.8, 1, 1, 0);
	k[1].is_excused = true;
	time_weigh(k, 2, 0.7, false);
	assert_true(is_about(k[0].share, 1));
	/* Guarantees of more than the GPU. */
	k[0] = terms_of(0.8, 1, 1, 0.5);
	k[1] = terms_of(0.8, 1, 1, 0.5);
	time_weigh(k, 2, 1, false);
	assert_true(is_about(k[0].share, 0.5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work_that_is_not_charged),
		cmocka_unit_test(test_unauthorized_work),
		cmocka_unit_test(test_time_within_the_share_is_no_violation),
		cmocka_unit_test(test_likely_time_takes_long_to_be_found),
		cmocka_unit_test(test_turns_in_the_rhythm_of_the_samples),
		cmocka_unit_test(test_charged_work_is_no_violation),
		cmocka_unit_test(test_one_wrong_sample_is_no_violation),
		cmocka_unit_test(test_a_long_pause_between_looks_counts_little),
		cmocka_unit_test(test_a_tenant_that_has_stopped_is_not_over_for_long),
		cmocka_unit_test(test_unexplained),
		cmocka_unit_test(test_samples_of_neighbours),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_samples_beside_a_native_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
