/* Work in flight: its counts and marks, and that failed or ended work leaves nothing behind. */
#include "../launching.h"

#include "../../fake_clock.h"
#include "library/launch/inflight/inflight_settle.h"
#include "library/launch/inflight/inflight_overflow.h"

/* More streams than there are records, by fewer than may be in flight beyond them. */
#define MANY (INFLIGHT_STREAMS + 60)

static void test_free_run_counts_and_passes(void **state)
{
	for (int i = 0; i < 1000; i++) {
		launch(fake_stream(2));
		if (i % 50 == 0) {
			fake_complete_all();
			inflight_poll(sys_now_ns(), 0, 0);
		}
	}
	assert_int_equal(inflight_launches(0), 1000);
	assert_int_equal(own()->launching, 0);
	assert_int_equal(own()->busy, 1);
	fake_complete_all();
	inflight_poll(sys_now_ns(), 1, 0);
	assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 0);
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
	inflight_poll(sys_now_ns(), 0, 0);
	usleep(500);
	fake_complete_all();
	inflight_poll(sys_now_ns(), 0, 0);
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

/* Number of marks that the helper records in this many samples of a device in free run, while one stream has work, or none. */
static uint64_t marks_in_samples(int looks, bool goes_on)
{
	uint64_t marks = 0;

	for (int i = 0; i < looks; i++) {
		if (goes_on)
			launch(fake_stream(2));
		uint64_t before = fake_counts().records;
		assert_int_equal(inflight_poll(sys_now_ns(), 0, 1), 1);
		marks += fake_counts().records - before;
	}
	return marks;
}

static void test_a_quiet_stream_is_marked_once_its_device_is_quiet(void **state)
{
	for (int i = 0; i < 50; i++) {
		short_kernels(fake_stream(3));
		short_kernels(fake_stream(2));
	}
	fake_complete_all();
	inflight_poll(sys_now_ns(), 1, 0);
	launch(fake_stream(3));
	assert_int_equal(marks_in_samples(20, true), 0);
	assert_int_equal(marks_in_samples(1, false), 2);
	fake_complete_all();
	assert_int_equal(inflight_poll(sys_now_ns(), 0, 1), 0);
	/* Under a lease, unmarked work counts as in flight, so a mark is recorded as soon as the stream is quiet. */
	launch(fake_stream(3));
	launch(fake_stream(2));
	inflight_poll(sys_now_ns(), 0, 0);
	launch(fake_stream(2));
	uint64_t records = fake_counts().records;
	inflight_poll(sys_now_ns(), 0, 0);
	assert_int_equal(fake_counts().records, records + 1);
	fake_complete_all();
}

static void test_the_helper_records_nothing_during_a_capture(void **state)
{
	/* Leave a tail that is not marked: with a known average, marks come seldom. */
	for (int i = 0; i < 50; i++)
		short_kernels(fake_stream(2));
	fake_complete_all();
	inflight_poll(sys_now_ns(), 1, 0);
	launch(fake_stream(2));
	inflight_capture_begins();
	uint64_t records = fake_counts().records;
	for (int i = 0; i < 5; i++)
		assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 1);
	assert_int_equal(fake_counts().records, records);
	inflight_capture_ended();
	inflight_poll(sys_now_ns(), 1, 0);
	assert_int_equal(fake_counts().records, records + 1);
	fake_complete_all();
	assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 0);
}

/*
 * The helper has no context. If the GPU keeps up, marks are rare, so most places of the ring have no event when a tail needs
 * one. The tail may be in a default stream.
 */
static void test_a_tail_is_marked_without_a_context(void **state)
{
	for (int stream = 0; stream <= 2; stream += 2) {
		CUcontext context = FAKE_CONTEXT;

		for (int i = 0; i < 10; i++) {
			launch(fake_stream((unsigned)stream));
			fake_complete_all();
			inflight_poll(sys_now_ns(), 1, 0);
			inflight_poll(sys_now_ns(), 1, 0);
		}
		launch(fake_stream((unsigned)stream));
		fake_set_current(NULL);
		for (int i = 0; i < 5; i++)
			assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 1);
		assert_int_equal(real.cuCtxGetCurrent(&context), CUDA_SUCCESS);
		assert_null(context);
		fake_complete_all();
		assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 0);
		fake_set_current(FAKE_CONTEXT);
	}
}

