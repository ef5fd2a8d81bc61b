/* Waiting for room on the GPU: as long as the daemon expects some, or else for a minute. */
#include "../test.h"

#include "../fake_process.h"
#include "library/loader/real.h"
#include "library/memory/swap_hold.h"
#include "library/memory/swap_room.h"

#define LONG_AGO (3600 * NS_PER_S)

static unsigned tries;
static uint64_t most_wanted;

static int set_up(void **state)
{
	fake_process_start(2);
	swap_room_reset();
	tries = 0;
	most_wanted = 0;
	return 0;
}

static void test_a_thread_that_may_expect_room_waits_on(void **state)
{
	uint64_t since_ns = sys_now_ns() - LONG_AGO, before = since_ns;

	fake_control->swap_hope = 1;
	assert_true(swap_wait_for_room(&since_ns));
	/* The clock may have begun less than LONG_AGO ago: then `before` is near the largest number. */
	assert_true(since_ns - before > LONG_AGO / 2);
	fake_control->swap_hope = 0;
	/* The minute begins when hope ended. */
	assert_true(swap_wait_for_room(&since_ns));
	since_ns = before;
	assert_false(swap_wait_for_room(&since_ns));
	assert_int_equal(since_ns, before);
}

static void test_a_lost_daemon_gives_no_hope(void **state)
{
	uint64_t since_ns = sys_now_ns(), before = since_ns - LONG_AGO;

	fake_control->swap_hope = 1;
	process_state.daemon_lost = true;
	assert_true(swap_wait_for_room(&since_ns)); /* the next request may find some */
	since_ns = before;
	assert_false(swap_wait_for_room(&since_ns));
	process_state.daemon_lost = false;
}

static void test_a_process_that_ends_does_not_wait(void **state)
{
	uint64_t since_ns = sys_now_ns();
	uint32_t mode = process_state.mode;

	fake_control->swap_hope = 1;
	process_state.mode = PROCESS_LEAVING;
	assert_false(swap_wait_for_room(&since_ns));
	process_state.mode = mode;
}

/* Fails for want of room until the third try. */
static CUresult try_three_times(void)
{
	if (swap_wanted_bytes(1) > most_wanted)
		most_wanted = swap_wanted_bytes(1);
	if (++tries == 3)
		return CUDA_SUCCESS;
	swap_room_record_shortage(1, 4096, false);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static void test_a_call_is_made_until_there_is_room(void **state)
{
	process_state.detours = DETOUR_HOLD;
	fake_control->swap_hope = 1;
	assert_int_equal(WITH_ROOM(try_three_times()), CUDA_SUCCESS);
	assert_int_equal(tries, 3);
	assert_int_equal(most_wanted, 4096);
	assert_int_equal(swap_wanted_bytes(1), 0);
	process_state.detours = 0;
}

static CUresult answer(CUresult result)
{
	tries++;
	return result;
}

static void test_what_fails_for_another_reason_is_not_made_again(void **state)
{
	process_state.detours = DETOUR_HOLD;
	fake_control->swap_hope = 1;
	swap_room_record_shortage(0, 1, true); /* of a call before */
	assert_int_equal(WITH_ROOM(answer(CUDA_ERROR_OUT_OF_MEMORY)), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(WITH_ROOM(answer(CUDA_ERROR_INVALID_VALUE)), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(tries, 2);
	assert_int_equal(swap_wanted_bytes(0), 0);
	process_state.detours = 0;
}

static size_t free_bytes;

static CUresult get_info(size_t *ret_free, size_t *ret_total)
{
	*ret_free = free_bytes;
	*ret_total = 80ULL << 30;
	return CUDA_SUCCESS;
}

/* Refused by the driver until the tenth try. */
static CUresult refuse(void)
{
	if (++tries == 10)
		return CUDA_SUCCESS;
	swap_room_record_shortage(0, 1ULL << 30, true);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static void test_a_refusal_beside_free_memory_is_final(void **state)
{
	process_state.detours = DETOUR_HOLD;
	fake_control->swap_hope = 1;
	real.cuMemGetInfo_v2 = get_info;
	free_bytes = 40ULL << 30;
	assert_int_equal(WITH_ROOM(refuse()), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(tries, 2); /* one more, for a GPU that was full until just now */
	assert_int_equal(swap_wanted_bytes(0), 0);
	tries = 0;
	free_bytes = 1ULL << 30;
	assert_int_equal(WITH_ROOM(refuse()), CUDA_SUCCESS);
	assert_int_equal(tries, 10);
	/* If the state of no context is known, it waits. */
	tries = 0;
	real.cuMemGetInfo_v2 = NULL;
	assert_int_equal(WITH_ROOM(refuse()), CUDA_SUCCESS);
	assert_int_equal(tries, 10);
	process_state.detours = 0;
}

static CUresult in_the_hold(void)
{
	assert_true(swap_enter());
	CUresult result = WITH_ROOM(try_three_times());
	swap_leave();
	return result;
}

/* It would keep the process' own memory from leaving. */
static void test_inside_the_hold_no_thread_waits(void **state)
{
	process_state.detours = DETOUR_HOLD;
	fake_control->swap_hope = 1;
	assert_int_equal(in_the_hold(), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(tries, 1);
	assert_int_equal(most_wanted, 0);
	/* The call around it does. */
	assert_int_equal(WITH_ROOM(in_the_hold()), CUDA_SUCCESS);
	assert_int_equal(tries, 3);
	process_state.detours = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_thread_that_may_expect_room_waits_on, set_up),
		cmocka_unit_test_setup(test_a_lost_daemon_gives_no_hope, set_up),
		cmocka_unit_test_setup(test_a_process_that_ends_does_not_wait, set_up),
		cmocka_unit_test_setup(test_a_call_is_made_until_there_is_room, set_up),
		cmocka_unit_test_setup(test_what_fails_for_another_reason_is_not_made_again, set_up),
		cmocka_unit_test_setup(test_a_refusal_beside_free_memory_is_final, set_up),
		cmocka_unit_test_setup(test_inside_the_hold_no_thread_waits, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
