/* Gates in streams: what passes behind one, what it counts for meanwhile, and what opens them. The test is the daemon. */
#include "launching.h"

#include <sched.h>

#include "library/launch/stream_gate.h"

#define QUEUE 4 /* launches of KERNEL_NS that may be behind the gates */

static CUstream a, b;

static int start(void **state)
{
	launching_start(state);
	fake_control->device[0].queue_ns = QUEUE * KERNEL_NS;
	a = fake_stream(2);
	b = fake_stream(3);
	return 0;
}

static int end(void **state)
{
	fake_wait_blocks = false;
	fake_threads_idle = false;
	return launching_end(state);
}

#define gate_test(name) cmocka_unit_test_setup_teardown(name, start, end)

static void wait_for_launches(const struct launcher *l, uint64_t count)
{
	for (int i = 0; i < 1000 && l->launches < count; i++)
		usleep(1000);
	assert_int_equal(l->launches, count);
}

/* `count` launches pass at once, whatever the lease. */
static void passes(CUstream stream, uint64_t count)
{
	struct launcher *l = start_launcher(stream, count);

	wait_for_launches(l, count);
	join_launcher(l);
}

/* A launch stays at the gate. It goes on with the next lease. */
static struct launcher *waits(CUstream stream)
{
	struct launcher *l = start_launcher(stream, 1);

	usleep(30000);
	assert_int_equal(l->launches, 0);
	return l;
}

static void opens(void)
{
	for (int i = 0; i < 1000 && atomic_load(&stream_gate_closed); i++)
		usleep(1000);
	assert_int_equal(stream_gate_closed, 0);
}

static void lease_comes(void)
{
	fake_guest_set_lease(LEASE_GO);
	opens();
}

static struct flight_stream *record(CUstream stream)
{
	return flight_look_up(stream, 0, NULL);
}

/* ---- what passes ---- */

static void test_known_work_waits_in_its_stream(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 3);
	assert_int_equal(fake_launched(a) - fake_begun(a), 3);
	assert_int_equal(fake_counts().waits, 1);
	passes(b, 1);
	assert_int_equal(fake_counts().waits, 2);
	assert_int_equal(fake_begun(b), 0);
	assert_int_equal(own()->waiting, 1);
	assert_int_equal(own()->launching, 0);
	assert_int_equal(own()->waited_ns, 0);
	lease_comes();
	assert_int_equal(fake_begun(a), fake_launched(a));
	assert_int_equal(fake_begun(b), 1);
	assert_int_equal(own()->waiting, 0);
	assert_int_equal(own()->launching, 0);
}

static void test_unknown_work_waits_at_the_gate(void **state)
{
	fake_guest_set_lease(LEASE_STOP);
	struct launcher *l = waits(a);
	assert_int_equal(fake_counts().waits, 0);
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
}

static void test_none_where_the_daemon_allows_none(void **state)
{
	fake_control->device[0].queue_ns = 0;
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	struct launcher *l = waits(a);
	assert_int_equal(fake_counts().waits, 0);
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
}

static void test_room_by_length(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, QUEUE);
	struct launcher *l = waits(a);
	assert_int_equal(own()->waiting, 2);
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
	opens();
	assert_int_equal(own()->waiting, 0);
	/* The room is there again. */
	fake_complete_all();
	flight_poll(sys_now_ns(), 1, 0);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, QUEUE);
}

static void test_room_by_number(void **state)
{
	fake_elapsed_us = 1;
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	struct launcher *l = start_launcher(a, 1000);
	usleep(100000);
	assert_int_equal(l->launches, 256);
	l->stop = true;
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
}

/* As a lease's end comes, work passes that waited for room in it. */
static void test_passes_after_it_has_waited(void **state)
{
	teach(a);
	fake_control->device[0].depth_ns = fake_control->device[0].long_work_ns = 1;
	launch(a);
	struct launcher *l = start_launcher(a, 1);
	usleep(3000);
	assert_int_equal(l->launches, 0);
	fake_guest_set_lease(LEASE_STOP);
	wait_for_launches(l, 1);
	join_launcher(l);
	assert_int_equal(fake_launched(a) - fake_begun(a), 1);
}

