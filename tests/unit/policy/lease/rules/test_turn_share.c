/* A tenant's share over turns, for tenants that come and leave, on virtual time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/lease/rules/turn_share.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define LOOK (50 * MS)

static uint64_t now;

static void run(struct turn_share *s, bool is_here, bool has_work, uint64_t ns)
{
	for (uint64_t end = now + ns; now < end; now += LOOK)
		turn_share_observe(s, is_here, has_work, now);
}

static void assert_near(double got, double want)
{
	if (fabs(got - want) > 0.05 * want)
		fail_msg("%g, not %g", got, want);
}

static void test_a_tenant_that_never_leaves(void **state)
{
	struct turn_share s = { 0 };

	now = S;
	run(&s, true, true, 100 * S);
	assert_true(turn_share_scale(&s) == 1);
}

/* Half of the time: a share counts twice. A third: thrice. */
static void test_turns(void **state)
{
	for (unsigned others = 1; others <= 2; others++) {
		struct turn_share s = { 0 };
		now = S;
		for (int i = 0; i < 5; i++) {
			run(&s, true, true, 10 * S);
			assert_near(turn_share_scale(&s), i ? 1 + others : 1);
			run(&s, false, true, 10 * S * others);
			assert_true(turn_share_scale(&s) == 1);
		}
		/* From its first moment on, by how long the last turn was. */
		run(&s, true, true, LOOK);
		assert_near(turn_share_scale(&s), 1 + others);
		/* The others have left: the time that it missed is made up. */
		run(&s, true, true, 1000 * S);
		assert_near(turn_share_scale(&s), 1);
	}
}

/* A tenant is owed nothing for time that it did not want. */
static void test_away_without_work(void **state)
{
	struct turn_share s = { 0 };

	now = S;
	run(&s, true, true, 10 * S);
	run(&s, false, false, 1000 * S);
	run(&s, false, true, 5 * S);
	run(&s, true, true, LOOK);
	assert_near(turn_share_scale(&s), 1.5);
}

/* Over turns and absences together, with the cap in force at each moment, the time used equals the cap. */
static void test_a_cap_holds_over_all(void **state)
{
	struct turn_share s = { 0 };
	double used_s = 0, cap = 0.3;

	now = S;
	uint64_t begin = now;
	for (int i = 0; i < 40; i++) {
		run(&s, false, true, 7 * S);
		for (int k = 0; k < 100; k++) {
			run(&s, true, true, LOOK);
			used_s += fmin(cap * turn_share_scale(&s), 1) * 0.05;
		}
	}
	assert_near(used_s / ((double)(now - begin) / 1e9), cap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_tenant_that_never_leaves),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_away_without_work),
		cmocka_unit_test(test_a_cap_holds_over_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
