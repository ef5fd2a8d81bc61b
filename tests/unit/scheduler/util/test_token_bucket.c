/* Work by the second, in simulated time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "scheduler/util/token_bucket.h"

static void test_no_limit(void **state)
{
	struct token_bucket a = { 0 };
	for (int i = 0; i < 1000; i++)
		assert_int_equal(token_bucket_take(&a, UINT64_MAX, 5), 0);
}

static void test_a_second_is_saved_up(void **state)
{
	struct token_bucket a = { .per_second = 1000 };
	uint64_t now_ns = 3600 * NSEC_PER_SEC;
	for (int i = 0; i < 10; i++)
		assert_int_equal(token_bucket_take(&a, 100, now_ns), 0);
	uint64_t wait_ns = token_bucket_take(&a, 100, now_ns);
	assert_in_range(wait_ns, 1, 2);
	assert_int_equal(token_bucket_take(&a, 100, now_ns + wait_ns), 0);
	/* What one second brings, however long nobody asked. */
	now_ns += 1000 * NSEC_PER_SEC;
	for (int i = 0; i < 10; i++)
		assert_int_equal(token_bucket_take(&a, 100, now_ns), 0);
	assert_int_not_equal(token_bucket_take(&a, 100, now_ns), 0);
}

static void test_what_is_large_is_paid_for_later(void **state)
{
	struct token_bucket a = { .per_second = 1000 };
	uint64_t now_ns = 77 * NSEC_PER_SEC;
	assert_int_equal(token_bucket_take(&a, 5000, now_ns), 0);
	uint64_t wait_ns = token_bucket_take(&a, 1, now_ns);
	assert_in_range(wait_ns, 4 * NSEC_PER_SEC, 4 * NSEC_PER_SEC + 1);
	assert_int_not_equal(token_bucket_take(&a, 1, now_ns + wait_ns - 1), 0);
	assert_int_equal(token_bucket_take(&a, 1, now_ns + wait_ns), 0);
}

/* Whoever asks as often as it can gets what was allowed, and not more. */
static void test_over_an_hour(void **state)
{
	struct token_bucket a = { .per_second = 20000 };
	uint64_t done = 0, seconds = 3600;
	for (uint64_t ms = 0; ms < seconds * 1000; ms++) {
		uint64_t work = 100 + ms * 7919 % 5000;
		if (!token_bucket_take(&a, work, NSEC_PER_SEC + ms * NSEC_PER_MSEC))
			done += work;
	}
	assert_in_range(done, seconds * 20000 * 99 / 100, (seconds + 1) * 20000 + 5100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_a_second_is_saved_up),
		cmocka_unit_test(test_what_is_large_is_paid_for_later),
		cmocka_unit_test(test_over_an_hour),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