static void test_in_another_process_s_turn(void **state)
{
	teach(a);
	fake_guest_set_turn(2);
	passes(a, 1);
	assert_int_equal(fake_launched(a) - fake_begun(a), 1);
	fake_guest_set_turn(3);
	usleep(5000);
	assert_int_equal(stream_gate_closed, 1);
	fake_guest_set_turn(1);
	opens();
}

static void test_not_while_a_capture_is_under_way(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	atomic_store(&guest.captures, 1);
	struct launcher *l = waits(a);
	assert_int_equal(fake_counts().waits, 0);
	atomic_store(&guest.captures, 0);
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
}

/* ---- copies ---- */

struct copy {
	struct work work;
	_Atomic bool is_through;
	pthread_t thread;
};

static void *make_copy(void *context)
{
	struct copy *c = context;
	struct gate_pass pass;

	gate_enter(&pass, &c->work);
	fake_launch(c->work.stream);
	gate_leave(&pass, &c->work, CUDA_SUCCESS);
	c->is_through = true;
	return NULL;
}

static void start_copy(struct copy *c, const char *call, uint64_t bytes)
{
	*c = (struct copy){ .work = { .kind = WORK_IS_COPY,
				      .streams = LEGACY,
				      .stream = a,
				      .subject = call,
				      .blocks = bytes } };
	assert_int_equal(pthread_create(&c->thread, NULL, make_copy, c), 0);
	for (int i = 0; i < 30 && !c->is_through; i++)
		usleep(1000);
}

static void end_copy(struct copy *c)
{
	fake_guest_set_lease(LEASE_GO);
	assert_int_equal(pthread_join(c->thread, NULL), 0);
}

/* Does it pass in this state of the lease, with its length known? */
static bool copy_passes(const char *call, uint64_t bytes, enum lease_state state)
{
	struct copy c;

	fake_guest_set_lease(LEASE_GO);
	for (int i = 0; i < 4; i++) {
		start_copy(&c, call, bytes);
		end_copy(&c);
		fake_complete_all();
		flight_poll(sys_now_ns(), 1, 0);
	}
	fake_guest_set_lease(state);
	start_copy(&c, call, bytes);
	bool is_through = c.is_through;
	end_copy(&c);
	opens();
	fake_complete_all();
	flight_poll(sys_now_ns(), 1, 0);
	return is_through;
}

static void test_copies_whose_call_returns_at_once(void **state)
{
	assert_true(copy_passes("cuMemcpyHtoDAsync_v2", 65536, LEASE_STOP));
	assert_true(copy_passes("cuMemcpyDtoHAsync_v2_ptsz", 4, LEASE_STOP));
	assert_true(copy_passes("cuMemcpyDtoDAsync_v2", 1 << 20, LEASE_STOP));
	assert_true(copy_passes("cuMemsetD8_v2", 1 << 20, LEASE_STOP));
	/* The driver's locks are held while these wait. */
	assert_false(copy_passes("cuMemcpyHtoD_v2", 4, LEASE_STOP));
	assert_false(copy_passes("cuMemcpyDtoH_v2", 4, LEASE_STOP));
	assert_false(copy_passes("cuMemcpyHtoDAsync_v2", 1 << 20, LEASE_STOP));
}

/* It passes where there is no room, and at a lease's end as long as nothing is behind a gate. */
static void test_small_copies_need_no_room(void **state)
{
	struct copy c;

	fake_elapsed_us = 20000; /* four times that is how long a thread waits for room */
	teach(a);
	fake_control->device[0].depth_ns = fake_control->device[0].long_work_ns = 1;
	launch(a);
	start_copy(&c, "cuMemcpyDtoH_v2", 65536);
	assert_true(c.is_through);
	end_copy(&c);
	start_copy(&c, "cuMemcpyDtoH_v2", 65537);
	assert_false(c.is_through);
	fake_complete_all();
	flight_poll(sys_now_ns(), 1, 0);
	end_copy(&c);
	fake_complete_all();
	flight_poll(sys_now_ns(), 1, 0);
	fake_guest_set_lease(LEASE_CLOSING);
	start_copy(&c, "cuMemcpyDtoH_v2", 65536);
	assert_true(c.is_through);
	end_copy(&c);
	fake_complete_all();
	flight_poll(sys_now_ns(), 1, 0);
	fake_guest_set_lease(LEASE_CLOSING);
	passes(b, 1);
	start_copy(&c, "cuMemcpyDtoH_v2", 65536);
	assert_false(c.is_through);
	assert_int_equal(own()->launching, 0);
	end_copy(&c);
	fake_guest_set_lease(LEASE_STOP);
	fake_control->device[0].queue_ns = 0;
	start_copy(&c, "cuMemcpyDtoH_v2", 65536);
	assert_false(c.is_through);
	end_copy(&c);
}

