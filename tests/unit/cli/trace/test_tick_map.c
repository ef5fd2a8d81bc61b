/* Ticks as nanoseconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/trace/tick_map.h"

#define DAY_NS UINT64_C(86400000000000)

static void test_a_rate(void **state)
{
	/* 2.5 ticks a nanosecond, after a year of counting. */
	uint64_t ticks = 365 * DAY_NS / 2 * 5, ns = 42;
	struct tick_map m = tick_map_begin(ticks, ns);
	tick_map_add(&m, ticks + 2500000, ns + 1000000);
	assert_int_equal(tick_map_ns(&m, ticks), 0);
	assert_int_equal(tick_map_ns(&m, ticks + 2500000), 1000000);
	assert_int_equal(tick_map_ns(&m, ticks + 1250), 500);
	assert_int_equal(tick_map_ns(&m, ticks + 5000000), 2000000);
	assert_int_equal(tick_map_ns(&m, ticks - 2500), -1000);
	/* To the nanosecond after an hour as well. */
	tick_map_add(&m, ticks + DAY_NS / 24 / 2 * 5, ns + DAY_NS / 24);
	assert_int_equal(tick_map_ns(&m, ticks + DAY_NS / 24 / 2 * 5 + 25), DAY_NS / 24 + 10);
}

/* A clock that is set back, or a moment told twice, changes nothing; nor does what a process makes up. */
static void test_nonsense(void **state)
{
	struct tick_map m = tick_map_begin(1000, 1000);
	tick_map_add(&m, 2000, 2000);
	tick_map_add(&m, 1000, 3000);
	tick_map_add(&m, 500, 500);
	assert_int_equal(tick_map_ns(&m, 1500), 500);
	assert_in_range(tick_map_ns(&m, UINT64_MAX) + 2000, 0, 4000);
	assert_in_range(tick_map_ns(&m, 0) + 2000, 0, 4000);
	m = tick_map_begin(0, 0);
	tick_map_add(&m, 1, UINT64_MAX / 2);
	assert_int_equal(tick_map_ns(&m, UINT64_C(1) << 62), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_rate),
		cmocka_unit_test(test_nonsense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
