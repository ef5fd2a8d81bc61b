/*
 * What is known to be in flight: what is counted and marked, and that nothing is left of what failed
 * or is gone.
 */
#include "launching.h"

static void test_free_run_counts_and_passes(void **state)
{
	for (int i = 0; i < 1000; i++) {
		launch(fake_stream(2));
		if (i % 50 == 0) {
			fake_complete_all();
			flight_poll(sys_now_ns(), 0);
		}
	}
	assert_int_equal(flight_launches(0), 1000);
	assert_int_equal(own()->launching, 0);
	assert_int_equal(own()->busy, 1);
	fake_complete_all();
	flight_poll(sys_now_ns(), 1);
	assert_int_equal(flight_poll(sys_now_ns(), 1), 0);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(device()->inflight_ns, 0);
	assert_int_equal(device()->completed, 1000);
}

/* 24 launches that take about a millisecond together, seen half done and done. */
static void short_kernels(CUstream stream)
{
	for (int i = 0; i < 24; i++)
		launch(stream);
	fake_complete(stream, fake_launched(stream) - 12);
	flight_poll(sys_now_ns(), 0);
	usleep(500);
	fake_complete_all();
	flight_poll(sys_now_ns(), 0);
}

static void test_free_run_marks_seldom(void **state)
{
	for (int i = 0; i < 50; i++)
		short_kernels(fake_stream(2));
	uint64_t records = fake_counts().records;
	for (int i = 0; i < 50; i++)
		short_kernels(fake_stream(2));
	assert_in_range(fake_counts().records - records, 18, 150);
}

static void test_the_helper_records_nothing_during_a_capture(void **state)
{
	/* Leave a tail that is not marked: with a known average, marks come seldom. */
	for (int i = 0; i < 50; i++)
		short_kernels(fake_stream(2));
	fake_complete_all();
	flight_poll(sys_now_ns(), 1);
	launch(fake_stream(2));
	flight_capture_begins();
	uint64_t records = fake_counts().records;
	for (int i = 0; i < 5; i++)
		assert_int_equal(flight_poll(sys_now_ns(), 1), 1);
	assert_int_equal(fake_counts().records, records);
	flight_capture_ended();
	flight_poll(sys_now_ns(), 1);
	assert_int_equal(fake_counts().records, records + 1);
	fake_complete_all();
	assert_int_equal(flight_poll(sys_now_ns(), 1), 0);
}

/*
 * The helper has no context. Where the GPU keeps up marks come seldom, so that most places of the ring
 * have no event when it comes to a tail; and the tail may be in a default stream.
 */
static void test_a_tail_is_marked_without_a_context(void **state)
{
	for (int stream = 0; stream <= 2; stream += 2) {
		CUcontext context = FAKE_CONTEXT;

		for (int i = 0; i < 10; i++) {
			launch(fake_stream((unsigned)stream));
			fake_complete_all();
			flight_poll(sys_now_ns(), 1);
			flight_poll(sys_now_ns(), 1);
		}
		launch(fake_stream((unsigned)stream));
		fake_set_current(NULL);
		for (int i = 0; i < 5; i++)
			assert_int_equal(flight_poll(sys_now_ns(), 1), 1);
		assert_int_equal(real.cuCtxGetCurrent(&context), CUDA_SUCCESS);
		assert_null(context);
		fake_complete_all();
		assert_int_equal(flight_poll(sys_now_ns(), 1), 0);
		fake_set_current(FAKE_CONTEXT);
	}
}

static void test_a_dropped_stream_takes_its_work_along(void **state)
{
	fake_guest_set_lease(LEASE_GO);
	fake_control->device[0].depth_ns = 1ULL << 60;
	for (int i = 0; i < 100; i++)
		launch(fake_stream(2));
	assert_true(device()->inflight > 0);
	flight_drop_stream(fake_stream(2));
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(device()->inflight_ns, 0);
	assert_int_equal(flight_launches(0), 100);
	assert_int_equal(fake_counts().creates, fake_counts().destroys);
	assert_int_equal(flight_poll(sys_now_ns(), 1), 0);
	/* The same handle again, as a driver reuses them. */
	launch(fake_stream(2));
	assert_int_equal(device()->inflight, 1);
	fake_complete_all();
	flight_poll(sys_now_ns(), 1);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(flight_launches(0), 101);
	assert_int_equal(fake_counts().queries_after_destroy, 0);
}

