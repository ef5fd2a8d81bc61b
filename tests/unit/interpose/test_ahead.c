/* ahead.c: launches that the gate would hold are queued, and nobody sees that they are late. */
#include "queueing.h"

#include <sys/wait.h>

#include "interpose/ahead_queue.h"
#include "interpose/door.h"

static CUstream stream(void)
{
	return fake_stream(2);
}

static void assert_noted_attribute(uint32_t at, int value)
{
	assert_true(at < noted_count());
	assert_int_equal(noted[at].kind, NOTED_ATTRIBUTE);
	assert_int_equal(noted[at].what, value);
}

/* ---- what is queued ---- */

static void test_held_launches_return_and_come_in_order(void **state)
{
	prove(stream());
	uint32_t before = noted_count();
	fake_guest_set_lease(LEASE_STOP);
	uint64_t begin = sys_now_ns();
	for (uint64_t i = 1; i <= 100; i++)
		assert_int_equal(call_kernel(stream(), 1, i), CUDA_SUCCESS);
	print_message("100 launches without a lease: %llu us\n",
		      (unsigned long long)((sys_now_ns() - begin) / NS_PER_US));
	assert_true(ahead_is_pending());
	assert_int_equal(noted_count(), before);
	assert_true(becomes(&own()->waiting, 1)); /* demand: the feeder waits for the lease */
	fake_guest_set_lease(LEASE_GO);
	assert_int_equal(ahead_settle("test"), CUDA_SUCCESS);
	assert_int_equal(noted_count(), before + 100);
	for (uint32_t i = 0; i < 100; i++)
		assert_noted(before + i, NOTED_KERNEL, i + 1);
	assert_false(ahead_is_pending());
}

static void test_each_kind_keeps_its_place(void **state)
{
	prove(stream());
	call_kernel_packed(stream(), 1, 1);
	call_kernel_configured(stream(), 1, 1);
	call_kernel(fake_stream(0), 1, 1);
	uint32_t at = noted_count();
	fake_guest_set_lease(LEASE_STOP);
	call_kernel(stream(), 1, 1);
	call_set(stream(), KNOWN_MEMORY + 4096, 77, 1024);
	call_kernel_packed(stream(), 1, 2);
	call_record(event_of(3), stream());
	call_copy(stream(), KNOWN_MEMORY, KNOWN_MEMORY + 4096, 4096);
	call_kernel_configured(stream(), 1, 3);
	call_kernel(fake_stream(0), 1, 4); /* the legacy default stream, by its context */
	call_wait(stream(), event_of(3));
	call_kernel(stream(), 1, 5);
	assert_int_equal(noted_count(), at);
	fake_guest_set_lease(LEASE_GO);
	call_synchronize();
	assert_noted(at++, NOTED_KERNEL, 1);
	assert_noted(at++, NOTED_SET, 77);
	assert_noted(at++, NOTED_KERNEL, 2);
	assert_noted(at++, NOTED_RECORD, (uintptr_t)event_of(3));
	assert_noted(at++, NOTED_COPY, 4096);
	assert_noted(at++, NOTED_KERNEL, 3);
	assert_noted(at++, NOTED_KERNEL, 4);
	assert_noted(at++, NOTED_WAIT, (uintptr_t)event_of(3));
	assert_noted(at++, NOTED_KERNEL, 5);
	assert_noted(at++, NOTED_SYNC, 0);
	assert_int_equal(noted_count(), at);
}

static void test_a_launch_behind_what_is_queued_is_queued_too(void **state)
{
	struct region_control_device *c = &fake_control->device[0];

	prove(stream());
	uint32_t before = noted_count();
	fake_guest_set_lease(LEASE_STOP);
	call_kernel(stream(), 1, 1);
	/* Free run comes: the door stays shut, and the order is kept, till all is handed over. */
	atomic_store(&c->lease, (uint32_t)LEASE_FREE); /* nobody is woken: the feeder sleeps on */
	door_offer(0);
	assert_null(door_pass(stream()));
	call_kernel(stream(), 1, 2);
	assert_int_equal(ahead_settle("test"), CUDA_SUCCESS);
	assert_noted(before, NOTED_KERNEL, 1);
	assert_noted(before + 1, NOTED_KERNEL, 2);
	call_kernel(stream(), 1, 3);
	assert_noted(before + 2, NOTED_KERNEL, 3);
}

