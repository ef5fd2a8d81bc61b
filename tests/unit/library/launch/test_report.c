/* The helper thread's reports about the devices, and that a forked child starts with empty ones. */
#include "launching.h"

#include "library/launch/report.h"

#define FIRST_NS (1 * NS_PER_S)

static uint64_t ramp_ns(void)
{
	return atomic_load(&fake_report->bell[0].ramp_ns);
}

static int start(void **state)
{
	report_reset();
	return launching_start(state);
}

static void test_a_child_has_saved_up_no_time(void **state)
{
	fake_control->device[0].limit_pct_x100 = 5000;
	report_devices(FIRST_NS);
	assert_false(report_local_cap_allows(0));
	report_devices(FIRST_NS + 100 * NS_PER_MS);
	assert_true(report_local_cap_allows(0));
	report_reset();
	assert_false(report_local_cap_allows(0));
}

/* Reports this much work in flight, 1 ms after the previous report. Returns the growth of the ramp. */
static uint64_t ramp_with(int64_t inflight_ns)
{
	static uint64_t now_ns = FIRST_NS;
	uint64_t before = ramp_ns();

	atomic_store(&own()->busy, 1);
	atomic_store(&device()->inflight_ns, inflight_ns);
	report_devices(now_ns += NS_PER_MS);
	return ramp_ns() - before;
}

/* The lease word may be the same in the child. */
static void test_a_child_has_no_lead(void **state)
{
	fake_process_set_lease(LEASE_GO);
	ramp_with(4 * NS_PER_MS);
	assert_int_equal(ramp_with(0), 0);
	report_reset();
	ramp_with(0);
	assert_true(ramp_with(0) > 0);
}

static void test_behind_without_a_lead_under_a_lease(void **state)
{
	_Atomic uint64_t *behind_ns = &fake_report->bell[0].behind_ns;

	fake_process_set_lease(LEASE_GO);
	fake_control->device[0].depth_ns = 4 * NS_PER_MS;
	ramp_with(0);
	*behind_ns = 0;
	ramp_with(1 * NS_PER_MS);
	assert_int_equal(*behind_ns, 0);
	/* Not a ramp any more, but behind. */
	assert_int_equal(ramp_with(900 * NS_PER_US), 0);
	assert_int_equal(*behind_ns, NS_PER_MS);
	/* Half of the depth is a lead too. */
	fake_control->device[0].depth_ns = 1 * NS_PER_MS;
	ramp_with(500 * NS_PER_US);
	fake_process_set_lease(LEASE_FREE);
	ramp_with(0);
	assert_int_equal(*behind_ns, NS_PER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_child_has_saved_up_no_time, start,
						launching_end),
		cmocka_unit_test_setup_teardown(test_a_child_has_no_lead, start, launching_end),
		cmocka_unit_test_setup_teardown(test_behind_without_a_lead_under_a_lease, start,
						launching_end),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
