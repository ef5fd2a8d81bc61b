/* ahead_meet.c: events and questions where launches are queued. */
#include "queueing.h"

static CUstream stream(void)
{
	return fake_stream(2);
}

static void test_an_event_that_is_queued_is_not_ready(void **state)
{
	prove(stream());
	fake_guest_set_lease(LEASE_STOP);
	call_kernel(stream(), 1, 1);
	call_record(event_of(0), stream());
	uint64_t begin = sys_now_ns();
	assert_int_equal(call_query(event_of(0)), CUDA_ERROR_NOT_READY);
	assert_true(sys_now_ns() - begin < 10 * NS_PER_MS);
	fake_guest_set_lease(LEASE_GO);
	assert_int_equal(ahead_settle("test"), CUDA_SUCCESS);
	assert_int_equal(call_query(event_of(0)), CUDA_SUCCESS);
}

/* What is asked of others is the driver's to answer, at once. */
static void test_other_events_and_streams_do_not_wait(void **state)
{
	prove(stream());
	fake_guest_set_lease(LEASE_STOP);
	call_kernel(stream(), 1, 1);
	call_record(event_of(0), stream());
	uint64_t begin = sys_now_ns();
	assert_int_equal(call_query(event_of(1)), CUDA_SUCCESS);
	assert_int_equal(call_event_synchronize(event_of(1)), CUDA_SUCCESS);
	assert_int_equal(call_elapsed(event_of(1), event_of(2)), CUDA_SUCCESS);
	assert_int_equal(call_stream_query(fake_stream(3)), CUDA_SUCCESS);
	assert_int_equal(call_stream_synchronize(fake_stream(3)), CUDA_SUCCESS);
	assert_int_equal(call_stream_query(stream()), CUDA_ERROR_NOT_READY);
	assert_int_equal(call_elapsed(event_of(1), event_of(0)), CUDA_ERROR_NOT_READY);
	assert_true(sys_now_ns() - begin < 20 * NS_PER_MS);
	assert_true(ahead_is_pending());
}

static void wait_for_event(void)
{
	call_event_synchronize(event_of(0));
}

static void wait_for_stream(void)
{
	call_stream_synchronize(stream());
}

static void wait_for_default_stream(void)
{
	call_stream_synchronize(NULL);
}

static void ask_default_stream(void)
{
	call_stream_query(CU_STREAM_LEGACY);
}

static void test_waits_for_what_is_queued(void **state)
{
	static void (*const calls[])(void) = { wait_for_event, wait_for_stream,
					       wait_for_default_stream, ask_default_stream };

	prove(stream());
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct caller c;
		fake_guest_set_lease(LEASE_STOP);
		call_kernel(stream(), 1, 1);
		call_record(event_of(0), stream());
		start_caller(&c, calls[i]);
		assert_true(is_held(&c));
		end_caller(&c);
	}
}

static void record_first(void)
{
	call_record(event_of(0), stream());
}

static void test_events_that_others_know_are_not_queued(void **state)
{
	const uintptr_t none[6] = { 0 };
	struct caller c;
	CUresult result;

	prove(stream());
	assert_false(ahead_meet(THUNK_cuIpcGetEventHandle, none, &result));
	fake_guest_set_lease(LEASE_STOP);
	call_kernel(stream(), 1, 1);
	start_caller(&c, record_first);
	assert_true(is_held(&c));
	end_caller(&c);
}

/* ---- how events begin and end ---- */

/* As libraries do: one for each use, recorded, waited for and gone. */
static void test_a_new_event_is_queued_with_its_end(void **state)
{
	CUevent event;

	prove(stream());
	uint32_t at = noted_count();
	fake_guest_set_lease(LEASE_STOP);
	call_kernel(stream(), 1, 1);
	assert_int_equal(call_create(&event, 2), CUDA_SUCCESS);
	assert_int_equal(call_record(event, stream()), CUDA_SUCCESS);
	assert_int_equal(call_wait(stream(), event), CUDA_SUCCESS);
	assert_int_equal(call_destroy(event), CUDA_SUCCESS);
	assert_int_equal(call_kernel(stream(), 1, 2), CUDA_SUCCESS);
	assert_int_equal(noted_count(), at);
	fake_guest_set_lease(LEASE_GO);
	call_synchronize();
	assert_noted(at++, NOTED_KERNEL, 1);
	assert_noted(at++, NOTED_RECORD, (uintptr_t)event);
	assert_noted(at++, NOTED_WAIT, (uintptr_t)event);
	assert_int_equal(noted[at].kind, NOTED_END);
	assert_int_equal(noted[at++].what, (uintptr_t)event);
	assert_noted(at++, NOTED_KERNEL, 2);
}

static void test_an_event_of_which_nothing_is_queued_ends_at_once(void **state)
{
	prove(stream());
	fake_guest_set_lease(LEASE_STOP);
	call_kernel(stream(), 1, 1);
	uint32_t at = noted_count();
	assert_int_equal(call_destroy(event_of(1)), CUDA_SUCCESS);
	assert_int_equal(noted_count(), at + 1);
	assert_int_equal(noted[at].kind, NOTED_END);
	assert_true(ahead_is_pending());
}

static CUevent shared_event;

static void record_shared(void)
{
	call_record(shared_event, stream());
}

/* One that other processes may come to know has to prove itself. */
static void test_a_new_event_for_other_processes_is_not_queued(void **state)
{
	struct caller c;

	prove(stream());
	fake_guest_set_lease(LEASE_STOP);
	call_kernel(stream(), 1, 1);
	assert_int_equal(call_create(&shared_event, 2 | 4), CUDA_SUCCESS);
	start_caller(&c, record_shared);
	assert_true(is_held(&c));
	end_caller(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		queueing_test(test_an_event_that_is_queued_is_not_ready),
		queueing_test(test_other_events_and_streams_do_not_wait),
		queueing_test(test_waits_for_what_is_queued),
		queueing_test(test_a_new_event_is_queued_with_its_end),
		queueing_test(test_an_event_of_which_nothing_is_queued_ends_at_once),
		queueing_test(test_a_new_event_for_other_processes_is_not_queued),
		queueing_test(test_events_that_others_know_are_not_queued), /* for good: the last */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