/* ---- what is not ---- */

static void launch_unproved(void)
{
	call_kernel_of(77, LEGACY, stream(), 1, 1);
}

static void launch_per_thread(void)
{
	call_kernel_of(132, PER_THREAD, NULL, 1, 1);
}

static void launch_per_thread_handle(void)
{
	call_kernel(fake_stream(1), 1, 1);
}

static void launch_on_unknown_stream(void)
{
	call_kernel(fake_stream(3), 1, 1);
}

static void set_unknown_memory(void)
{
	call_set(stream(), KNOWN_MEMORY + KNOWN_BYTES - 8, 1, 3);
}

static void set_crookedly(void)
{
	call_set(stream(), KNOWN_MEMORY + 2, 1, 1);
}

static void copy_from_unknown_memory(void)
{
	call_copy(stream(), KNOWN_MEMORY, 0x1000, 64);
}

static void launch_proved(void)
{
	call_kernel(stream(), 1, 1);
}

static void synchronize(void)
{
	call_synchronize();
}

static void test_what_may_fail_waits_for_its_turn(void **state)
{
	static void (*const calls[])(void) = {
		launch_unproved,          launch_per_thread,  launch_per_thread_handle,
		launch_on_unknown_stream, set_unknown_memory, set_crookedly,
		copy_from_unknown_memory,
	};

	prove(stream());
	call_kernel_of(132, PER_THREAD, NULL, 1, 1);
	call_kernel(fake_stream(1), 1, 1);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct caller c;
		uint32_t before = noted_count();
		fake_guest_set_lease(LEASE_STOP);
		start_caller(&c, calls[i]);
		assert_true(is_held(&c));
		assert_false(ahead_is_pending());
		end_caller(&c);
		assert_int_equal(noted_count(), before + 1);
	}
}

/* Behind what is queued they come second, though they are not queued. */
static void test_what_is_not_queued_waits_for_what_is(void **state)
{
	static void (*const calls[])(void) = { launch_unproved, launch_per_thread,
					       set_unknown_memory, synchronize };

	prove(stream());
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct caller c;
		uint32_t before = noted_count();
		fake_guest_set_lease(LEASE_STOP);
		call_kernel(stream(), 1, 1000 + i);
		start_caller(&c, calls[i]);
		assert_true(is_held(&c));
		end_caller(&c);
		assert_noted(before, NOTED_KERNEL, 1000 + i);
		assert_int_equal(noted_count(), before + 2);
		/* It was proved by that. */
		atomic_fetch_add(&guest.code_gone, 1);
		fake_guest_set_lease(LEASE_GO);
		prove(stream());
	}
}

static void test_proofs_end_with_code_and_streams(void **state)
{
	struct caller c;

	prove(stream());
	atomic_fetch_add(&guest.code_gone, 1);
	fake_guest_set_lease(LEASE_STOP);
	start_caller(&c, launch_proved);
	assert_true(is_held(&c));
	end_caller(&c);
	prove(stream());
	flight_drop_stream(fake_stream(4)); /* none: nothing goes */
	call_kernel(fake_stream(4), 1, 1);
	flight_drop_stream(fake_stream(4));
	fake_guest_set_lease(LEASE_STOP);
	start_caller(&c, launch_proved);
	assert_true(is_held(&c));
	end_caller(&c);
	fake_guest_set_lease(LEASE_STOP);
	launch_proved(); /* by that */
	assert_true(ahead_is_pending());
}