static void test_a_dropped_context_takes_its_streams_along(void **state)
{
	fake_guest_set_lease(LEASE_GO);
	fake_control->device[0].depth_ns = 1ULL << 60;
	for (unsigned i = 0; i < FAKE_STREAMS; i++)
		launch(fake_stream(i));
	assert_int_equal(device()->inflight, FAKE_STREAMS);
	uint64_t queries = fake_counts().queries;
	flight_drop_context(FAKE_CONTEXT);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(flight_poll(sys_now_ns(), 1), 0);
	assert_int_equal(fake_counts().queries, queries);
}

static void test_a_failed_launch_leaves_nothing(void **state)
{
	fake_guest_set_lease(LEASE_GO);
	for (int i = 0; i < 10; i++)
		launch_with(fake_stream(2), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(flight_launches(0), 0);
	assert_int_equal(own()->launching, 0);
	teach(fake_stream(2)); /* samples are still taken */
	assert_in_range(atomic_load(&estimate_of(&(struct work){ .kind = WORK_IS_KERNEL,
								 .subject = launched_function,
								 .blocks = 132,
								 .threads = 256 })
					     ->ns),
			KERNEL_NS - 1000, KERNEL_NS + 1000);
}

static void test_marks_that_fail_leave_nothing(void **state)
{
	fake_guest_set_lease(LEASE_GO);
	fake_record_fails = true;
	for (int i = 0; i < 1000; i++)
		launch(fake_stream(2));
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(device()->inflight_ns, 0);
	fake_record_fails = false;
	launch(fake_stream(2));
	assert_int_equal(device()->inflight, 1);
	fake_complete_all();
}

static void test_synchronous_work_leaves_nothing_in_flight(void **state)
{
	struct work w = { .kind = WORK_IS_SYNC, .subject = "cuMemcpy", .blocks = 4096 };
	struct gate_pass pass;

	fake_guest_set_lease(LEASE_GO);
	gate_enter(&pass, &w);
	assert_int_equal(own()->launching, 1);
	gate_leave(&pass, &w, CUDA_SUCCESS);
	assert_int_equal(own()->launching, 0);
	assert_int_equal(device()->inflight, 0);
}

static void test_more_streams_than_there_are_records(void **state)
{
	/* Handles that are never dereferenced: the free run of a program that leaks streams. */
	real.cuEventCreate = NULL;
	for (uintptr_t i = 0; i < 5000; i++) {
		struct work w = fake_kernel((CUstream)(0x10000 + i * 64), launched_function);
		struct gate_pass pass;
		w.kind = WORK_IS_KERNEL;
		gate_enter(&pass, &w);
		assert_non_null(pass.device);
		gate_leave(&pass, &w, CUDA_ERROR_LAUNCH_FAILED);
	}
	assert_int_equal(own()->launching, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		launching_test(test_free_run_counts_and_passes),
		launching_test(test_free_run_marks_seldom),
		launching_test(test_the_helper_records_nothing_during_a_capture),
		launching_test(test_a_tail_is_marked_without_a_context),
		launching_test(test_a_dropped_stream_takes_its_work_along),
		launching_test(test_a_dropped_context_takes_its_streams_along),
		launching_test(test_a_failed_launch_leaves_nothing),
		launching_test(test_marks_that_fail_leave_nothing),
		launching_test(test_synchronous_work_leaves_nothing_in_flight),
		launching_test(test_more_streams_than_there_are_records),
	};

	return cmocka_run_group_tests_name("flight", tests, NULL, NULL);
}
