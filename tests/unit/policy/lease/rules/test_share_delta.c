#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/lease/rules/share_delta.h"

static void test_a_fixed_share(void **state)
{
	(void)state;
	assert_true(share_delta_pct(30, 30, 100, 30) == 0);
	assert_true(share_delta_pct(30, 30, 100, 28) == 2);
	assert_true(share_delta_pct(30, 30, 100, 33) == 3);
}

static void test_a_range(void **state)
{
	(void)state;
	assert_true(share_delta_pct(30, 60, 100, 45) == 0);
	assert_true(share_delta_pct(30, 60, 100, 25) == 5);
	assert_true(share_delta_pct(30, 60, 100, 61) == 1);
	assert_true(share_delta_pct(0, 100, 100, 0) == 0);
}

static void test_a_tenant_that_wants_less(void **state)
{
	(void)state;
	assert_true(share_delta_pct(30, 30, 0, 0) == 0);
	assert_true(share_delta_pct(30, 30, 10, 10) == 0);
	assert_true(share_delta_pct(30, 30, 10, 8) == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_fixed_share),
		cmocka_unit_test(test_a_range),
		cmocka_unit_test(test_a_tenant_that_wants_less),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