/* Queued launches keep what they need, and the program is told what it has set. */
static void test_less_shared_memory_waits_for_what_is_queued(void **state)
{
	int value;

	prove(stream());
	uint32_t at = noted_count();
	fake_guest_set_lease(LEASE_STOP);
	launch_proved();
	call_set_shared(100 << 10);
	assert_noted_attribute(at, 100 << 10); /* at once */
	launch_proved();
	assert_int_equal(call_set_shared(26 << 10), CUDA_SUCCESS);
	assert_int_equal(call_get_shared(&value), CUDA_SUCCESS);
	assert_int_equal(value, 26 << 10);
	launch_proved();
	assert_int_equal(noted_count(), at + 1);
	fake_guest_set_lease(LEASE_GO);
	assert_int_equal(ahead_settle("test"), CUDA_SUCCESS);
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(noted[at + i].kind, NOTED_KERNEL);
	assert_noted_attribute(at + 4, 26 << 10);
	assert_int_equal(noted_count(), at + 5);
	assert_int_equal(call_get_shared(&value), CUDA_SUCCESS);
	assert_int_equal(value, 26 << 10);
}

/* What is set last holds. */
static void test_more_shared_memory_after_less(void **state)
{
	int value;

	prove(stream());
	call_set_shared(100 << 10);
	uint32_t at = noted_count();
	fake_guest_set_lease(LEASE_STOP);
	launch_proved();
	call_set_shared(26 << 10);
	call_set_shared(100 << 10);
	fake_guest_set_lease(LEASE_GO);
	assert_int_equal(ahead_settle("test"), CUDA_SUCCESS);
	assert_noted_attribute(at, 100 << 10);
	assert_int_equal(noted[at + 1].kind, NOTED_KERNEL);
	assert_int_equal(noted_count(), at + 2);
	assert_int_equal(call_get_shared(&value), CUDA_SUCCESS);
	assert_int_equal(value, 100 << 10);
}

static void set_clusters(void)
{
	call_set_clusters(2);
}

static void test_after_other_attributes_all_is_proved_anew(void **state)
{
	struct caller c;

	prove(stream());
	fake_guest_set_lease(LEASE_STOP);
	launch_proved();
	start_caller(&c, set_clusters);
	assert_true(is_held(&c));
	end_caller(&c);
	fake_guest_set_lease(LEASE_STOP);
	start_caller(&c, launch_proved);
	assert_true(is_held(&c));
	end_caller(&c);
}

static void test_nothing_is_queued_during_a_capture(void **state)
{
	struct caller c;

	prove(stream());
	fake_guest_set_lease(LEASE_STOP);
	call_kernel(stream(), 1, 1);
	uint32_t before = noted_count();
	flight_capture_begins();
	start_caller(&c, launch_proved);
	assert_true(is_held(&c));
	end_caller(&c);
	assert_noted(before, NOTED_KERNEL, 1);
	assert_int_equal(noted_count(), before + 2);
	flight_capture_ended();
}

static void test_without_the_setting_a_launch_is_held(void **state)
{
	struct caller c;

	prove(stream());
	fake_control->device[0].launch_ahead_ns = 0;
	fake_guest_set_lease(LEASE_STOP);
	start_caller(&c, launch_proved);
	assert_true(is_held(&c));
	assert_false(ahead_is_pending());
	end_caller(&c);
}

/* ---- how much ---- */

static _Atomic uint32_t launches;

static void launch_many(void)
{
	for (int i = 0; i < 3000; i++) {
		call_kernel(stream(), 1, (uint64_t)i);
		atomic_fetch_add(&launches, 1);
	}
}

static void assert_bounded(uint32_t low, uint32_t high)
{
	struct caller c;

	atomic_store(&launches, 0);
	fake_guest_set_lease(LEASE_STOP);
	start_caller(&c, launch_many);
	for (int i = 0; i < 10000 && atomic_load(&launches) < low; i++)
		usleep(1000);
	assert_true(is_held(&c));
	print_message("%u launches of 3000 without a lease\n", atomic_load(&launches));
	assert_in_range(atomic_load(&launches), low, high);
	uint32_t before = noted_count();
	end_caller(&c);
	assert_int_equal(ahead_settle("test"), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 3000; i++)
		assert_noted(before + i, NOTED_KERNEL, i);
}