static void test_a_dropped_stream_takes_its_work_along(void **state)
{
	fake_process_set_lease(LEASE_GO);
	fake_control->device[0].depth_ns = 1ULL << 60;
	for (int i = 0; i < 100; i++)
		launch(fake_stream(2));
	assert_true(device()->inflight > 0);
	inflight_drop_stream(fake_stream(2));
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(device()->inflight_ns, 0);
	assert_int_equal(inflight_launches(0), 100);
	assert_int_equal(fake_counts().creates, fake_counts().destroys);
	assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 0);
	/* The same handle again, as a driver reuses them. */
	launch(fake_stream(2));
	assert_int_equal(device()->inflight, 1);
	fake_complete_all();
	inflight_poll(sys_now_ns(), 1, 0);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(inflight_launches(0), 101);
	assert_int_equal(fake_counts().queries_after_destroy, 0);
}

static void test_a_dropped_context_takes_its_streams_along(void **state)
{
	fake_process_set_lease(LEASE_GO);
	fake_control->device[0].depth_ns = 1ULL << 60;
	for (unsigned i = 0; i < 8; i++)
		launch(fake_stream(i));
	assert_int_equal(device()->inflight, 8);
	uint64_t queries = fake_counts().queries;
	inflight_drop_context(FAKE_CONTEXT);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 0);
	assert_int_equal(fake_counts().queries, queries);
}

static void test_a_failed_launch_leaves_nothing(void **state)
{
	fake_process_set_lease(LEASE_GO);
	for (int i = 0; i < 10; i++)
		launch_with(fake_stream(2), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(inflight_launches(0), 0);
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
	fake_process_set_lease(LEASE_GO);
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

/* Kernels of as many kinds, launched `rounds` times each before any is seen to end. Returns how many are known then. */
static unsigned known_after(CUstream stream, unsigned kinds, unsigned rounds)
{
	unsigned known = 0;

	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned i = 0; i < kinds; i++) {
			launched_function = (const char *)launched_function + 64;
			launch(stream);
		}
		launched_function = (const char *)launched_function - (size_t)kinds * 64;
	}
	fake_complete_all();
	inflight_poll(sys_now_ns(), 0, 0);
	for (unsigned i = 1; i <= kinds; i++)
		known += atomic_load(&estimate_of(&(struct work){
							  .kind = WORK_IS_KERNEL,
							  .subject = (const char *)launched_function +
								     (size_t)i * 64,
							  .blocks = 132,
							  .threads = 256 })
					      ->ns) != 0;
	launched_function = (const char *)launched_function + ((size_t)kinds + 1) * 64;
	return known;
}

/*
 * A trial of space is short and may have kernels of many kinds. Under a lease of its own, time does not matter, and events cost
 * time.
 */
static void test_many_are_timed_at_once_in_a_trial_of_space(void **state)
{
	fake_process_set_lease(LEASE_GO);
	fake_control->device[0].depth_ns = 1ULL << 60;
	assert_int_equal(known_after(fake_stream(2), 20, 1), 1);
	fake_control->space_pct_x100[0] = 10000;
	assert_int_equal(known_after(fake_stream(2), 12, 1), 12);
	assert_int_equal(known_after(fake_stream(2), 40, 1), INFLIGHT_SAMPLES);
	/* All were given back, and those of a stream that goes end with it. */
	assert_int_equal(known_after(fake_stream(2), 12, 2), 12);
	for (int i = 0; i < 12; i++)
		launch(fake_stream(2));
	inflight_drop_stream(fake_stream(2));
	assert_int_equal(fake_counts().creates, fake_counts().destroys);
	assert_int_equal(known_after(fake_stream(2), 12, 1), 12);
	/* Beside others it takes any time: one at a time is enough. */
	fake_control->device[0].granted = 1ULL << 60;
	fake_process_set_lease(LEASE_PACED);
	assert_int_equal(known_after(fake_stream(2), 12, 1), 1);
	fake_control->space_pct_x100[0] = 0;
	assert_int_equal(fake_counts().queries_after_destroy, 0);
}

