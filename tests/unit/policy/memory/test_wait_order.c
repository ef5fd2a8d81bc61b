#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/memory/wait_order.h"
#include "random.h"

static const struct order_bounds bounds = { .patience_ns = 100, .passes_most = 3 };

static void assert_before(const struct order_key *a, const struct order_key *b, uint64_t now_ns)
{
	assert_true(order_compare(a, b, now_ns, &bounds) < 0);
	assert_true(order_compare(b, a, now_ns, &bounds) > 0);
}

static void test_least_use_then_arrival_then_id(void **state)
{
	struct order_key used = { .use_ns = 2, .arrival = 1, .since_ns = 10, .id = 1 };
	struct order_key late = { .use_ns = 1, .arrival = 3, .since_ns = 10, .id = 2 };
	struct order_key early = { .use_ns = 1, .arrival = 2, .since_ns = 10, .id = 4 };
	struct order_key twin = { .use_ns = 1, .arrival = 2, .since_ns = 10, .id = 3 };

	assert_before(&late, &used, 20);
	assert_before(&early, &late, 20);
	assert_before(&twin, &early, 20);
	assert_int_equal(order_compare(&late, &late, 20, &bounds), 0);
}

static void test_the_overdue_come_first_by_arrival(void **state)
{
	struct order_key old = { .use_ns = 9, .arrival = 1, .since_ns = 0 };
	struct order_key passed = { .use_ns = 5, .arrival = 2, .since_ns = 60, .passes = 3 };
	struct order_key fresh = { .use_ns = 0, .arrival = 3, .since_ns = 60, .passes = 2 };

	assert_before(&passed, &old, 99);
	assert_before(&fresh, &old, 99);
	assert_before(&old, &passed, 100);
	assert_before(&passed, &fresh, 100);
}

static void test_a_time_before_it_came_is_no_wait(void **state)
{
	struct order_key k = { .since_ns = 1000 };

	assert_false(order_is_overdue(&k, 5, &bounds));
	assert_true(order_is_overdue(&k, 1100, &bounds));
	assert_true(order_is_overdue(&k, 5, &(struct order_bounds){ .passes_most = 3 }));
}

/* Any two are ordered, and no three in a circle: else sorting means nothing. */
static void test_is_a_total_order(void **state)
{
	uint64_t random = 1;

	for (unsigned n = 0; n < 200000; n++) {
		struct order_key k[3];
		int c[3];

		for (unsigned i = 0; i < 3; i++)
			k[i] = (struct order_key){
				.use_ns = (double)random_between(&random, 0, 2),
				.arrival = random_between(&random, 0, 2),
				.since_ns = random_between(&random, 0, 200),
				.passes = (uint32_t)random_between(&random, 0, 4),
				.id = i,
			};
		for (unsigned i = 0; i < 3; i++)
			c[i] = order_compare(&k[i], &k[(i + 1) % 3], 150, &bounds);
		if (!c[0] || !c[1] || !c[2] || (c[0] < 0 && c[1] < 0 && c[2] < 0) ||
		    (c[0] > 0 && c[1] > 0 && c[2] > 0))
			fail_msg("number %u: %d %d %d", n, c[0], c[1], c[2]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_least_use_then_arrival_then_id),
		cmocka_unit_test(test_the_overdue_come_first_by_arrival),
		cmocka_unit_test(test_a_time_before_it_came_is_no_wait),
		cmocka_unit_test(test_is_a_total_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
