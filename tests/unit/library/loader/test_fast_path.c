/* The fast path: which launches take it, and that each reason against it closes it. */
#include "../launch/launching.h"

#include <sys/wait.h>

#include "library/launch/fast_path_pass.h"

#define OTHER_CONTEXT ((CUcontext)0xc1)

static bool passes(CUstream stream)
{
	return fast_path_pass(stream) != NULL;
}

/* The first launch passes the gate, and so does each that is due for a mark; the others take the fast path. */
static void open_fast_path(CUstream stream)
{
	assert_false(passes(stream));
	launch(stream);
	assert_true(passes(stream));
}

static void test_opens_with_the_first_launch(void **state)
{
	open_fast_path(fake_stream(2));
	for (int i = 0; i < 1000; i++)
		launch(fake_stream(2));
	assert_true(passes(fake_stream(2)));
	assert_int_equal(inflight_launches(0), 1001);
	assert_int_equal(fake_launched(fake_stream(2)), 1001);
	for (int i = 0; i < 3; i++) { /* the ring is full at first */
		fake_complete_all();
		inflight_poll(sys_now_ns(), 1, 0);
	}
	assert_int_equal(device()->completed, 1001);
	assert_int_equal(device()->inflight, 0);
}

static void test_marks_are_rare_where_the_gpu_keeps_up(void **state)
{
	for (int i = 0; i < 20; i++) {
		launch(fake_stream(2));
		fake_complete_all();
		inflight_poll(sys_now_ns(), 1, 0);
	}
	uint64_t records = fake_counts().records;
	for (int i = 0; i < 5120; i++) {
		launch(fake_stream(2));
		if (i % 64 == 0) {
			fake_complete_all();
			inflight_poll(sys_now_ns(), 0, 0);
		}
	}
	assert_int_equal(fake_counts().records - records, 5120 / 256);
}

static void test_the_only_contexts_default_stream_passes(void **state)
{
	open_fast_path(NULL);
	assert_true(passes(CU_STREAM_LEGACY));
	for (int i = 0; i < 10; i++)
		launch(i % 2 ? NULL : CU_STREAM_LEGACY);
	assert_int_equal(inflight_launches(0), 11);
	assert_int_equal(fake_launched(NULL), 11);
	for (int i = 0; i < 3; i++) {
		fake_complete_all();
		inflight_poll(sys_now_ns(), 1, 0);
	}
	assert_int_equal(device()->completed, 11);
	assert_int_equal(device()->inflight, 0);
}

static void test_no_threads_own_default_stream_passes(void **state)
{
	open_fast_path(fake_stream(2));
	launch(CU_STREAM_PER_THREAD);
	assert_false(passes(CU_STREAM_PER_THREAD));
	assert_true(passes(fake_stream(2)));
}

/* Whether anything was launched there or not. */
static void test_of_several_contexts_no_default_stream_passes(void **state)
{
	open_fast_path(NULL);
	inflight_note_context(FAKE_CONTEXT);
	assert_true(passes(NULL));
	inflight_note_context(OTHER_CONTEXT);
	assert_false(passes(NULL));
	assert_false(passes(CU_STREAM_LEGACY));
	launch(NULL);
	assert_false(passes(NULL));
	fake_set_current(OTHER_CONTEXT);
	launch(NULL);
	assert_false(passes(NULL));
	assert_int_equal(inflight_launches(0), 3);
	open_fast_path(fake_stream(2));
	/* The other context's stream, and a stream of the former only context. */
	inflight_drop_context(OTHER_CONTEXT);
	inflight_drop_context(FAKE_CONTEXT);
	fake_set_current(FAKE_CONTEXT);
	launch(NULL);
	assert_false(passes(NULL));
}

static void test_the_next_only_context_has_the_fast_path(void **state)
{
	open_fast_path(NULL);
	inflight_drop_context(FAKE_CONTEXT);
	assert_false(passes(NULL));
	fake_set_current(OTHER_CONTEXT);
	open_fast_path(NULL);
	assert_int_equal(inflight_launches(0), 2);
}

/* Made past our hooks: a launch into its default stream passes as the only one's, until the next mark. */
static void test_an_unreported_context(void **state)
{
	open_fast_path(NULL);
	fake_set_current(OTHER_CONTEXT);
	for (int i = 0; i < 256 && passes(NULL); i++)
		launch(NULL);
	assert_false(passes(NULL));
	launch(NULL);
	fake_set_current(FAKE_CONTEXT);
	launch(NULL);
	assert_false(passes(NULL));
}

static void test_a_launch_without_a_context_is_not_counted(void **state)
{
	open_fast_path(NULL);
	fake_set_current(NULL);
	assert_int_equal(launch_with(NULL, CUDA_ERROR_INVALID_CONTEXT), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(inflight_launches(0), 1);
}

static void test_an_unknown_stream_takes_the_gate(void **state)
{
	open_fast_path(fake_stream(2));
	assert_false(passes(fake_stream(3)));
	launch(fake_stream(3));
	assert_true(passes(fake_stream(3)));
}

static void test_only_free_run_passes(void **state)
{
	const enum lease_state others[] = { LEASE_STOP, LEASE_CLOSING, LEASE_GO, LEASE_PACED };

	open_fast_path(fake_stream(2));
	for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++) {
		fake_process_set_lease(others[i]);
		assert_false(passes(fake_stream(2)));
	}
	fake_process_set_lease(LEASE_FREE);
	assert_true(passes(fake_stream(2)));
}

