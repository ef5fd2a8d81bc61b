#include <math.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/space/threads.h"

/* MPS's rounding of a percentage. */
static unsigned sms_of(double pct, unsigned sms)
{
	return (unsigned)(pct * sms / 100 + 1e-9) / 2 * 2;
}

static void test_a_limit_is_rounded_to_the_nearest_pair(void **state)
{
	static const struct {
		double limit;
		unsigned sms, has;
	} cases[] = {
		{ 10, 132, 14 }, { 15, 132, 20 },    { 30, 132, 40 }, { 45, 132, 60 },
		{ 50, 132, 66 }, { 1, 132, 2 },      { 25, 16, 4 },   { 26, 16, 4 },
		{ 50, 108, 54 }, { 33.33, 132, 44 }, { 40, 132, 52 }, { 60, 132, 80 },
		{ 25, 132, 32 }, { 0.76, 132, 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mps_threads t = mps_threads_for(cases[i].limit, cases[i].sms);

		assert_int_equal(sms_of(t.pct, cases[i].sms), cases[i].has);
		assert_true(fabs(t.part_pct - 100.0 * cases[i].has / cases[i].sms) < 1e-9);
	}
}

/*
 * For GPUs of every size: MPS's result is the reported value and at most one SM off, and two percentages that are 100 together
 * share no SM.
 */
static void test_any_limit_of_any_card(void **state)
{
	for (unsigned sms = 2; sms <= 256; sms += 2) {
		for (unsigned x100 = 100; x100 < 10000; x100 += 7) {
			struct mps_threads t = mps_threads_for(x100 / 100.0, sms);
			struct mps_threads rest = mps_threads_for(100 - x100 / 100.0, sms);
			bool is_least = t.part_pct <= 200.1 / sms || rest.part_pct <= 200.1 / sms;

			assert_true(t.pct <= 100);
			assert_true(is_least ||
				    fabs(t.part_pct - x100 / 100.0) <= 100.0 / sms + 0.01);
			assert_true(fabs(sms_of(t.pct, sms) * 100.0 / sms - t.part_pct) < 1e-6);
			assert_true(is_least || t.part_pct + rest.part_pct <= 100.001);
		}
	}
}

static void test_all_and_unknown(void **state)
{
	assert_true(mps_threads_for(100, 132).pct >= 100);
	assert_true(mps_threads_for(99.9, 132).part_pct >= 100);
	assert_true(mps_threads_for(30, 0).pct <= 30 && mps_threads_for(30, 0).part_pct >= 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_limit_is_rounded_to_the_nearest_pair),
		cmocka_unit_test(test_any_limit_of_any_card),
		cmocka_unit_test(test_all_and_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
