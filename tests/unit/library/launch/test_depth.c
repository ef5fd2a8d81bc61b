/* How much may be in flight: bounded by predicted time, and no wait for own work lasts for ever. */
#include "launching.h"

#include "../fake_clock.h"
#include "library/launch/fast_path_pass.h"

/* Waits are 10 to 100 ms; this leaves room for a machine that has other things to do. */
#define NOT_FOR_EVER_NS (3 * NS_PER_S)

/* Launches 100, of which one a millisecond ends; returns how many were in flight at most. */
static uint64_t most_in_flight(void)
{
	struct launcher *l;
	uint64_t most = 0, done = 0, before = fake_launched(fake_stream(2));

	l = start_launcher(fake_stream(2), 100);
	while (l->launches < 100) {
		uint64_t inflight = fake_launched(fake_stream(2)) - before - done;
		most = inflight > most ? inflight : most;
		usleep(1000);
		if (inflight)
			fake_complete(fake_stream(2), before + ++done);
	}
	join_launcher(l);
	fake_complete_all();
	while (device()->inflight)
		usleep(1000);
	return most;
}

/*
 * Predicted to be long enough that the patience, 100 ms here, outlasts most pauses of a busy machine. If a pause is longer, all
 * later launches pass until work ends, as they should: such a try proves nothing.
 */
static void test_depth_is_bounded_by_predicted_time(void **state)
{
	uint64_t most = 0;
	uint32_t stuck = 1;

	fake_elapsed_us = 15000;
	teach(fake_stream(2));
	fake_control->device[0].depth_ns = 60 * NS_PER_MS;
	start_helper();
	for (int tries = 0; tries < 10 && stuck; tries++) {
		uint32_t before = own()->stuck;
		most = most_in_flight();
		stuck = own()->stuck - before;
	}
	print_message("at most %llu of 15 ms in flight, bound 60 ms\n", (unsigned long long)most);
	assert_int_equal(stuck, 0);
	assert_in_range(most, 3, 5);
}

static void test_two_of_middle_length_pass(void **state)
{
	fake_elapsed_us = 10000;
	teach(fake_stream(2));
	fake_control->device[0].depth_ns = 1 * NS_PER_MS;
	launch(fake_stream(2));
	launch(fake_stream(2));
	/* Nothing ends here: had it waited, it would have given up. */
	assert_int_equal(own()->stuck, 0);
	assert_int_equal(device()->inflight, 2);
	fake_complete_all();
}

/* One kernel that lasts a whole lease is enough; a launch behind it waits for a bounded time. */
static void test_a_second_long_one_waits(void **state)
{
	fake_elapsed_us = 500000;
	teach(fake_stream(2));
	fake_control->device[0].depth_ns = 1 * NS_PER_MS;
	launch(fake_stream(2));
	assert_int_equal(own()->stuck, 0);
	uint64_t begin = sys_now_ns();
	launch(fake_stream(2));
	assert_in_range(sys_now_ns() - begin, 50 * NS_PER_MS, NOT_FOR_EVER_NS);
	assert_int_equal(device()->inflight, 2);
	fake_complete_all();
}

static void test_a_stall_is_waited_for_once(void **state)
{
	teach(fake_stream(2));
	fake_control->device[0].depth_ns = 4 * KERNEL_NS;
	start_helper();
	for (int i = 0; i < 4; i++)
		launch(fake_stream(2));
	uint64_t full = sys_now_ns();
	assert_int_equal(own()->stuck, 0);
	launch(fake_stream(2)); /* no work ends: gives up after 4 x 4 ms */
	uint64_t gave_up = sys_now_ns();
	assert_in_range(gave_up - full, 10 * NS_PER_MS, NOT_FOR_EVER_NS);
	assert_true(own()->stuck >= 1);
	for (int i = 0; i < 900; i++)
		launch(fake_stream(2));
	/* Each by itself would be nine seconds. */
	assert_true(sys_now_ns() - gave_up < NOT_FOR_EVER_NS);
	/* Up to a second of predicted work; from there on each one waits, but never for long. */
	for (int i = 0; i < 200 && device()->inflight_ns < (int64_t)NS_PER_S; i++)
		launch(fake_stream(2));
	uint64_t deep = sys_now_ns();
	launch(fake_stream(2));
	assert_in_range(sys_now_ns() - deep, 50 * NS_PER_MS, NOT_FOR_EVER_NS);
	/* Something ends: from then on the bound holds again. */
	uint32_t stuck = own()->stuck;
	fake_complete_all();
	for (int i = 0; i < 100 && device()->inflight; i++)
		usleep(1000);
	assert_int_equal(device()->inflight, 0);
	for (int i = 0; i < 4; i++)
		launch(fake_stream(2));
	assert_int_equal(own()->stuck, stuck);
	launch(fake_stream(2));
	assert_int_equal(own()->stuck, stuck + 1);
}

/* The helper was stopped as well: until it has polled, it is unknown whether work has ended. */
static void test_time_in_which_the_process_stood_still_is_no_wait(void **state)
{
	teach(fake_stream(2));
	/* The longest patience: 100 ms, which is 200 naps. */
	fake_control->device[0].depth_ns = 30 * KERNEL_NS;
	for (int i = 0; i < 30; i++)
		launch(fake_stream(2));
	assert_int_equal(own()->stuck, 0);
	uint64_t reads = fake_clock_reads();
	fake_clock_jump_after(4, NS_PER_S);
	launch(fake_stream(2));
	assert_int_equal(own()->stuck, 1);
	assert_true(fake_clock_reads() - reads > 2 * 200);
	fake_complete_all();
}

