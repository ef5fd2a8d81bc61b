/* Sync points: which waits count as one, and when one rings the doorbell. */
#include "launching.h"

#include "library/launch/fast_path_pass.h"
#include "library/launch/report.h"
#include "library/launch/sync_point.h"

static uint32_t sync_points(void)
{
	return fake_report->bell[0].sync_points;
}

static void test_a_wait_for_all_is_one(void **state)
{
	uint32_t before = sync_points();

	launch(fake_stream(2));
	launch(fake_stream(3));
	sync_point_after_all();
	assert_int_equal(sync_points(), before + 1);
	/* Nothing new since. */
	sync_point_after_all();
	sync_point_after_stream(fake_stream(2), LEGACY);
	assert_int_equal(sync_points(), before + 1);
}

static void test_a_wait_for_one_stream_is_one_if_there_is_no_work_on_another(void **state)
{
	uint32_t before = sync_points();

	launch(fake_stream(2));
	sync_point_after_stream(fake_stream(2), LEGACY);
	assert_int_equal(sync_points(), before + 1);
	launch(fake_stream(3));
	launch(fake_stream(2));
	sync_point_after_stream(fake_stream(2), LEGACY);
	assert_int_equal(sync_points(), before + 1);
	sync_point_after_all();
	assert_int_equal(sync_points(), before + 2);
}

/* A stream that was used once, and that no thread ever waited for: PyTorch warms up a graph on one. */
static void test_what_has_ended_on_another_stream_keeps_from_none(void **state)
{
	uint32_t before = sync_points();

	launch(fake_stream(3));
	inflight_mark_now(inflight_look_up(fake_stream(3), 0, NULL));
	launch(fake_stream(2));
	sync_point_after_stream(fake_stream(2), LEGACY);
	assert_int_equal(sync_points(), before);
	fake_complete_all();
	inflight_poll(sys_now_ns(), 1, 0);
	sync_point_after_stream(fake_stream(2), LEGACY);
	assert_int_equal(sync_points(), before + 1);
}

static uint64_t gap_ns(void)
{
	return fake_report->bell[0].gap_ns;
}

/* From a sync point to the next launch: not the launches after it, not the wait, and not the time at the gate. */
static void test_gap_before_the_next_launch_is_reported(void **state)
{
	struct region_slot_device *slot = process_slot_device(0);
	uint64_t before, begun_ns, passed_ns;

	launch(fake_stream(2));
	begun_ns = sys_now_ns();
	sync_point_after_all();
	before = gap_ns();
	sys_sleep_ns(20 * NS_PER_MS);
	launch(fake_stream(2));
	passed_ns = sys_now_ns();
	assert_in_range(gap_ns() - before, 20 * NS_PER_MS, passed_ns - begun_ns);
	before = gap_ns();
	sys_sleep_ns(20 * NS_PER_MS);
	launch(fake_stream(2));
	sync_point_before();
	sys_sleep_ns(20 * NS_PER_MS);
	sync_point_after_all();
	assert_int_equal(gap_ns(), before);

	/* All of that time at the gate. */
	atomic_fetch_add(&slot->waited_ns, NS_PER_S);
	launch(fake_stream(2));
	assert_int_equal(gap_ns(), before);
	/* A wait without work is no sync point, so no gap follows it. */
	sync_point_after_all();
	launch(fake_stream(2));
	before = gap_ns();
	sync_point_after_stream(fake_stream(3), LEGACY);
	launch(fake_stream(2));
	assert_int_equal(gap_ns(), before);
}

/* Launches on the fast path do not pass the gate, but the first one after a sync point does. */
static void test_gap_is_reported_on_the_fast_path(void **state)
{
	uint64_t before;

	fake_process_set_lease(LEASE_FREE);
	launch(fake_stream(2));
	assert_non_null(fast_path_pass(fake_stream(2)));
	sync_point_after_all();
	assert_null(fast_path_pass(fake_stream(2)));
	before = gap_ns();
	launch(fake_stream(2));
	assert_true(gap_ns() > before);
}

/*
 * The last work of a lease ends while it is drained, and the thread hears of that when the lease is another's. A step that was not
 * counted would make one of two.
 */
static void test_it_is_counted_whatever_the_lease_is(void **state)
{
	const enum lease_state leases[] = { LEASE_GO, LEASE_CLOSING, LEASE_STOP, LEASE_PACED,
					    LEASE_FREE };

	for (size_t i = 0; i < sizeof(leases) / sizeof(leases[0]); i++) {
		uint32_t before = sync_points();

		fake_process_set_lease(LEASE_GO);
		launch(fake_stream(2));
		fake_process_set_lease(leases[i]);
		sync_point_after_all();
		assert_int_equal(sync_points(), before + 1);
	}
}

static void test_a_sync_point_rings_if_wanted(void **state)
{
	uint32_t rings;

	fake_process_set_lease(LEASE_GO);
	launch(fake_stream(2));
	rings = fake_report->bell[0].ring_count;
	sync_point_after_all();
	assert_int_equal(fake_report->bell[0].ring_count, rings);
	fake_control->device[0].sync_point_wanted = 1;
	sync_point_after_all();
	assert_int_equal(fake_report->bell[0].ring_count, rings);
	launch(fake_stream(2));
	sync_point_after_all();
	assert_int_equal(fake_report->bell[0].ring_count, rings + 1);
	fake_control->device[0].sync_point_wanted = 0;
}

/* With a ring the daemon learns when the work ended, and how long it lasted, before the helper thread polls. */
static void test_a_sync_point_that_rings_ends_the_busy_time(void **state)
{
	uint64_t begun_ns, passed_ns, busy_ns, launches;

	report_reset();
	report_devices(sys_now_ns());
	fake_process_set_lease(LEASE_GO);
	fake_control->device[0].sync_point_wanted = SYNC_POINT_RUNG;
	busy_ns = own()->busy_ns;
	launches = own()->launches;
	begun_ns = sys_now_ns();
	launch(fake_stream(2));
	sync_point_before();
	sys_sleep_ns(5 * NS_PER_MS);
	sync_point_after_all();
	passed_ns = sys_now_ns();
	assert_false(own()->busy);
	assert_int_equal(own()->launches, launches + 1);
	assert_in_range(own()->busy_ns - busy_ns, 5 * NS_PER_MS, passed_ns - begun_ns);
	busy_ns = own()->busy_ns;
	sys_sleep_ns(5 * NS_PER_MS);
	/* A poll that began before the sync point counts nothing twice, nor does a later one. */
	report_devices(begun_ns);
	report_devices(sys_now_ns());
	assert_int_equal(own()->busy_ns, busy_ns);

	/* Another thread launches during the wait. */
	launch(fake_stream(2));
	sync_point_before();
	launch(fake_stream(3));
	sync_point_after_all();
	assert_true(own()->busy);
	fake_control->device[0].sync_point_wanted = SYNC_POINT_UNTOLD;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		launching_test(test_a_wait_for_all_is_one),
		launching_test(test_a_wait_for_one_stream_is_one_if_there_is_no_work_on_another),
		launching_test(test_what_has_ended_on_another_stream_keeps_from_none),
		launching_test(test_gap_before_the_next_launch_is_reported),
		launching_test(test_gap_is_reported_on_the_fast_path),
		launching_test(test_it_is_counted_whatever_the_lease_is),
		launching_test(test_a_sync_point_rings_if_wanted),
		launching_test(test_a_sync_point_that_rings_ends_the_busy_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
