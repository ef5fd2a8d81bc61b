#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/memory/fade.h"
#include "random.h"

#define S UINT64_C(1000000000)
#define HALF (600 * S)

static void assert_near(double value, double wanted)
{
	if (!(fabs(value - wanted) <= 1e-9 * (fabs(wanted) + 1)))
		fail_msg("%.17g is not %.17g", value, wanted);
}

static void test_half_is_left_after_a_half_life(void **state)
{
	struct fade f = { 0 };

	fade_add(&f, 5 * S, 8 * S, HALF);
	assert_near(fade_use_ns(&f, 5 * S, HALF), 8e9);
	assert_near(fade_use_ns(&f, 5 * S + HALF, HALF), 4e9);
	assert_near(fade_use_ns(&f, 5 * S + 3 * HALF, HALF), 1e9);
}

static void test_time_without_use_adds_none(void **state)
{
	struct fade f = { 0 };

	fade_add(&f, S, 4 * S, HALF);
	for (unsigned i = 1; i <= 100; i++)
		fade_add(&f, S + i * HALF / 100, 0, HALF);
	assert_near(f.use_ns, 2e9);
}

static void test_without_half_life_it_adds_up(void **state)
{
	struct fade f = { 0 };

	for (unsigned i = 1; i <= 1000; i++)
		fade_add(&f, i * HALF, S, 0);
	assert_near(fade_use_ns(&f, UINT64_MAX, 0), 1000e9);
}

/* Use at an even rate, added at other moments: the sum is the same. */
static void test_how_often_it_is_added_does_not_matter(void **state)
{
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		uint64_t random = seed;
		uint64_t now = random_between(&random, 1, 1000) * S;
		uint64_t end = now + random_between(&random, 1, 5000) * S;
		struct fade once = { 0 }, often = { 0 };

		fade_add(&once, now, 0, HALF);
		fade_add(&often, now, 0, HALF);
		fade_add(&once, end, (end - now) / 4, HALF);
		while (now < end) {
			uint64_t step = 4 * random_between(&random, 1, 25 * S);

			step = step < end - now ? step : end - now;
			now += step;
			fade_add(&often, now, step / 4, HALF);
		}
		if (!(fabs(once.use_ns - often.use_ns) < 1e-6 * once.use_ns))
			fail_msg("seed %llu: %.12g at once, %.12g in steps",
				 (unsigned long long)seed, once.use_ns, often.use_ns);
	}
}

/* The use of a card that is always busy approaches one half-life / ln 2. */
static void test_full_use_has_a_limit(void **state)
{
	struct fade f = { 0 };

	fade_add(&f, S, 0, HALF);
	for (unsigned i = 1; i <= 10000; i++)
		fade_add(&f, S + i * 10 * S, 10 * S, HALF);
	assert_near(f.use_ns, (double)HALF / log(2));
}

static void test_a_clock_that_went_back_stands_still(void **state)
{
	struct fade f = { 0 };

	fade_add(&f, 100 * S, 4 * S, HALF);
	fade_add(&f, 50 * S, 1 * S, HALF);
	assert_near(f.use_ns, 5e9);
	assert_true(f.at_ns == 100 * S);
	assert_near(fade_use_ns(&f, 10 * S, HALF), 5e9);
}

/* Between two clocks: the caller passes the elapsed time; no clock is read. */
static void test_after_another_clock(void **state)
{
	struct fade f = fade_after(8e9, 2 * HALF, 5 * S, HALF);

	assert_near(f.use_ns, 2e9);
	assert_true(f.at_ns == 5 * S);
	assert_near(fade_use_ns(&f, 5 * S + HALF, HALF), 1e9);
	assert_near(fade_after(8e9, 0, S, HALF).use_ns, 8e9);
	assert_near(fade_after(8e9, UINT64_MAX, S, HALF).use_ns, 0);
	assert_near(fade_after(8e9, HALF, S, 0).use_ns, 8e9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_half_is_left_after_a_half_life),
		cmocka_unit_test(test_time_without_use_adds_none),
		cmocka_unit_test(test_without_half_life_it_adds_up),
		cmocka_unit_test(test_how_often_it_is_added_does_not_matter),
		cmocka_unit_test(test_full_use_has_a_limit),
		cmocka_unit_test(test_a_clock_that_went_back_stands_still),
		cmocka_unit_test(test_after_another_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