/* Launches that failed, and marks without room, keep no entry. */
static void test_samples_are_given_back(void **state)
{
	fake_process_set_lease(LEASE_GO);
	fake_control->device[0].depth_ns = 1ULL << 60;
	fake_control->space_pct_x100[0] = 10000;
	for (int i = 0; i < 100; i++)
		launch_with(fake_stream(2), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(known_after(fake_stream(2), 10, 1), 10);
	fake_record_fails = true;
	known_after(fake_stream(2), 10, 1);
	fake_record_fails = false;
	assert_int_equal(known_after(fake_stream(2), 10, 1), 10);
	fake_control->space_pct_x100[0] = 0;
}

/* The driver would crash if asked about an event. */
static void test_a_handle_of_nothing_is_the_drivers_to_refuse(void **state)
{
	CUstream none[] = { (CUstream)(1ULL << 62), (CUstream)8, (CUstream)UINT64_MAX };

	fake_process_set_lease(LEASE_GO);
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		assert_int_equal(launch_with(none[i], CUDA_ERROR_INVALID_HANDLE),
				 CUDA_ERROR_INVALID_HANDLE);
		inflight_capture_begins();
		assert_int_equal(launch_with(none[i], CUDA_ERROR_INVALID_HANDLE),
				 CUDA_ERROR_INVALID_HANDLE);
		inflight_capture_ended();
	}
	assert_int_equal(fake_counts().records, 0);
}

static void test_synchronous_work_leaves_nothing_in_flight(void **state)
{
	struct work w = { .kind = WORK_IS_SYNC, .subject = "cuMemcpy", .blocks = 4096 };
	struct gate_pass pass;

	fake_process_set_lease(LEASE_GO);
	gate_enter(&pass, &w);
	assert_int_equal(own()->launching, 1);
	gate_leave(&pass, &w, CUDA_SUCCESS);
	assert_int_equal(own()->launching, 0);
	assert_int_equal(device()->inflight, 0);
}

/* Launches once into each of `count` streams from `first` on. */
static void launch_into_many(unsigned first, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		launch(fake_stream(first + i));
}

/* Streams that leave no record free, with nothing in flight. */
static void use_up_records(void)
{
	for (unsigned i = 2; i < MANY; i += 64) {
		launch_into_many(i, i + 64 < MANY ? 64 : MANY - i);
		fake_complete_all();
		inflight_poll(sys_now_ns(), 1, 0);
	}
	assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 0);
	assert_true(atomic_load(&inflight_streams[INFLIGHT_STREAMS].in_use));
}

static bool has_record(unsigned stream)
{
	struct work w = fake_kernel(fake_stream(stream), launched_function);

	return !inflight_is_overflow(inflight_stream_of(&w));
}

/* The first of the streams from `from` on that has no record. */
static unsigned without_record(unsigned from)
{
	while (from < MANY && has_record(from))
		from++;
	assert_true(from < MANY);
	return from;
}

static void test_streams_beyond_the_records_are_counted(void **state)
{
	use_up_records();
	/* Under a lease, where each launch counts at once. */
	fake_process_set_lease(LEASE_GO);
	fake_control->device[0].depth_ns = 1ULL << 60;
	launch_into_many(2, MANY - 2);
	assert_int_equal(device()->inflight, MANY - 2);
	assert_int_equal(own()->busy, 1);
	/* Whichever ends first is taken off: marks of several streams have no order. */
	unsigned one = without_record(2);
	fake_complete(fake_stream(one), fake_launched(fake_stream(one)));
	assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 1);
	assert_int_equal(device()->inflight, MANY - 3);
	fake_complete_all();
	assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 0);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(device()->inflight_ns, 0);
	assert_int_equal(inflight_launches(0), 2 * (MANY - 2));
}

static void test_depth_bounds_streams_beyond_the_records(void **state)
{
	use_up_records();
	teach(fake_stream(2));
	fake_control->device[0].depth_ns = 10 * KERNEL_NS;
	fake_control->device[0].long_work_ns = KERNEL_NS;
	unsigned one = without_record(3), launches = 0;
	/* No work ends: the first launch that has to wait gives up. */
	for (; !own()->stuck && launches < INFLIGHT_OVERFLOW_MARKS / 2; launches++)
		launch(fake_stream(one));
	assert_int_equal(launches, 11);
	fake_complete_all();
}

/* So that the next launch has to wait. */
static void fill_half(unsigned stream)
{
	for (unsigned i = 0; i < INFLIGHT_OVERFLOW_MARKS / 2; i++)
		launch(fake_stream(stream));
	assert_int_equal(inflight_streams[INFLIGHT_STREAMS].overflow_marks,
			 INFLIGHT_OVERFLOW_MARKS / 2);
}

