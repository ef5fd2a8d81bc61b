/* Rests: what counts as one, and when it is rung for. */
#include "launching.h"

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

/* A stream that was used once, and for which nobody ever waited: PyTorch warms a graph up on one. */
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

static uint64_t thread_ns(void)
{
	return fake_report->bell[0].thread_ns;
}

/* From a rest until the next wait, without that wait itself and without what was spent at the gate. */
static void test_what_the_thread_did_in_between_is_told(void **state)
{
	struct region_slot_device *slot = process_slot_device(0);
	uint64_t before, begun_ns, passed_ns;

	launch(fake_stream(2));
	sync_point_before();
	begun_ns = sys_now_ns();
	sync_point_after_all();
	before = thread_ns();
	launch(fake_stream(2));
	sys_sleep_ns(20 * NS_PER_MS);
	sync_point_before();
	sys_sleep_ns(20 * NS_PER_MS);
	passed_ns = sys_now_ns();
	sync_point_after_all();
	assert_true(thread_ns() - before >= 20 * NS_PER_MS);
	assert_true(thread_ns() - before <= passed_ns - begun_ns - 20 * NS_PER_MS);

	/* All of that time at the gate. */
	before = thread_ns();
	launch(fake_stream(2));
	sys_sleep_ns(20 * NS_PER_MS);
	atomic_fetch_add(&slot->waited_ns, sys_now_ns() - passed_ns + NS_PER_S);
	sync_point_before();
	sync_point_after_all();
	assert_int_equal(thread_ns(), before);
	/* A wait that is no rest adds nothing. */
	sync_point_before();
	sync_point_after_all();
	assert_int_equal(thread_ns(), before);
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

static void test_it_is_rung_for_where_it_is_wanted(void **state)
{
	uint32_t rung;

	fake_process_set_lease(LEASE_GO);
	launch(fake_stream(2));
	rung = fake_report->bell[0].rung;
	sync_point_after_all();
	assert_int_equal(fake_report->bell[0].rung, rung);
	fake_control->device[0].sync_point_wanted = 1;
	sync_point_after_all();
	assert_int_equal(fake_report->bell[0].rung, rung);
	launch(fake_stream(2));
	sync_point_after_all();
	assert_int_equal(fake_report->bell[0].rung, rung + 1);
	fake_control->device[0].sync_point_wanted = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		launching_test(test_a_wait_for_all_is_one),
		launching_test(test_a_wait_for_one_stream_is_one_if_there_is_no_work_on_another),
		launching_test(test_what_has_ended_on_another_stream_keeps_from_none),
		launching_test(test_what_the_thread_did_in_between_is_told),
		launching_test(test_it_is_counted_whatever_the_lease_is),
		launching_test(test_it_is_rung_for_where_it_is_wanted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