/* ---- what it counts for ---- */

static void test_what_is_behind_a_gate_is_not_in_flight(void **state)
{
	teach(a);
	launch(a);
	uint64_t before = fake_launched(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 3);
	assert_int_equal(flight_inflight_ns(device()), KERNEL_NS);
	assert_int_equal(flight_poll(sys_now_ns(), 1, 0), 1); /* what is before it */
	fake_complete(a, before);
	assert_int_equal(flight_poll(sys_now_ns(), 1, 0), 0);
	assert_int_equal(flight_inflight_ns(device()), 0);
	assert_int_equal(device()->inflight, 3);
	lease_comes();
	assert_true(own()->busy);
	assert_int_equal(flight_poll(sys_now_ns(), 1, 0), 1);
	assert_int_equal(flight_inflight_ns(device()), 3 * KERNEL_NS);
	fake_complete_all();
	assert_int_equal(flight_poll(sys_now_ns(), 1, 0), 0);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(device()->inflight_ns, 0);
}

/* A mark that comes later could be behind an event that is behind the gate. */
static void test_other_streams_are_marked_first(void **state)
{
	fake_elapsed_us = 10;
	teach(a);
	launch(b);
	for (int i = 0; i < 3; i++)
		launch(b);
	assert_int_not_equal(record(b)->unmarked, 0);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
	assert_int_equal(record(b)->unmarked, 0);
}

/* The driver might answer the helper only when the gate is open. */
static void test_nothing_is_recorded_behind_a_gate_by_the_helper(void **state)
{
	fake_elapsed_us = 10;
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 3);
	assert_int_not_equal(record(a)->unmarked, 0);
	uint64_t records = fake_counts().records;
	for (int i = 0; i < 3; i++)
		assert_int_equal(flight_poll(sys_now_ns(), 1, 0), 0);
	assert_int_equal(fake_counts().records, records);
	lease_comes();
	flight_poll(sys_now_ns(), 1, 0);
	assert_int_equal(fake_counts().records, records + 1);
}

/* With no room for a mark, what is before the gate would be taken for what is behind it. */
static void test_not_without_room_for_a_mark(void **state)
{
	fake_control->device[0].depth_ns = NS_PER_S;
	fake_elapsed_us = 300; /* each gets a mark */
	teach(a);
	for (int i = 0; i < FLIGHT_RING + 3; i++)
		launch(a);
	fake_guest_set_lease(LEASE_STOP);
	struct launcher *l = waits(a);
	assert_int_equal(flight_poll(sys_now_ns(), 0, 0), 1);
	assert_int_equal(fake_begun(a), fake_launched(a));
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
}

static void test_a_launch_that_fails_takes_no_room(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
	for (int i = 0; i < 2 * QUEUE; i++)
		assert_int_equal(launch_with(a, CUDA_ERROR_INVALID_VALUE), CUDA_ERROR_INVALID_VALUE);
	passes(a, QUEUE - 1);
	assert_int_equal(flight_inflight_ns(device()), 0);
	lease_comes();
	assert_int_equal(device()->inflight, QUEUE);
	assert_int_equal(own()->launching, 0);
}

/* ---- opening ---- */