static void test_no_more_than_the_setting_in_time(void **state)
{
	for (int i = 0; i < 8; i++) { /* 1 ms each, as the samples say */
		prove(stream());
		usleep(2000);
	}
	fake_control->device[0].depth_ns = NS_PER_S;
	fake_control->device[0].launch_ahead_ns = 20 * NS_PER_MS;
	assert_bounded(18, 21);
}

static void test_no_more_than_the_driver_takes(void **state)
{
	prove(stream());
	assert_bounded(AHEAD_IN_FLIGHT - 10, AHEAD_IN_FLIGHT);
}

/* Whoever launches may be blocked in it: not the feeder, whom all others wait for. */
static void test_nothing_is_queued_where_the_driver_may_be_full(void **state)
{
	struct caller c;

	prove(stream());
	for (int i = 0; i < 1000 && device()->inflight; i++)
		usleep(1000);
	atomic_fetch_add(&device()->inflight, AHEAD_IN_FLIGHT);
	fake_guest_set_lease(LEASE_STOP);
	start_caller(&c, launch_proved);
	assert_true(is_held(&c));
	assert_false(ahead_is_pending());
	end_caller(&c);
	atomic_fetch_sub(&device()->inflight, AHEAD_IN_FLIGHT);
}

/* An event that is asked for without a pause does not keep what it waits for from coming. */
static void test_polling_does_not_hold_it_up(void **state)
{
	prove(stream());
	fake_guest_set_lease(LEASE_STOP);
	for (int i = 0; i < 500; i++)
		call_kernel(stream(), 1, 1);
	call_record(event_of(0), stream());
	fake_guest_set_lease(LEASE_GO);
	uint64_t begin = sys_now_ns(), polls = 0;
	for (; call_query(event_of(0)) == CUDA_ERROR_NOT_READY; polls++)
		assert_true(sys_now_ns() - begin < 10 * NS_PER_S);
	print_message("500 launches in %llu ms beside %llu queries\n",
		      (unsigned long long)((sys_now_ns() - begin) / NS_PER_MS),
		      (unsigned long long)polls);
}

/* ---- what goes wrong ---- */

