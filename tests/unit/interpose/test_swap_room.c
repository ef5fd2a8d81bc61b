/* Waiting for room on the card: for as long as the daemon gives hope, else for a minute. */
#include "test.h"

#include "fake_guest.h"
#include "interpose/swap_room.h"

#define LONG_AGO (3600 * NS_PER_S)

static int set_up(void **state)
{
	fake_guest_start(2);
	swap_room_reset();
	return 0;
}

static void test_who_has_hope_waits_on(void **state)
{
	uint64_t since_ns = sys_now_ns() - LONG_AGO, before = since_ns;

	fake_control->swap_hope = 1;
	assert_true(swap_wait_for_room(0, &since_ns));
	assert_true(since_ns > before + LONG_AGO / 2);
	fake_control->swap_hope = 0;
	/* The minute begins when hope ended. */
	assert_true(swap_wait_for_room(0, &since_ns));
	since_ns = before;
	assert_false(swap_wait_for_room(0, &since_ns));
	assert_int_equal(since_ns, before);
}

static void test_a_lost_daemon_gives_no_hope(void **state)
{
	uint64_t since_ns = sys_now_ns(), before = since_ns - LONG_AGO;

	fake_control->swap_hope = 1;
	guest.daemon_lost = true;
	assert_true(swap_wait_for_room(0, &since_ns)); /* the next one may give some */
	since_ns = before;
	assert_false(swap_wait_for_room(0, &since_ns));
	guest.daemon_lost = false;
}

static void test_a_process_that_ends_does_not_wait(void **state)
{
	uint64_t since_ns = sys_now_ns();
	uint32_t mode = guest.mode;

	fake_control->swap_hope = 1;
	guest.mode = GUEST_LEAVING;
	assert_false(swap_wait_for_room(0, &since_ns));
	guest.mode = mode;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_who_has_hope_waits_on, set_up),
		cmocka_unit_test_setup(test_a_lost_daemon_gives_no_hope, set_up),
		cmocka_unit_test_setup(test_a_process_that_ends_does_not_wait, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
