/* Ticks as nanoseconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/trace/tick_map.h"

#define DAY_NS UINT64_C(86400000000000)

static struct tick_map m;

static int teardown(void **state)
{
	tick_map_clear(&m);
	return 0;
}

static void begin(uint64_t ticks, uint64_t ns)
{
	tick_map_clear(&m);
	assert_int_equal(tick_map_begin(&m, ticks, ns), 0);
}

static void add(uint64_t ticks, uint64_t ns)
{
	assert_int_equal(tick_map_add(&m, ticks, ns), 0);
}

static void test_a_rate(void **state)
{
	/* 2.5 ticks a nanosecond, after a year of counting. */
	uint64_t ticks = 365 * DAY_NS / 2 * 5, ns = 42;
	begin(ticks, ns);
	add(ticks + 2500000, ns + 1000000);
	assert_int_equal(tick_map_ns(&m, ticks), 0);
	assert_int_equal(tick_map_ns(&m, ticks + 2500000), 1000000);
	assert_int_equal(tick_map_ns(&m, ticks + 1250), 500);
	assert_int_equal(tick_map_ns(&m, ticks + 5000000), 2000000);
	assert_int_equal(tick_map_ns(&m, ticks - 2500), -1000);
	assert_int_equal(tick_map_last_ticks(&m), ticks + 2500000);
	/* To the nanosecond after an hour as well. */
	add(ticks + DAY_NS / 24 / 2 * 5, ns + DAY_NS / 24);
	assert_int_equal(tick_map_ns(&m, ticks + DAY_NS / 24 / 2 * 5 + 25), DAY_NS / 24 + 10);
}

/* The daemon reads the moments now too early, now too late. */
static void test_time_that_was_told_stays(void **state)
{
	begin(1000, 0);
	for (uint64_t i = 1; i <= 200; i++)
		add(1000 + 1000 * i, 1000 * i + (i % 2 ? 300 : 0));
	assert_int_equal(tick_map_ns(&m, 1500), 650);
	assert_int_equal(tick_map_ns(&m, 2000), 1300);
	assert_int_equal(tick_map_ns(&m, 2500), 1650);
	for (uint64_t ticks = 0; ticks < 202000; ticks += 7)
		assert_true(tick_map_ns(&m, ticks + 7) > tick_map_ns(&m, ticks));
	int64_t before[] = { tick_map_ns(&m, 500), tick_map_ns(&m, 150010),
			     tick_map_ns(&m, 201000) };
	add(202000, 209000);
	assert_int_equal(tick_map_ns(&m, 500), before[0]);
	assert_int_equal(tick_map_ns(&m, 150010), before[1]);
	assert_int_equal(tick_map_ns(&m, 201000), before[2]);
}

/* A clock that is set back, or a moment told twice, changes nothing; nor does what a process makes up. */
static void test_nonsense(void **state)
{
	begin(1000, 1000);
	assert_int_equal(tick_map_ns(&m, 5000), 0);
	add(2000, 2000);
	add(1000, 3000);
	add(3000, 2000);
	add(500, 500);
	assert_int_equal(tick_map_ns(&m, 1500), 500);
	assert_int_equal(tick_map_last_ticks(&m), 2000);
	assert_in_range(tick_map_ns(&m, UINT64_MAX) + 2000, 0, 4000);
	assert_in_range(tick_map_ns(&m, 0) + 2000, 0, 4000);
	begin(0, 0);
	add(1, UINT64_MAX / 2);
	assert_int_equal(tick_map_ns(&m, UINT64_C(1) << 62), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_rate),
		cmocka_unit_test(test_time_that_was_told_stays),
		cmocka_unit_test(test_nonsense),
	};
	return cmocka_run_group_tests(tests, NULL, teardown);
}
