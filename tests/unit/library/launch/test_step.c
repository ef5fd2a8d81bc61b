/* Steps: which calls end one, where it begins, and that it is counted by its length. */
#include "launching.h"

#include "library/launch/sync_point.h"
#include "library/launch/step.h"

#define LONG_NS (STEP_PAUSE_NS + 50 * NS_PER_MS)

static struct step_counts *steps(void)
{
	return &fake_report->steps[0];
}

/* The test before has ended a step as well. */
static int step_start(void **state)
{
	int r = launching_start(state);

	fake_report->has_steps = 1;
	launch(fake_stream(2));
	sync_point_after_all();
	*steps() = (struct step_counts){ 0 };
	return r;
}

#define step_test(name) cmocka_unit_test_setup_teardown(name, step_start, launching_end)

/* All that was launched has ended, and the helper has seen it. */
static void be_idle(void)
{
	fake_complete_all();
	inflight_poll(sys_now_ns(), 1, 0);
	inflight_show_busy(own(), device(), false);
}

static void test_a_rest_ends_one(void **state)
{
	launch(fake_stream(2));
	launch(fake_stream(3));
	sync_point_after_stream(fake_stream(3), LEGACY);
	assert_int_equal(steps()->count, 0);
	sync_point_after_all();
	assert_int_equal(steps()->count, 1);
	/* Nothing new since. */
	sync_point_after_all();
	step_after_event();
	assert_int_equal(steps()->count, 1);
}

static void test_an_event_that_was_waited_for_ends_one(void **state)
{
	launch(fake_stream(2));
	step_after_event();
	assert_int_equal(steps()->count, 1);
	/* A second wait for the same work, together with other work, does not end another step. */
	sync_point_after_all();
	assert_int_equal(steps()->count, 1);
	launch(fake_stream(3));
	step_after_event();
	assert_int_equal(steps()->count, 2);
}

static void test_it_lasts_from_one_wait_to_the_next(void **state)
{
	uint64_t begun_ns, passed_ns;

	launch(fake_stream(2));
	begun_ns = sys_now_ns();
	sync_point_after_all();
	*steps() = (struct step_counts){ 0 };
	sys_sleep_ns(20 * NS_PER_MS);
	launch(fake_stream(2));
	sys_sleep_ns(20 * NS_PER_MS);
	sync_point_after_all();
	passed_ns = sys_now_ns() - begun_ns;
	assert_int_equal(steps()->count, 1);
	assert_true(steps()->sum_ns >= 40 * NS_PER_MS);
	assert_true(steps()->sum_ns <= passed_ns);
	assert_int_equal(steps()->bucket[step_bucket_of(steps()->sum_ns)], 1);
}

static void test_a_pause_before_it_is_no_part_of_it(void **state)
{
	be_idle();
	sys_sleep_ns(LONG_NS);
	uint64_t begun_ns = sys_now_ns();
	launch(fake_stream(2));
	sys_sleep_ns(20 * NS_PER_MS);
	sync_point_after_all();
	assert_int_equal(steps()->count, 1);
	assert_true(steps()->sum_ns >= 20 * NS_PER_MS);
	assert_true(steps()->sum_ns <= sys_now_ns() - begun_ns);

	/* With work in flight it is. */
	*steps() = (struct step_counts){ 0 };
	launch(fake_stream(2));
	sys_sleep_ns(LONG_NS);
	launch(fake_stream(2));
	sync_point_after_all();
	assert_true(steps()->sum_ns >= LONG_NS);
}

/* As between two parts of a long step: the process was idle before it went on, but never for long. */
static void test_a_shorter_pause_is_part_of_it(void **state)
{
	launch(fake_stream(2));
	sys_sleep_ns(LONG_NS);
	be_idle();
	launch(fake_stream(2));
	sync_point_after_all();
	assert_int_equal(steps()->count, 1);
	assert_true(steps()->sum_ns >= LONG_NS);
}

static void test_the_wait_at_the_gate_is_part_of_it(void **state)
{
	be_idle();
	sys_sleep_ns(LONG_NS);
	fake_process_set_lease(LEASE_STOP);
	uint64_t begun_ns = sys_now_ns();
	struct launcher *l = start_launcher(fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	sys_sleep_ns(LONG_NS);
	fake_process_set_lease(LEASE_FREE);
	join_launcher(l);
	sync_point_after_all();
	assert_int_equal(steps()->count, 1);
	assert_true(steps()->sum_ns >= LONG_NS);
	assert_true(steps()->sum_ns <= sys_now_ns() - begun_ns);
}

/* Its report's file ends where the steps would be. */
static void test_an_older_daemon_gets_no_reports(void **state)
{
	fake_report->has_steps = 0;
	launch(fake_stream(2));
	sync_point_after_all();
	launch(fake_stream(2));
	step_after_event();
	assert_int_equal(steps()->count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		step_test(test_a_rest_ends_one),
		step_test(test_an_event_that_was_waited_for_ends_one),
		step_test(test_it_lasts_from_one_wait_to_the_next),
		step_test(test_a_pause_before_it_is_no_part_of_it),
		step_test(test_a_shorter_pause_is_part_of_it),
		step_test(test_the_wait_at_the_gate_is_part_of_it),
		step_test(test_an_older_daemon_gets_no_reports),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