static void test_each_lease_opens_what_was_closed(void **state)
{
	teach(a);
	for (int i = 0; i < 20; i++) {
		fake_guest_set_lease(LEASE_STOP);
		passes(a, 2);
		assert_int_equal(own()->waiting, 1);
		assert_int_equal(fake_counts().waits, i + 1);
		uint32_t wakes = fake_wakes;
		lease_comes();
		assert_int_equal(own()->waiting, 0);
		assert_true(fake_wakes > wakes);
		assert_int_equal(fake_begun(a), fake_launched(a));
		fake_complete_all();
		flight_poll(sys_now_ns(), 1, 0);
	}
	assert_int_equal(fake_counts().registers, 1);
}

/* So what it launches may not run before what has gathered. */
static void test_a_thread_that_passes_opens_them_itself(void **state)
{
	fake_threads_idle = true;
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 2);
	fake_guest_set_lease(LEASE_GO);
	usleep(20000);
	assert_int_equal(stream_gate_closed, 1);
	launch(b);
	assert_int_equal(stream_gate_closed, 0);
	assert_int_equal(fake_begun(a), fake_launched(a));
}

static void test_free_run_opens(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
	fake_guest_set_lease(LEASE_FREE);
	opens();
}

static void test_closing_does_not_open(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_CLOSING);
	passes(a, 1);
	fake_guest_set_lease(LEASE_STOP);
	fake_guest_set_lease(LEASE_CLOSING);
	usleep(120000);
	assert_int_equal(stream_gate_closed, 1);
	assert_int_equal(fake_launched(a) - fake_begun(a), 1);
	lease_comes();
}

/* Its work is not marked yet, and would be taken for work behind the gate. */
static void test_not_at_a_lease_s_end_while_a_thread_is_in_the_driver(void **state)
{
	teach(a);
	atomic_fetch_add(&own()->launching, 1);
	fake_guest_set_lease(LEASE_CLOSING);
	struct launcher *l = waits(a);
	assert_int_equal(stream_gate_closed, 0);
	assert_int_equal(own()->waiting, 1);
	atomic_fetch_sub(&own()->launching, 1);
	fake_guest_set_lease(LEASE_STOP);
	wait_for_launches(l, 1);
	join_launcher(l);
}

static void test_a_lost_daemon_opens(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
	atomic_store(&guest.daemon_lost, true);
	opens();
	assert_int_equal(own()->waiting, 0);
	passes(a, 1); /* as in free run */
	assert_int_equal(stream_gate_closed, 0);
}

/* The helper, which would tell, may be in a call that waits for the gates. */
static void test_a_daemon_that_stands_still_opens(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
	for (int i = 0; i < 40; i++) {
		atomic_fetch_add(&fake_control->heartbeat, 1);
		usleep(100000);
		assert_int_equal(stream_gate_closed, 1);
	}
	for (int i = 0; i < 60 && stream_gate_closed; i++)
		usleep(100000);
	assert_int_equal(stream_gate_closed, 0);
}

static void test_a_new_daemon_opens(void **state)
{
	fake_guest_start(2);
	start(state);
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
	struct region_slot_device *old = own();
	fake_guest_take_slot(1);
	opens();
	assert_int_equal(old->waiting, 0);
	assert_int_equal(fake_report->slot[1].device[0].waiting, 0);
	assert_true(fake_report->slot[1].device[0].busy);
	/* Its demand is known to the new one from here on. */
	passes(a, 1);
	assert_int_equal(fake_report->slot[1].device[0].waiting, 1);
	assert_int_equal(old->waiting, 0);
}

static void test_an_order_to_park_opens(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
	atomic_store(&fake_control->swap, SWAP_ORDER_PARKED);
	opens();
	struct launcher *l = waits(a);
	assert_int_equal(stream_gate_closed, 0);
	atomic_store(&fake_control->swap, SWAP_ORDER_IN);
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
}

static void test_the_end_of_a_context_opens(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
	stream_gate_drop_contexts();
	assert_int_equal(stream_gate_closed, 0);
	assert_int_equal(fake_begun(a), fake_launched(a));
	passes(b, 1);
	assert_int_equal(fake_counts().registers, 2);
	assert_int_equal(fake_launched(b) - fake_begun(b), 1);
}

static void test_one_context_has_gates(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
	record(b)->context = (CUcontext)0xc1;
	struct launcher *l = waits(b);
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
}