/* Another stream's capture, too: it may forbid launches into this stream. */
static void test_a_capture_shuts_it(void **state)
{
	open_fast_path(fake_stream(2));
	inflight_capture_begins();
	assert_false(passes(fake_stream(2)));
	for (int i = 0; i < 10; i++)
		launch(fake_stream(2));
	assert_false(passes(fake_stream(2)));
	inflight_capture_ended();
	open_fast_path(fake_stream(2));
}

static void test_what_falls_idle_is_shown_busy_again(void **state)
{
	open_fast_path(fake_stream(2));
	inflight_show_busy(own(), device(), false);
	open_fast_path(fake_stream(2));
	assert_int_equal(own()->busy, 1);
}

/* The helper polls between a launch's check and its count. */
static void test_idle_found_during_a_launch(void **state)
{
	open_fast_path(fake_stream(2));
	struct inflight_stream *s = fast_path_pass(fake_stream(2));
	assert_non_null(s);
	inflight_show_busy(own(), device(), false);
	fake_launch(fake_stream(2));
	fast_path_leave(s, CUDA_SUCCESS);
	assert_int_equal(own()->busy, 1);
	assert_true(passes(fake_stream(2)));
}

static void test_a_failed_launch_is_not_counted(void **state)
{
	open_fast_path(fake_stream(2));
	assert_int_equal(launch_with(fake_stream(2), CUDA_ERROR_LAUNCH_FAILED),
			 CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(inflight_launches(0), 1);
}

static void test_a_full_depth_shuts_it(void **state)
{
	open_fast_path(fake_stream(2));
	/* A launch under a lease is predicted, and counts. */
	teach(fake_stream(3));
	fake_control->device[0].depth_ns = 1ULL << 60;
	for (uint64_t ns = 0; ns < 60 * NS_PER_MS; ns += KERNEL_NS)
		launch(fake_stream(3));
	fake_process_set_lease(LEASE_FREE);
	assert_false(passes(fake_stream(2)));
	fake_complete_all();
	inflight_poll(sys_now_ns(), 1, 0);
	open_fast_path(fake_stream(2));
}

static void test_a_gone_stream_does_not_pass(void **state)
{
	open_fast_path(fake_stream(2));
	inflight_drop_stream(fake_stream(2));
	open_fast_path(fake_stream(2));
	inflight_drop_context(FAKE_CONTEXT);
	assert_false(passes(fake_stream(2)));
}

static void test_a_process_that_leaves_shuts_it_for_good(void **state)
{
	open_fast_path(fake_stream(2));
	atomic_store(&process_state.mode, PROCESS_LEAVING);
	fast_path_close(FAST_PATH_ALL);
	fast_path_try_open(0);
	assert_false(passes(fake_stream(2)));
}

static void test_a_forked_child_finds_it_shut(void **state)
{
	open_fast_path(fake_stream(2));
	pid_t pid = fork();
	if (pid == 0)
		_exit(passes(fake_stream(2)) || atomic_load(&fast_path.open));
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(passes(fake_stream(2)));
}

static void *launch_beside(void *context)
{
	const _Atomic bool *stop = context;

	while (!*stop)
		launch(fake_stream(2));
	return NULL;
}

/* Two threads launch, and a third one sometimes finds the device idle: afterwards the device must not be reported idle. */
static void test_busy_is_shown_after_each_storm(void **state)
{
	for (int round = 0; round < 50; round++) {
		_Atomic bool stop = false;
		pthread_t thread[2];

		for (int i = 0; i < 2; i++)
			assert_int_equal(
				pthread_create(&thread[i], NULL, launch_beside, (void *)&stop), 0);
		for (int i = 0; i < 20; i++) {
			inflight_show_busy(own(), device(), false);
			usleep(50);
		}
		stop = true;
		for (int i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
		launch(fake_stream(2));
		assert_int_equal(own()->busy, 1);
		assert_true(device()->shows_busy);
		fake_complete_all();
		inflight_poll(sys_now_ns(), 1, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		launching_test(test_opens_with_the_first_launch),
		launching_test(test_marks_are_rare_where_the_gpu_keeps_up),
		launching_test(test_the_only_contexts_default_stream_passes),
		launching_test(test_no_threads_own_default_stream_passes),
		launching_test(test_of_several_contexts_no_default_stream_passes),
		launching_test(test_the_next_only_context_has_the_fast_path),
		launching_test(test_an_unreported_context),
		launching_test(test_a_launch_without_a_context_is_not_counted),
		launching_test(test_an_unknown_stream_takes_the_gate),
		launching_test(test_only_free_run_passes),
		launching_test(test_a_capture_shuts_it),
		launching_test(test_what_falls_idle_is_shown_busy_again),
		launching_test(test_idle_found_during_a_launch),
		launching_test(test_a_failed_launch_is_not_counted),
		launching_test(test_a_full_depth_shuts_it),
		launching_test(test_a_gone_stream_does_not_pass),
		launching_test(test_a_process_that_leaves_shuts_it_for_good),
		launching_test(test_a_forked_child_finds_it_shut),
		launching_test(test_busy_is_shown_after_each_storm),
	};

	return cmocka_run_group_tests_name("fast_path", tests, NULL, NULL);
}
