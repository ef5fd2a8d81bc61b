/* The hold: which threads may enter, which wait, and what the thread that closes it can rely on. */
#include "../test.h"

#include <pthread.h>

#include "../fake_clock.h"
#include "../fake_process.h"
#include "library/memory/swap_hold.h"

#define THREADS 4

static _Atomic uint32_t moving; /* memory is being moved */
static _Atomic uint64_t calls;
static _Atomic bool stop;

static void *caller(void *unused)
{
	while (!stop) {
		assert_true(swap_enter());
		/* A call within a call, as hooks have it. */
		assert_true(swap_enter());
		assert_int_equal(moving, 0);
		calls++;
		swap_leave();
		swap_leave();
	}
	return NULL;
}

/* A thousand times: the thread that has closed the hold finds no thread inside, and all go on afterwards. */
static void test_no_thread_is_inside_while_shut(void **state)
{
	pthread_t threads[THREADS];

	stop = false;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, caller, NULL), 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t before = calls;

		assert_true(swap_hold_close(60 * NS_PER_S));
		moving = 1;
		for (volatile int n = 0; n < 1000; n++)
			;
		moving = 0;
		swap_hold_open(true);
		while (calls == before)
			sys_sleep_ns(1000);
	}
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* A thread that is inside and stays there keeps the hold open: the closing thread gives up in time. */
static void test_a_call_that_does_not_return(void **state)
{
	pthread_t thread;
	uint64_t before = calls;

	assert_true(swap_enter());
	assert_false(swap_hold_close(10 * NS_PER_MS));
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, caller, NULL), 0);
	while (calls == before)
		sys_sleep_ns(1000);
	stop = true;
	pthread_join(thread, NULL);
	swap_leave();
	assert_true(swap_hold_close(NS_PER_S));
	swap_hold_open(true);
}

/* The thread inside was stopped as well. The patience is 50 naps of a millisecond. */
static void test_time_in_which_the_process_stood_still_is_no_wait(void **state)
{
	uint64_t reads = fake_clock_reads();

	assert_true(swap_enter());
	fake_clock_jump_after(4, NS_PER_S);
	assert_false(swap_hold_close(50 * NS_PER_MS));
	swap_leave();
	assert_true(fake_clock_reads() - reads > 2 * 50);
}

static void *try_all(void *unused)
{
	assert_int_equal(swap_try_enter(), SWAP_NO_ROOM);
	assert_false(swap_enter());
	swap_enter_to_free();
	swap_leave();
	return NULL;
}

/* Without room on the GPU calls fail, except those that free; the next attempt finds no thread inside. */
static void test_no_room(void **state)
{
	pthread_t thread;

	assert_true(swap_hold_close(NS_PER_S));
	assert_int_equal(swap_try_enter(), SWAP_HOLD_CLOSED);
	swap_hold_open(false);
	assert_int_equal(pthread_create(&thread, NULL, try_all, NULL), 0);
	pthread_join(thread, NULL);
	/* A hold that cannot be closed keeps its state. */
	swap_enter_to_free();
	assert_false(swap_hold_close(NS_PER_MS));
	swap_leave();
	assert_int_equal(swap_try_enter(), SWAP_NO_ROOM);
	assert_true(swap_hold_close(NS_PER_S));
	swap_hold_open(true);
	assert_true(swap_enter());
	swap_leave();
}

/* No thread of a process that ends, or that isn't swappable, is held. */
static void test_which_threads_are_not_held(void **state)
{
	assert_true(swap_hold_close(NS_PER_S));
	atomic_store(&process_state.detours, 0);
	assert_int_equal(swap_try_enter(), SWAP_PASSED);
	swap_leave();
	atomic_store(&process_state.detours, DETOUR_HOLD);
	assert_int_equal(swap_try_enter(), SWAP_HOLD_CLOSED);
	uint32_t mode = atomic_exchange(&process_state.mode, PROCESS_LEAVING);
	assert_true(swap_enter());
	swap_leave();
	atomic_store(&process_state.mode, mode);
	swap_hold_open(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_thread_is_inside_while_shut),
		cmocka_unit_test(test_a_call_that_does_not_return),
		cmocka_unit_test(test_time_in_which_the_process_stood_still_is_no_wait),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_which_threads_are_not_held),
	};

	fake_process_start(1);
	atomic_store(&process_state.detours, DETOUR_HOLD);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
