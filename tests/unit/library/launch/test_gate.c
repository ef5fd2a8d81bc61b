/* Which launches pass the gate, and when: leases, captures, a lost daemon. The test plays the daemon. */
#include "launching.h"

#include <sched.h>

static void blocks_in(enum lease_state shut)
{
	struct launcher *l;

	fake_process_set_lease(shut);
	l = start_launcher(fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	usleep(120000); /* through two naps */
	assert_int_equal(l->launches, 0);
	assert_int_equal(fake_launched(fake_stream(2)), 0);
	fake_process_set_lease(LEASE_GO);
	join_launcher(l);
	assert_int_equal(l->launches, 1);
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

/*
 * Under the tenant's lease another process may have the turn: the launch waits for its turn, and the daemon learns of the wait.
 */
static void test_waits_for_its_turn(void **state)
{
	struct launcher *l;

	fake_process_set_lease(LEASE_GO);
	fake_process_set_turn(2);
	uint32_t rings = fake_report->bell[0].ring_count;
	l = start_launcher(fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	usleep(120000); /* through two naps */
	assert_int_equal(l->launches, 0);
	assert_int_equal(fake_report->bell[0].ring_count, rings + 1);
	/* Another's again, then its own. */
	fake_process_set_turn(3);
	usleep(20000);
	assert_int_equal(l->launches, 0);
	fake_process_set_turn(1);
	join_launcher(l);
	assert_int_equal(l->launches, 1);
	assert_int_equal(own()->waiting, 0);
	assert_int_equal(own()->launching, 0);
}

/* Without leases turns do not count: in free run, or while the daemon is lost, no launch waits for one. */
static void test_turns_are_of_leases_alone(void **state)
{
	fake_process_set_turn(2);
	fake_process_set_lease(LEASE_FREE);
	launch(fake_stream(2));
	fake_process_set_lease(LEASE_GO);
	atomic_store(&process_state.daemon_lost, true);
	launch(fake_stream(2));
	assert_int_equal(fake_launched(fake_stream(2)), 2);
}

#define STORM_THREADS 4

/* The daemon relies on this: after CLOSING, once `launching` is 0, no launch reaches the driver until the next GO. */
static void test_closing_misses_no_thread(void **state)
{
	struct launcher *l[STORM_THREADS];
	unsigned rounds;

	fake_control->device[0].depth_ns = fake_control->device[0].free_depth_ns = 1ULL << 60;
	fake_process_set_lease(LEASE_GO);
	for (unsigned i = 0; i < STORM_THREADS; i++)
		l[i] = start_launcher(fake_stream(2 + i), 0);
	for (rounds = 0; rounds < 1500; rounds++) {
		uint64_t before = 0, after = 0;

		fake_process_set_lease(LEASE_CLOSING);
		while (atomic_load(&own()->launching))
			sched_yield();
		for (unsigned i = 0; i < STORM_THREADS; i++)
			before += fake_launched(fake_stream(2 + i));
		usleep(rounds % 10 ? 0 : 500);
		for (unsigned i = 0; i < STORM_THREADS; i++)
			after += fake_launched(fake_stream(2 + i));
		/* A thread may be counted for a moment and step back; none may launch. */
		if (before != after)
			break;
		fake_process_set_lease(LEASE_GO);
		fake_complete_all();
		usleep(rounds % 10 ? 50 : 1000);
	}
	fake_process_set_lease(LEASE_GO);
	for (unsigned i = 0; i < STORM_THREADS; i++)
		l[i]->stop = true;
	for (unsigned i = 0; i < STORM_THREADS; i++)
		join_launcher(l[i]);
	assert_int_equal(rounds, 1500);
	assert_int_equal(own()->launching, 0);
	assert_int_equal(own()->waiting, 0);
	fake_complete_all();
	for (int i = 0; i < 3; i++)
		inflight_poll(sys_now_ns(), 1, 0);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(device()->inflight_ns, 0);
}

static void test_a_capture_is_not_gated(void **state)
{
	fake_process_set_lease(LEASE_STOP);
	inflight_capture_begins();
	fake_set_capturing(fake_stream(3), true);
	for (int i = 0; i < 100; i++) /* a launch that is held would never return */
		launch(fake_stream(3));
	assert_int_equal(fake_counts().records_in_capture, 0);
	assert_int_equal(own()->launching, 0);
	assert_int_equal(inflight_launches(0), 0);
	fake_set_capturing(fake_stream(3), false);
	inflight_capture_ended();
	assert_int_equal(process_state.captures, 0);
	inflight_capture_ended(); /* one end too many */
	assert_int_equal(process_state.captures, 0);
}

static void test_beside_a_capture_others_are_gated(void **state)
{
	struct launcher *l;

	fake_process_set_lease(LEASE_STOP);
	inflight_capture_begins();
	fake_set_capturing(fake_stream(3), true);
	l = start_launcher(fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	usleep(20000);
	assert_int_equal(l->launches, 0);
	fake_process_set_lease(LEASE_GO);
	join_launcher(l);
	inflight_capture_ended();
}

static void test_a_lost_daemon_lets_pass(void **state)
{
	fake_process_set_lease(LEASE_STOP);
	atomic_store(&process_state.daemon_lost, true);
	for (int i = 0; i < 100; i++) { /* a launch that is held would never return */
		launch(fake_stream(2));
		fake_complete_all();
		inflight_poll(sys_now_ns(), 1, 0);
	}
	assert_int_equal(inflight_launches(0), 100);
}

static void test_a_lost_daemon_leaves_the_own_cap(void **state)
{
	struct launcher *l;

	fake_process_set_lease(LEASE_STOP);
	atomic_store(&process_state.daemon_lost, true);
	atomic_store(&fake_local_cap_allows, false);
	l = start_launcher(fake_stream(2), 1);
	usleep(50000);
	assert_int_equal(l->launches, 0);
	assert_int_equal(own()->launching, 0);
	atomic_store(&fake_local_cap_allows, true);
	join_launcher(l);
	assert_int_equal(l->launches, 1);
}

static void test_a_waiting_thread_goes_on_without_the_daemon(void **state)
{
	struct launcher *l;

	fake_process_set_lease(LEASE_STOP);
	l = start_launcher(fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	atomic_store(&process_state.daemon_lost, true); /* no thread wakes the waiter */
	join_launcher(l);
	assert_int_equal(own()->waiting, 0);
}

static void test_a_waiting_thread_moves_to_a_new_region(void **state)
{
	struct region_control *old_control = fake_control;
	struct launcher *l;

	fake_process_set_lease(LEASE_STOP);
	l = start_launcher(fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	fake_control = NULL; /* the old pages stay mapped, as the library keeps them */
	fake_process_start(1);
	join_launcher(l);
	assert_int_equal(l->launches, 1);
	assert_int_equal(own()->launching, 0);
	assert_true(old_control != fake_control);
}

static void test_a_process_without_a_tenant_is_not_gated(void **state)
{
	fake_process_set_lease(LEASE_STOP);
	atomic_store(&process_state.mode, PROCESS_PLAIN);
	launch(fake_stream(2));
	assert_int_equal(fake_launched(fake_stream(2)), 1);
	assert_int_equal(fake_counts().creates, 0);
	/* A process that leaves while one of its threads waits: let go. */
	atomic_store(&process_state.mode, PROCESS_ACTIVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		launching_test(test_waits_while_stopped),
		launching_test(test_waits_while_closing),
		launching_test(test_waits_for_its_turn),
		launching_test(test_turns_are_of_leases_alone),
		launching_test(test_closing_misses_no_thread),
		launching_test(test_a_capture_is_not_gated),
		launching_test(test_beside_a_capture_others_are_gated),
		launching_test(test_a_lost_daemon_lets_pass),
		launching_test(test_a_lost_daemon_leaves_the_own_cap),
		launching_test(test_a_waiting_thread_goes_on_without_the_daemon),
		launching_test(test_a_waiting_thread_moves_to_a_new_region),
		launching_test(test_a_process_without_a_tenant_is_not_gated),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
