/*
 * Gate and flight: what may pass when, what is known to be in flight, and that no wait lasts for ever.
 * The daemon and the helper thread are played by the test, the driver ends work when told to.
 */
#include "test.h"

#include <pthread.h>
#include <sched.h>

#include "fake_driver.h"
#include "fake_guest.h"
#include "interpose/gate.h"

#define KERNEL_NS (1 * NS_PER_MS)

/* Each test's own: what was learned of a kernel outlives a test. */
static const void *function = (const void *)0xf00;

static struct region_slot_device *own(void)
{
	return &fake_report->slot[0].device[0];
}

static struct flight_device *device(void)
{
	return &flight_devices[0];
}

/* ---- the helper ---- */

static _Atomic bool helper_runs;
static pthread_t helper;

static void *play_helper(void *unused)
{
	while (helper_runs) {
		flight_poll(sys_now_ns(), 0);
		usleep(100);
	}
	return NULL;
}

static void start_helper(void)
{
	helper_runs = true;
	assert_int_equal(pthread_create(&helper, NULL, play_helper, NULL), 0);
}

static void stop_helper(void)
{
	if (helper_runs) {
		helper_runs = false;
		pthread_join(helper, NULL);
	}
}

static int start(void **state)
{
	function = (const char *)function + 64;
	flight_reset();
	fake_driver_start();
	fake_guest_start(1);
	fake_elapsed_us = KERNEL_NS / NS_PER_US;
	return 0;
}

static int end(void **state)
{
	stop_helper();
	return 0;
}

/* ---- launching ---- */

static CUresult launch_with(CUstream stream, CUresult result)
{
	struct work w = fake_kernel(stream, function);
	struct gate_pass pass;

	gate_enter(&pass, &w);
	if (result == CUDA_SUCCESS)
		fake_launch(stream);
	gate_leave(&pass, &w, result);
	return result;
}

static void launch(CUstream stream)
{
	launch_with(stream, CUDA_SUCCESS);
}

/* Lets the gate learn how long the kernel takes: three samples, seen to end. */
static void teach(CUstream stream)
{
	fake_guest_set_lease(LEASE_GO);
	for (int i = 0; i < 4; i++) {
		launch(stream);
		fake_complete_all();
		flight_poll(sys_now_ns(), 1);
	}
	flight_poll(sys_now_ns(), 1);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(device()->inflight_ns, 0);
}

/* Threads that launch until stopped. */
struct launcher {
	pthread_t thread;
	CUstream stream;
	_Atomic bool stop;
	_Atomic uint64_t launches;
	uint64_t limit; /* 0: until stopped */
	uint64_t longest_ns;
};

static void *launch_on(void *context)
{
	struct launcher *l = context;

	while (!l->stop && (!l->limit || l->launches < l->limit)) {
		uint64_t begin = sys_now_ns();
		launch(l->stream);
		uint64_t took = sys_now_ns() - begin;
		if (took > l->longest_ns)
			l->longest_ns = took;
		l->launches++;
	}
	return NULL;
}

static void start_launcher(struct launcher *l, CUstream stream, uint64_t limit)
{
	memset(l, 0, sizeof(*l));
	l->stream = stream;
	l->limit = limit;
	assert_int_equal(pthread_create(&l->thread, NULL, launch_on, l), 0);
}

/* True when the word has the value within a second. */
static bool becomes(const _Atomic uint32_t *word, uint32_t value)
{
	for (int i = 0; i < 1000; i++) {
		if (atomic_load(word) == value)
			return true;
		usleep(1000);
	}
	return false;
}

/* ---- tests ---- */

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