/* How much is in flight at most while one ends each millisecond. */
static uint64_t most_in_free_run(void)
{
	uint64_t done = fake_launched(fake_stream(2)), end = done + 100, most = 0;
	struct launcher *l;

	l = start_launcher(fake_stream(2), 0);
	while (done < end) {
		usleep(1000);
		uint64_t launched = fake_launched(fake_stream(2));
		if (launched > done)
			fake_complete(fake_stream(2), ++done);
		if (launched > done && launched - done > most)
			most = launched - done;
	}
	l->stop = true;
	fake_complete_all();
	fake_process_set_lease(LEASE_GO);
	join_launcher(l);
	fake_complete_all();
	fake_process_set_lease(LEASE_FREE);
	return most;
}

static void test_free_run_is_bounded_too(void **state)
{
	struct launcher *l;
	uint64_t most = 0;

	/* The average length is learned from work that ends: 1 ms each, or more on a busy machine. */
	start_helper();
	l = start_launcher(fake_stream(2), 100);
	for (uint64_t done = 0; done < 100;) {
		usleep(1000);
		if (fake_launched(fake_stream(2)) > done)
			fake_complete(fake_stream(2), ++done);
	}
	join_launcher(l);
	/* Of a bound of 50 ms. The helper may not have had a processor meanwhile: then once more. */
	for (int i = 0; i < 3 && (most < 2 || most > 499); i++)
		most = most_in_free_run();
	print_message("free run: at most %llu in flight, bound 50 ms\n", (unsigned long long)most);
	assert_in_range(most, 2, 499);
}

/* So much is predicted to be in flight that the next launch waits; the prediction can't tell when that ends. */
static void pretend_in_flight(int64_t ns, int32_t launches)
{
	atomic_fetch_add(&device()->inflight_ns, ns);
	atomic_fetch_add(&device()->inflight, launches);
	fast_path_close(FAST_PATH_ALL);
}

/* Its steps bound the work of a tenant that the hardware slices. Predictions that contain others' slices must not hold it. */
static void test_a_sliced_tenant_may_have_its_step_in_flight(void **state)
{
	fake_process_set_lease(LEASE_FREE);
	fake_control->device[0].free_depth_ns = 10 * NS_PER_MS;
	launch(fake_stream(2));
	pretend_in_flight(90 * NS_PER_MS, 10);
	fake_control->device[0].sync_point_wanted = SYNC_POINT_ENDS_USE;
	launch(fake_stream(2));
	assert_int_equal(own()->stuck, 0);
	assert_non_null(fast_path_pass(fake_stream(2)));
	pretend_in_flight(20 * NS_PER_MS, 1);
	launch(fake_stream(2));
	assert_int_equal(own()->stuck, 1);
	fake_control->device[0].sync_point_wanted = SYNC_POINT_UNTOLD;
	fake_complete_all();
}

/*
 * Work that is predicted to be in flight may have ended long ago, and polls are a millisecond apart. So a launch that would
 * wait first lets the helper poll all of its own work, once. On a busy machine the poll may come so late that the launch gives
 * up: such a try proves nothing.
 */
static void test_in_free_run_a_wait_begins_with_a_poll(void **state)
{
	uint32_t woken = 0, wakes = 0, unmarked = 1, stuck = 1;
	struct inflight_stream *s;

	launch(fake_stream(2));
	s = inflight_cache.stream;
	for (int tries = 0; tries < 10 && stuck; tries++) {
		uint32_t before = own()->stuck;
		struct launcher *l;

		atomic_store(&s->mark_every, 100);
		launch(fake_stream(2));
		assert_true(s->unmarked > 0);
		pretend_in_flight(100 * NS_PER_MS, 2);
		woken = fake_wakes;
		l = start_launcher(fake_stream(2), 1);
		assert_true(becomes(&device()->waiters, 1));
		/* Several naps. */
		usleep(3000);
		wakes = fake_wakes - woken;
		unmarked = s->unmarked;
		pretend_in_flight(-100 * NS_PER_MS, -2);
		join_launcher(l);
		stuck = own()->stuck - before;
	}
	assert_int_equal(stuck, 0);
	assert_int_equal(wakes, 1);
	assert_int_equal(unmarked, 0);
	fake_complete_all();
}

/* Under a lease the helper polls often anyway. */
static void test_under_a_lease_it_does_not(void **state)
{
	struct launcher *l;
	uint32_t woken;

	teach(fake_stream(2));
	fake_control->device[0].depth_ns = 1 * NS_PER_MS;
	launch(fake_stream(2));
	launch(fake_stream(2));
	woken = fake_wakes;
	l = start_launcher(fake_stream(2), 1);
	assert_true(becomes(&device()->waiters, 1));
	fake_complete_all();
	start_helper();
	join_launcher(l);
	assert_int_equal(fake_wakes, woken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		launching_test(test_depth_is_bounded_by_predicted_time),
		launching_test(test_two_of_middle_length_pass),
		launching_test(test_a_second_long_one_waits),
		launching_test(test_a_stall_is_waited_for_once),
		launching_test(test_time_in_which_the_process_stood_still_is_no_wait),
		launching_test(test_free_run_is_bounded_too),
		launching_test(test_a_sliced_tenant_may_have_its_step_in_flight),
		launching_test(test_in_free_run_a_wait_begins_with_a_poll),
		launching_test(test_under_a_lease_it_does_not),
	};

	return cmocka_run_group_tests_name("depth", tests, NULL, NULL);
}