static void test_a_stream_that_goes_with_its_gate_closed(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 2);
	flight_drop_stream(a);
	/* Another one with the same handle is not behind a gate yet. */
	passes(a, 1);
	assert_int_equal(fake_counts().waits, 2);
	lease_comes();
	fake_complete_all();
	for (int i = 0; i < 3; i++)
		flight_poll(sys_now_ns(), 1, 0);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(flight_inflight_ns(device()), 0);
	assert_int_equal(own()->waiting, 0);
}

static void test_exit_opens_for_good(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
	stream_gate_leave();
	assert_int_equal(stream_gate_closed, 0);
	struct launcher *l = waits(a);
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
}

static void test_a_forked_child_has_none(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
	stream_gate_reset();
	flight_reset();
	fake_guest_take_slot(0);
	atomic_store(&own()->waiting, 0);
	assert_int_equal(stream_gate_closed, 0);
	passes(b, 1);
	assert_int_equal(fake_launched(b) - fake_begun(b), 1);
	lease_comes();
	assert_int_equal(fake_begun(b), fake_launched(b));
	assert_int_equal(own()->waiting, 0);
}

/* ---- the driver ---- */

static void test_off_where_the_driver_can_not(void **state)
{
	teach(a);
	fake_wait_result = CUDA_ERROR_NOT_SUPPORTED;
	fake_guest_set_lease(LEASE_STOP);
	struct launcher *l = waits(a);
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
	opens();
	fake_wait_result = CUDA_SUCCESS;
	uint64_t calls = fake_counts().waits;
	fake_guest_set_lease(LEASE_STOP);
	l = waits(a);
	assert_int_equal(fake_counts().waits, calls);
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
	assert_int_equal(own()->waiting, 0);
	assert_int_equal(own()->launching, 0);
}

static void test_off_where_the_page_can_not_be_had(void **state)
{
	teach(a);
	fake_register_result = CUDA_ERROR_OUT_OF_MEMORY;
	fake_guest_set_lease(LEASE_STOP);
	struct launcher *l = waits(a);
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
	/* Each try would cost the program's launches. */
	fake_guest_set_lease(LEASE_STOP);
	l = waits(a);
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
	assert_int_equal(fake_counts().registers, 1);
	assert_int_equal(fake_counts().waits, 0);
	assert_int_equal(own()->waiting, 0);
}

/* Another stream, another time: a broken one says nothing of them. */
static void test_one_refusal_is_not_the_last_word(void **state)
{
	teach(a);
	fake_wait_result = CUDA_ERROR_INVALID_VALUE;
	fake_guest_set_lease(LEASE_STOP);
	struct launcher *l = waits(a);
	fake_guest_set_lease(LEASE_GO);
	join_launcher(l);
	opens();
	fake_wait_result = CUDA_SUCCESS;
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
}

/* As it is while another thread waits, with the driver's locks held, for what is behind a gate. */
static void test_gates_open_while_one_is_closed(void **state)
{
	teach(a);
	fake_guest_set_lease(LEASE_STOP);
	passes(a, 1);
	fake_wait_blocks = true;
	struct launcher *l = waits(b);
	lease_comes();
	assert_int_equal(fake_begun(a), fake_launched(a));
	/* Nor does the end of the process wait for it. */
	stream_gate_leave();
	fake_wait_blocks = false;
	join_launcher(l);
	assert_int_equal(own()->waiting, 0);
	assert_int_equal(own()->launching, 0);
}

/* ---- launches on their way ---- */

/* The gates open before it gets to the driver: until then it is as any thread that has passed. */
static void test_a_launch_that_is_late(void **state)
{
	struct work w;
	struct gate_pass pass;

	teach(a);
	w = fake_kernel(a, launched_function);
	fake_guest_set_lease(LEASE_STOP);
	gate_enter(&pass, &w);
	assert_int_equal(own()->launching, 0);
	lease_comes();
	assert_true(becomes(&own()->launching, 1));
	flight_show_busy(own(), device(), false); /* the helper has looked */
	fake_guest_set_lease(LEASE_CLOSING);
	usleep(1000);
	assert_int_equal(own()->launching, 1);
	fake_launch(a);
	gate_leave(&pass, &w, CUDA_SUCCESS);
	assert_true(own()->busy);
	assert_int_equal(own()->launching, 0);
}

