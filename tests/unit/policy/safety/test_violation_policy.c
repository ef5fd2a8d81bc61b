/* Which tenant a process belongs to, when a suspicion is confirmed, and the action that follows: a table for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "policy/safety/violation_policy.h"

#define SEC UINT64_C(1000000000)

static const struct tenant *const a = (const struct tenant *)1, *const b = (const struct tenant *)2,
				  *const c = (const struct tenant *)3,
				  *const d = (const struct tenant *)4;

static void test_owner(void **state)
{
	const char *how = "none";
	struct violation_signs s = { 0 };
	assert_null(violation_owner(&s, &how));
	assert_string_equal(how, "none");
	s.by_environment = d;
	assert_ptr_equal(violation_owner(&s, &how), d);
	s.by_container = c;
	assert_ptr_equal(violation_owner(&s, &how), c);
	s.by_mount = b;
	assert_ptr_equal(violation_owner(&s, &how), b);
	s.by_descent = a;
	assert_ptr_equal(violation_owner(&s, &how), a);
	assert_string_equal(how, "started by a process of the tenant");
}

static void test_names(void **state)
{
	enum on_violation what = ON_VIOLATION_END;
	assert_int_equal(on_violation_parse("freeze", &what), 0);
	assert_int_equal(what, ON_VIOLATION_FREEZE);
	assert_int_equal(on_violation_parse("", &what), -22);
	assert_int_equal(what, ON_VIOLATION_FREEZE);
	assert_string_equal(on_violation_name(ON_VIOLATION_END), "end");
	assert_string_equal(violation_reason_name(VIOLATION_UNREGISTERED), "unregistered");
	assert_int_equal(on_violation_stricter(ON_VIOLATION_END, ON_VIOLATION_REPORT),
			 ON_VIOLATION_END);
	assert_int_equal(on_violation_stricter(ON_VIOLATION_REPORT, ON_VIOLATION_FREEZE),
			 ON_VIOLATION_FREEZE);
}

/* Is a violation confirmed after this many censuses that show it, at intervals of step_ns? */
static bool after(struct violation_track *t, unsigned censuses, uint64_t *now_ns, uint64_t step_ns)
{
	bool confirmed = false;
	for (unsigned i = 0; i < censuses; i++) {
		*now_ns += step_ns;
		confirmed = violation_confirm(t, *now_ns, SEC);
	}
	return confirmed;
}

static void test_confirmed_by_censuses_and_time(void **state)
{
	struct violation_track t = { 0 };
	uint64_t now_ns = 5 * SEC;
	assert_false(after(&t, 2, &now_ns, SEC));
	assert_true(after(&t, 1, &now_ns, SEC));
	/* Many censuses in no time prove no more than one. */
	t = (struct violation_track){ 0 };
	assert_false(after(&t, 30, &now_ns, SEC / 20));
	assert_true(after(&t, 12, &now_ns, SEC / 20));
	/* Rare censuses: still three. */
	t = (struct violation_track){ 0 };
	assert_false(after(&t, 2, &now_ns, 60 * SEC));
	assert_true(after(&t, 1, &now_ns, 60 * SEC));
}

/* A census may show many processes of the tenant, and counts once. */
static void test_a_census_counts_once(void **state)
{
	struct violation_track t = { 0 };
	for (unsigned i = 0; i < 100; i++)
		assert_false(violation_confirm(&t, 5 * SEC, SEC));
	assert_int_equal(t.censuses, 1);
	assert_false(violation_confirm(&t, 6 * SEC, SEC));
	for (unsigned i = 0; i < 100; i++)
		assert_true(violation_confirm(&t, 7 * SEC, SEC));
}

/* Censuses that show nothing forgive nothing until VIOLATION_MEMORY_INTERVALS have passed. */
static void test_a_relay_with_pauses(void **state)
{
	struct violation_track t = { 0 };
	uint64_t now_ns = 5 * SEC;
	assert_false(violation_is_suspected(&t, now_ns, SEC));
	assert_false(after(&t, 2, &now_ns, 50 * SEC));
	assert_true(violation_is_suspected(&t, now_ns + 60 * SEC, SEC));
	assert_false(violation_is_suspected(&t, now_ns + 61 * SEC, SEC));
	assert_true(after(&t, 1, &now_ns, 50 * SEC));
	/* The next process is an offender at once. */
	assert_true(after(&t, 1, &now_ns, 50 * SEC));
	/* After a longer pause, suspicion begins anew. */
	assert_false(after(&t, 1, &now_ns, 61 * SEC));
	assert_int_equal(t.censuses, 1);
}

static void test_steps(void **state)
{
	static const struct {
		struct violation_case c;
		enum violation_step step;
	} rows[] = {
		{ { .wanted = ON_VIOLATION_REPORT, .has_own_container = true }, VIOLATION_LEAVE },
		{ { .wanted = ON_VIOLATION_FREEZE, .has_own_container = true }, VIOLATION_FREEZE },
		{ { .wanted = ON_VIOLATION_FREEZE }, VIOLATION_STOP },
		{ { .wanted = ON_VIOLATION_FREEZE, .is_frozen = true }, VIOLATION_LEAVE },
		{ { .wanted = ON_VIOLATION_FREEZE, .is_stopped = true }, VIOLATION_LEAVE },
		{ { .wanted = ON_VIOLATION_FREEZE, .is_pardoned = true, .has_own_container = true },
		  VIOLATION_LEAVE },
		{ { .wanted = ON_VIOLATION_FREEZE, .is_untouchable = true }, VIOLATION_LEAVE },
		{ { .wanted = ON_VIOLATION_END, .is_untouchable = true }, VIOLATION_LEAVE },
		{ { .wanted = ON_VIOLATION_END, .is_pardoned = true }, VIOLATION_LEAVE },
		{ { .wanted = ON_VIOLATION_END, .is_stopped = true }, VIOLATION_TERM },
		{ { .wanted = ON_VIOLATION_END, .is_terminated = true, .terminated_ns = 96 * SEC },
		  VIOLATION_LEAVE },
		{ { .wanted = ON_VIOLATION_END, .is_terminated = true, .terminated_ns = 95 * SEC },
		  VIOLATION_KILL },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (violation_next(&rows[i].c, 100 * SEC) != rows[i].step)
			fail_msg("row %zu", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_confirmed_by_censuses_and_time),
		cmocka_unit_test(test_a_census_counts_once),
		cmocka_unit_test(test_a_relay_with_pauses),
		cmocka_unit_test(test_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