static void test_a_full_set_of_marks_holds_launches_back(void **state)
{
	use_up_records();
	unsigned one = without_record(2);
	fill_half(one);
	struct launcher *l = start_launcher(fake_stream(one), INFLIGHT_OVERFLOW_MARKS / 2);
	assert_true(becomes(&device()->waiters, 1));
	start_helper();
	while (!l->has_ended) {
		fake_complete_all();
		usleep(100);
	}
	join_launcher(l);
	assert_int_equal(l->launches, INFLIGHT_OVERFLOW_MARKS / 2);
}

/* The patience is 200 naps. The helper stood still too: see test_depth.c. */
static void test_time_in_which_the_process_stood_still_is_no_wait(void **state)
{
	use_up_records();
	unsigned one = without_record(2);
	fill_half(one);
	uint64_t reads = fake_clock_reads();
	fake_clock_jump_after(4, NS_PER_S);
	launch(fake_stream(one));
	assert_true(fake_clock_reads() - reads > 2 * 200);
}

static void test_marks_that_never_end_are_not_waited_for(void **state)
{
	/* Like kernels that wait for the program: each launch goes on after a while, and each is counted. */
	use_up_records();
	unsigned one = without_record(2);
	for (unsigned i = 0; i < INFLIGHT_OVERFLOW_MARKS / 2 + 2; i++)
		launch(fake_stream(one));
	assert_int_equal(device()->inflight, INFLIGHT_OVERFLOW_MARKS / 2 + 2);
	struct inflight_stream *record = &inflight_streams[INFLIGHT_STREAMS];
	for (unsigned i = 0; i < INFLIGHT_OVERFLOW_MARKS; i++)
		assert_true(inflight_overflow_mark(record, fake_stream(one), KERNEL_NS));
	assert_int_equal(record->overflow_marks, INFLIGHT_OVERFLOW_MARKS);
	fake_complete_all();
	uint32_t launches;
	uint64_t ns;
	sys_lock(&record->lock);
	inflight_overflow_reap(record, &launches, &ns);
	sys_unlock(&record->lock);
	assert_int_equal(launches, INFLIGHT_OVERFLOW_MARKS / 2 + 2 + INFLIGHT_OVERFLOW_MARKS);
	assert_int_equal(record->overflow_marks, 0);
}

static void test_a_context_takes_its_marks_beyond_the_records_along(void **state)
{
	use_up_records();
	unsigned one = without_record(2);
	launch(fake_stream(one));
	uint64_t destroys = fake_counts().destroys;
	inflight_drop_context(FAKE_CONTEXT);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(fake_counts().destroys, destroys);
	assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 0);
	assert_true(has_record(one));
}

static void test_a_stream_beyond_the_records_gets_one_that_is_free(void **state)
{
	use_up_records();
	unsigned one = without_record(2);
	launch(fake_stream(one));
	for (unsigned i = 2; i < MANY; i++)
		if (i != one)
			inflight_drop_stream(fake_stream(i));
	assert_true(has_record(one));
	fake_complete_all();
	assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 0);
	assert_int_equal(device()->inflight, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		launching_test(test_free_run_counts_and_passes),
		launching_test(test_free_run_marks_seldom),
		launching_test(test_a_quiet_stream_is_marked_once_its_device_is_quiet),
		launching_test(test_the_helper_records_nothing_during_a_capture),
		launching_test(test_a_tail_is_marked_without_a_context),
		launching_test(test_a_dropped_stream_takes_its_work_along),
		launching_test(test_a_dropped_context_takes_its_streams_along),
		launching_test(test_a_failed_launch_leaves_nothing),
		launching_test(test_marks_that_fail_leave_nothing),
		launching_test(test_many_are_timed_at_once_in_a_trial_of_space),
		launching_test(test_samples_are_given_back),
		launching_test(test_a_handle_of_nothing_is_the_drivers_to_refuse),
		launching_test(test_synchronous_work_leaves_nothing_in_flight),
		launching_test(test_streams_beyond_the_records_are_counted),
		launching_test(test_depth_bounds_streams_beyond_the_records),
		launching_test(test_a_full_set_of_marks_holds_launches_back),
		launching_test(test_time_in_which_the_process_stood_still_is_no_wait),
		launching_test(test_marks_that_never_end_are_not_waited_for),
		launching_test(test_a_context_takes_its_marks_beyond_the_records_along),
		launching_test(test_a_stream_beyond_the_records_gets_one_that_is_free),
	};

	return cmocka_run_group_tests_name("inflight", tests, NULL, NULL);
}