static void blocks_in(enum lease_state shut)
{
	struct launcher l;

	fake_guest_set_lease(shut);
	start_launcher(&l, fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	usleep(120000); /* through two naps */
	assert_int_equal(l.launches, 0);
	assert_int_equal(fake_launched(fake_stream(2)), 0);
	fake_guest_set_lease(LEASE_GO);
	pthread_join(l.thread, NULL);
	assert_int_equal(l.launches, 1);
	assert_int_equal(own()->waiting, 0);
	assert_int_equal(own()->launching, 0);
	assert_true(own()->waited_ns > 100 * NS_PER_MS);
}

static void test_waits_while_stopped(void **state)
{
	blocks_in(LEASE_STOP);
}

static void test_waits_while_closing(void **state)
{
	blocks_in(LEASE_CLOSING);
}

#define STORM_THREADS 4

/*
 * What the daemon relies on: after CLOSING, once `launching` is 0, nothing more reaches the driver
 * until the next GO.
 */
static void test_closing_misses_nobody(void **state)
{
	struct launcher l[STORM_THREADS];
	unsigned rounds;

	fake_control->device[0].depth_ns = fake_control->device[0].free_depth_ns = 1ULL << 60;
	fake_guest_set_lease(LEASE_GO);
	for (unsigned i = 0; i < STORM_THREADS; i++)
		start_launcher(&l[i], fake_stream(2 + i), 0);
	for (rounds = 0; rounds < 1500; rounds++) {
		uint64_t before = 0, after = 0;

		fake_guest_set_lease(LEASE_CLOSING);
		while (atomic_load(&own()->launching))
			sched_yield();
		for (unsigned i = 0; i < STORM_THREADS; i++)
			before += fake_launched(fake_stream(2 + i));
		usleep(rounds % 10 ? 0 : 500);
		for (unsigned i = 0; i < STORM_THREADS; i++)
			after += fake_launched(fake_stream(2 + i));
		/* A thread may show itself for a moment and step back; none may launch. */
		if (before != after)
			break;
		fake_guest_set_lease(LEASE_GO);
		fake_complete_all();
		usleep(rounds % 10 ? 50 : 1000);
	}
	fake_guest_set_lease(LEASE_GO);
	for (unsigned i = 0; i < STORM_THREADS; i++)
		l[i].stop = true;
	for (unsigned i = 0; i < STORM_THREADS; i++)
		pthread_join(l[i].thread, NULL);
	assert_int_equal(rounds, 1500);
	assert_int_equal(own()->launching, 0);
	assert_int_equal(own()->waiting, 0);
	fake_complete_all();
	for (int i = 0; i < 3; i++)
		flight_poll(sys_now_ns(), 1);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(device()->inflight_ns, 0);
}

static void test_depth_is_bounded_by_predicted_time(void **state)
{
	struct launcher l;
	uint64_t most = 0, done = 0;

	teach(fake_stream(2));
	uint64_t before = fake_launched(fake_stream(2));
	fake_control->device[0].depth_ns = 4 * KERNEL_NS;
	start_helper();
	start_launcher(&l, fake_stream(2), 200);
	while (l.launches < 200) {
		uint64_t inflight = fake_launched(fake_stream(2)) - before - done;
		most = inflight > most ? inflight : most;
		usleep(1000);
		if (inflight)
			fake_complete(fake_stream(2), before + ++done);
	}
	pthread_join(l.thread, NULL);
	print_message("at most %llu of 1 ms in flight, bound 4 ms\n", (unsigned long long)most);
	assert_in_range(most, 3, 5);
	assert_int_equal(own()->stuck, 0);
	fake_complete_all();
}

static void test_two_long_ones_always_pass(void **state)
{
	fake_elapsed_us = 500000;
	teach(fake_stream(2));
	fake_control->device[0].depth_ns = 1 * NS_PER_MS;
	uint64_t begin = sys_now_ns();
	launch(fake_stream(2));
	launch(fake_stream(2));
	assert_true(sys_now_ns() - begin < 5 * NS_PER_MS);
	assert_int_equal(device()->inflight, 2);
	fake_complete_all();
}

static void test_a_stall_is_waited_for_once(void **state)
{
	teach(fake_stream(2));
	fake_control->device[0].depth_ns = 4 * KERNEL_NS;
	start_helper();
	uint64_t begin = sys_now_ns();
	for (int i = 0; i < 4; i++)
		launch(fake_stream(2));
	uint64_t full = sys_now_ns();
	assert_true(full - begin < 10 * NS_PER_MS);
	launch(fake_stream(2)); /* nothing ends: gives up after 4 x 4 ms */
	uint64_t gave_up = sys_now_ns();
	assert_in_range(gave_up - full, 10 * NS_PER_MS, 200 * NS_PER_MS);
	assert_true(own()->stuck >= 1);
	for (int i = 0; i < 900; i++)
		launch(fake_stream(2));
	assert_true(sys_now_ns() - gave_up < 200 * NS_PER_MS);
	/* Up to a second of predicted work; from there on each one waits, but never for long. */
	for (int i = 0; i < 200 && device()->inflight_ns < (int64_t)NS_PER_S; i++)
		launch(fake_stream(2));
	uint64_t deep = sys_now_ns();
	launch(fake_stream(2));
	assert_in_range(sys_now_ns() - deep, 50 * NS_PER_MS, 400 * NS_PER_MS);
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

static void test_free_run_is_bounded_too(void **state)
{
	struct launcher l;

	/* The average is learned from what ends: 1 ms each. */
	start_helper();
	start_launcher(&l, fake_stream(2), 0);
	for (int i = 0; i < 100; i++) {
		usleep(1000);
		fake_complete(fake_stream(2), (uint64_t)i + 1);
	}
	/* Of a bound of 50 ms; what was launched before anything was known counts as nothing. */
	fake_complete_all();
	usleep(10000);
	uint64_t done = fake_launched(fake_stream(2)), most = 0;
	fake_complete(fake_stream(2), done);
	for (int i = 0; i < 100; i++) {
		usleep(1000);
		fake_complete(fake_stream(2), done + (uint64_t)i);
		uint64_t inflight = fake_launched(fake_stream(2)) - done - (uint64_t)i;
		most = inflight > most ? inflight : most;
	}
	l.stop = true;
	fake_complete_all();
	fake_guest_set_lease(LEASE_GO);
	pthread_join(l.thread, NULL);
	print_message("free run: at most %llu in flight, bound 50 ms\n", (unsigned long long)most);
	assert_true(most < 500);
}

static void test_a_capture_is_not_gated(void **state)
{
	fake_guest_set_lease(LEASE_STOP);
	flight_capture_begins();
	fake_set_capturing(fake_stream(3), true);
	uint64_t begin = sys_now_ns();
	for (int i = 0; i < 100; i++)
		launch(fake_stream(3));
	assert_true(sys_now_ns() - begin < 50 * NS_PER_MS);
	assert_int_equal(fake_counts().records_in_capture, 0);
	assert_int_equal(own()->launching, 0);
	assert_int_equal(flight_launches(0), 0);
	fake_set_capturing(fake_stream(3), false);
	flight_capture_ended();
	assert_int_equal(guest.captures, 0);
	flight_capture_ended(); /* one end too many */
	assert_int_equal(guest.captures, 0);
}

static void test_beside_a_capture_others_are_gated(void **state)
{
	struct launcher l;

	fake_guest_set_lease(LEASE_STOP);
	flight_capture_begins();
	fake_set_capturing(fake_stream(3), true);
	start_launcher(&l, fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	usleep(20000);
	assert_int_equal(l.launches, 0);
	fake_guest_set_lease(LEASE_GO);
	pthread_join(l.thread, NULL);
	flight_capture_ended();
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

static void test_a_lost_daemon_lets_pass(void **state)
{
	fake_guest_set_lease(LEASE_STOP);
	atomic_store(&guest.daemon_lost, true);
	uint64_t begin = sys_now_ns();
	for (int i = 0; i < 100; i++) {
		launch(fake_stream(2));
		fake_complete_all();
		flight_poll(sys_now_ns(), 1);
	}
	assert_true(sys_now_ns() - begin < 100 * NS_PER_MS);
}

static void test_a_lost_daemon_leaves_the_own_cap(void **state)
{
	struct launcher l;

	fake_guest_set_lease(LEASE_STOP);
	atomic_store(&guest.daemon_lost, true);
	atomic_store(&fake_local_cap_allows, false);
	start_launcher(&l, fake_stream(2), 1);
	usleep(50000);
	assert_int_equal(l.launches, 0);
	assert_int_equal(own()->launching, 0);
	atomic_store(&fake_local_cap_allows, true);
	pthread_join(l.thread, NULL);
	assert_int_equal(l.launches, 1);
}

static void test_who_waits_when_the_daemon_is_lost_goes_on(void **state)
{
	struct launcher l;

	fake_guest_set_lease(LEASE_STOP);
	start_launcher(&l, fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	uint64_t begin = sys_now_ns();
	atomic_store(&guest.daemon_lost, true); /* nobody wakes the waiter */
	pthread_join(l.thread, NULL);
	assert_true(sys_now_ns() - begin < 200 * NS_PER_MS);
	assert_int_equal(own()->waiting, 0);
}

static void test_who_waits_moves_to_a_new_region(void **state)
{
	struct region_control *old_control = fake_control;
	struct launcher l;

	fake_guest_set_lease(LEASE_STOP);
	start_launcher(&l, fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	fake_control = NULL; /* the old pages stay mapped, as the library keeps them */
	fake_guest_start(1);
	pthread_join(l.thread, NULL);
	assert_int_equal(l.launches, 1);
	assert_int_equal(own()->launching, 0);
	assert_true(old_control != fake_control);
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
								 .subject = function,
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
		struct work w = fake_kernel((CUstream)(0x10000 + i * 64), function);
		struct gate_pass pass;
		w.kind = WORK_IS_KERNEL;
		gate_enter(&pass, &w);
		assert_non_null(pass.device);
		gate_leave(&pass, &w, CUDA_ERROR_LAUNCH_FAILED);
	}
	assert_int_equal(own()->launching, 0);
}

static void test_a_process_without_a_tenant_is_not_gated(void **state)
{
	fake_guest_set_lease(LEASE_STOP);
	atomic_store(&guest.mode, GUEST_PLAIN);
	launch(fake_stream(2));
	assert_int_equal(fake_launched(fake_stream(2)), 1);
	assert_int_equal(fake_counts().creates, 0);
	/* A process that leaves while one of its threads waits: let go. */
	atomic_store(&guest.mode, GUEST_ACTIVE);
}

#define gate_test(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		gate_test(test_free_run_counts_and_passes),
		gate_test(test_free_run_marks_seldom),
		gate_test(test_waits_while_stopped),
		gate_test(test_waits_while_closing),
		gate_test(test_closing_misses_nobody),
		gate_test(test_depth_is_bounded_by_predicted_time),
		gate_test(test_two_long_ones_always_pass),
		gate_test(test_a_stall_is_waited_for_once),
		gate_test(test_free_run_is_bounded_too),
		gate_test(test_a_capture_is_not_gated),
		gate_test(test_beside_a_capture_others_are_gated),
		gate_test(test_the_helper_records_nothing_during_a_capture),
		gate_test(test_a_lost_daemon_lets_pass),
		gate_test(test_a_lost_daemon_leaves_the_own_cap),
		gate_test(test_who_waits_when_the_daemon_is_lost_goes_on),
		gate_test(test_who_waits_moves_to_a_new_region),
		gate_test(test_a_dropped_stream_takes_its_work_along),
		gate_test(test_a_dropped_context_takes_its_streams_along),
		gate_test(test_a_failed_launch_leaves_nothing),
		gate_test(test_marks_that_fail_leave_nothing),
		gate_test(test_synchronous_work_leaves_nothing_in_flight),
		gate_test(test_more_streams_than_there_are_records),
		gate_test(test_a_process_without_a_tenant_is_not_gated),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