static void test_an_error_is_told_once_and_ends_it(void **state)
{
	struct caller c;

	prove(stream());
	fake_guest_set_lease(LEASE_STOP);
	call_kernel(stream(), 1, 1);
	call_kernel(stream(), 1, 2);
	uint32_t before = noted_count();
	next_launch_fails = CUDA_ERROR_OUT_OF_MEMORY;
	fake_guest_set_lease(LEASE_GO);
	assert_int_equal(call_synchronize(), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(call_synchronize(), CUDA_SUCCESS);
	assert_false(ahead_is_pending());
	assert_noted(before, NOTED_KERNEL, 2); /* what came behind it was begun all the same */
	fake_guest_set_lease(LEASE_STOP);
	start_caller(&c, launch_proved);
	assert_true(is_held(&c));
	end_caller(&c);
}

/* What was queued goes on under the tenant's own cap, and nothing more is. */
static void test_a_lost_daemon(void **state)
{
	prove(stream());
	fake_guest_set_lease(LEASE_STOP);
	call_kernel(stream(), 1, 1);
	uint32_t before = noted_count();
	atomic_store(&guest.daemon_lost, true);
	assert_int_equal(ahead_settle("test"), CUDA_SUCCESS);
	assert_noted(before, NOTED_KERNEL, 1);
	call_kernel(stream(), 1, 2);
	assert_noted(before + 1, NOTED_KERNEL, 2);
	atomic_store(&guest.daemon_lost, false);
}

static void assert_off(void)
{
	struct caller c;

	atomic_store(&guest.code_gone, atomic_load(&guest.code_gone) + 1);
	call_kernel(stream(), 1, 1);
	fake_guest_set_lease(LEASE_STOP);
	start_caller(&c, launch_proved);
	assert_true(is_held(&c));
	assert_false(ahead_is_pending());
	end_caller(&c);
}

static void test_past_an_unknown_function_nothing_is_queued(void **state)
{
	prove(stream());
	ahead_bypassed("cuSomethingNew");
	assert_off();
}

static void test_the_environment_switches_it_off(void **state)
{
	environment_allows = false;
	assert_off();
	environment_allows = true;
}

static CUresult newer(int *version)
{
	*version = 99000;
	return CUDA_SUCCESS;
}

static void test_with_a_newer_driver_nothing_is_queued(void **state)
{
	real.cuDriverGetVersion = newer;
	assert_off();
}

/* In the child as guest.c has it: it has no slot, till it joins, and then nothing is queued. */
static void test_a_forked_child_waits_for_nothing(void **state)
{
	prove(stream());
	fake_guest_set_lease(LEASE_STOP);
	call_kernel(stream(), 1, 1);
	pid_t child = fork();
	if (child == 0) {
		atomic_store(&guest.mode, GUEST_UNKNOWN);
		CUresult result = ahead_settle("test");
		ahead_reset();
		_exit(result == CUDA_SUCCESS && !ahead_is_pending() ? 7 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	uint32_t before = noted_count();
	fake_guest_set_lease(LEASE_GO);
	assert_int_equal(ahead_settle("test"), CUDA_SUCCESS);
	assert_noted(before, NOTED_KERNEL, 1); /* the parent's own */
}

static void leave(void)
{
	ahead_leave();
}

/* What comes after main() finds it in the driver; then nobody waits any more. */
static void test_what_is_queued_at_exit_has_its_turn(void **state)
{
	struct caller c;

	prove(stream());
	fake_guest_set_lease(LEASE_STOP);
	uint32_t before = noted_count();
	call_kernel(stream(), 1, 1);
	start_caller(&c, leave);
	assert_true(is_held(&c));
	end_caller(&c);
	assert_noted(before, NOTED_KERNEL, 1);
	atomic_store(&guest.mode, GUEST_LEAVING);
	atomic_store(&guest.ahead, 1);
	assert_int_equal(ahead_settle("test"), CUDA_SUCCESS);
	atomic_store(&guest.ahead, 0);
	atomic_store(&guest.mode, GUEST_ACTIVE);
	ahead_reset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		queueing_test(test_held_launches_return_and_come_in_order),
		queueing_test(test_each_kind_keeps_its_place),
		queueing_test(test_a_launch_behind_what_is_queued_is_queued_too),
		queueing_test(test_what_may_fail_waits_for_its_turn),
		queueing_test(test_what_is_not_queued_waits_for_what_is),
		queueing_test(test_proofs_end_with_code_and_streams),
		queueing_test(test_less_shared_memory_waits_for_what_is_queued),
		queueing_test(test_more_shared_memory_after_less),
		queueing_test(test_after_other_attributes_all_is_proved_anew),
		queueing_test(test_nothing_is_queued_during_a_capture),
		queueing_test(test_without_the_setting_a_launch_is_held),
		queueing_test(test_no_more_than_the_setting_in_time),
		queueing_test(test_no_more_than_the_driver_takes),
		queueing_test(test_nothing_is_queued_where_the_driver_may_be_full),
		queueing_test(test_polling_does_not_hold_it_up),
		queueing_test(test_an_error_is_told_once_and_ends_it),
		queueing_test(test_a_lost_daemon),
		queueing_test(test_past_an_unknown_function_nothing_is_queued),
		queueing_test(test_the_environment_switches_it_off),
		queueing_test(test_with_a_newer_driver_nothing_is_queued),
		queueing_test(test_a_forked_child_waits_for_nothing),
		queueing_test(test_what_is_queued_at_exit_has_its_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