#define STORM_THREADS 4

/* As without gates: after CLOSING, once `launching` is 0, nothing more begins until the next GO. */
static void test_closing_misses_nobody(void **state)
{
	struct launcher *l[STORM_THREADS];
	unsigned rounds;

	teach(a);
	fake_control->device[0].depth_ns = fake_control->device[0].free_depth_ns = 1ULL << 60;
	for (unsigned i = 0; i < STORM_THREADS; i++)
		l[i] = start_launcher(fake_stream(2 + i / 2), 0);
	for (rounds = 0; rounds < 1500; rounds++) {
		uint64_t before = 0, after = 0;

		fake_guest_set_lease(LEASE_CLOSING);
		while (atomic_load(&own()->launching))
			sched_yield();
		for (unsigned i = 0; i < STORM_THREADS; i++)
			before += fake_begun(fake_stream(2 + i));
		if (rounds % 2)
			fake_guest_set_lease(LEASE_STOP);
		usleep(rounds % 10 ? 0 : 500);
		for (unsigned i = 0; i < STORM_THREADS; i++)
			after += fake_begun(fake_stream(2 + i));
		if (before != after)
			break;
		fake_guest_set_lease(LEASE_GO);
		fake_complete_all();
		flight_poll(sys_now_ns(), 1, 0);
		usleep(rounds % 10 ? 50 : 1000);
	}
	fake_guest_set_lease(LEASE_GO);
	for (unsigned i = 0; i < STORM_THREADS; i++)
		l[i]->stop = true;
	for (unsigned i = 0; i < STORM_THREADS; i++)
		join_launcher(l[i]);
	assert_int_equal(rounds, 1500);
	opens();
	assert_int_equal(own()->launching, 0);
	assert_int_equal(own()->waiting, 0);
	assert_int_not_equal(fake_counts().waits, 0);
	fake_complete_all();
	for (int i = 0; i < 3; i++)
		flight_poll(sys_now_ns(), 1, 0);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(device()->inflight_ns, 0);
	assert_int_equal(device()->held_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First, as the thread that opens them outlives a test. */
		gate_test(test_a_thread_that_passes_opens_them_itself),
		gate_test(test_known_work_waits_in_its_stream),
		gate_test(test_unknown_work_waits_at_the_gate),
		gate_test(test_none_where_the_daemon_allows_none),
		gate_test(test_room_by_length),
		gate_test(test_room_by_number),
		gate_test(test_passes_after_it_has_waited),
		gate_test(test_in_another_process_s_turn),
		gate_test(test_not_while_a_capture_is_under_way),
		gate_test(test_copies_whose_call_returns_at_once),
		gate_test(test_small_copies_need_no_room),
		gate_test(test_what_is_behind_a_gate_is_not_in_flight),
		gate_test(test_other_streams_are_marked_first),
		gate_test(test_nothing_is_recorded_behind_a_gate_by_the_helper),
		gate_test(test_not_without_room_for_a_mark),
		gate_test(test_a_launch_that_fails_takes_no_room),
		gate_test(test_each_lease_opens_what_was_closed),
		gate_test(test_free_run_opens),
		gate_test(test_closing_does_not_open),
		gate_test(test_not_at_a_lease_s_end_while_a_thread_is_in_the_driver),
		gate_test(test_a_lost_daemon_opens),
		gate_test(test_a_daemon_that_stands_still_opens),
		gate_test(test_a_new_daemon_opens),
		gate_test(test_an_order_to_park_opens),
		gate_test(test_the_end_of_a_context_opens),
		gate_test(test_one_context_has_gates),
		gate_test(test_a_stream_that_goes_with_its_gate_closed),
		gate_test(test_exit_opens_for_good),
		gate_test(test_a_forked_child_has_none),
		gate_test(test_off_where_the_driver_can_not),
		gate_test(test_off_where_the_page_can_not_be_had),
		gate_test(test_one_refusal_is_not_the_last_word),
		gate_test(test_gates_open_while_one_is_closed),
		gate_test(test_a_launch_that_is_late),
		gate_test(test_closing_misses_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
