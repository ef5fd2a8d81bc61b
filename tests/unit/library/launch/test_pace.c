/* LEASE_PACED: the cost of a launch, which launches pass on a grant, and which thread wakes which. */
#include "launching.h"

#include <linux/futex.h>

#include "library/launch/pace.h"

#define COST (132 * 256) /* of fake_kernel() */

static _Atomic uint64_t *spent(void)
{
	return &fake_report->spent[0].tokens;
}

/* As the daemon does it. */
static void grant(uint64_t tokens)
{
	struct region_control_device *d = &fake_control->device[0];

	atomic_fetch_add(&d->granted, tokens);
	atomic_fetch_add(&d->grant_change, 1);
	syscall(SYS_futex, &d->grant_change, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static uint64_t cost(enum work_kind kind, uint64_t blocks, uint64_t threads)
{
	struct work w = { .kind = kind, .blocks = blocks, .threads = threads };

	return pace_cost(&w);
}

static void test_costs(void **state)
{
	assert_int_equal(cost(WORK_IS_KERNEL, 132, 256), 132 * 256);
	assert_int_equal(cost(WORK_IS_KERNEL, 1, 0), 1);
	assert_int_equal(cost(WORK_IS_KERNEL, UINT64_MAX, 2), PACE_MOST);
	assert_int_equal(cost(WORK_IS_KERNEL, UINT64_MAX / 1024, 1024), PACE_MOST);
	assert_int_equal(cost(WORK_IS_GRAPH, 0, 0), 1 << 20);
	assert_int_equal(cost(WORK_IS_COPY, 1 << 20, 0), 1 << 16);
	assert_int_equal(cost(WORK_IS_COPY, 0, 0), 1);
	assert_int_equal(cost(WORK_IS_SYNC, 4096, 0), 256);
}

/* Sharing space: by predicted time, paid when it is handed over; and bounded as under GO. */
static void test_space_pays_by_time(void **state)
{
	struct region_control_device *d = &fake_control->device[0];
	uint64_t depth_ns = d->depth_ns;

	fake_control->space_pct_x100[0] = 5000;
	pace_spend(0, 1000000, true);
	assert_int_equal(*spent(), 1000000);
	assert_int_equal(fake_report->spent[0].work_ns, 1000000);
	assert_int_equal(fake_report->spent[0].untried_ns, 1000000);
	/* Nothing is for nothing, and no length makes a sum overflow. */
	pace_spend(0, 0, false);
	assert_int_equal(*spent(), 1000001);
	pace_spend(0, UINT64_MAX, false);
	assert_int_equal(*spent(), PACE_MOST + 1000001);

	fake_process_set_lease(LEASE_PACED);
	d->depth_ns = UINT64_MAX / 4;
	atomic_store(&d->granted, *spent() + 1);
	uint64_t before = *spent();
	launch(fake_stream(2));
	/* Of unknown length it is one token; and it is predicted, as under a lease. */
	assert_int_equal(*spent(), before + 1);
	assert_int_equal(device()->inflight, 1);
	assert_false(pace_has_tokens(0, spent()));
	d->depth_ns = depth_ns;
	fake_control->space_pct_x100[0] = 0;
	fake_complete_all();
}

static void test_each_launch_pays(void **state)
{
	fake_process_set_lease(LEASE_PACED);
	grant(10 * COST);
	for (int i = 1; i <= 10; i++) {
		launch(fake_stream(2));
		assert_int_equal(*spent(), i * COST);
	}
	assert_int_equal(own()->waiting, 0);
	assert_int_equal(own()->launching, 0);
	/* Counted as in free run. */
	assert_int_equal(own()->busy, 1);
	assert_int_equal(inflight_launches(0), 10);
	assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 1);
	fake_complete_all();
	assert_int_equal(inflight_poll(sys_now_ns(), 1, 0), 0);
	assert_int_equal(device()->inflight, 0);
}

static void test_waits_for_a_grant(void **state)
{
	struct launcher *l;

	fake_process_set_lease(LEASE_PACED);
	l = start_launcher(fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	usleep(120000); /* through two naps */
	assert_int_equal(l->launches, 0);
	assert_int_equal(*spent(), 0);
	/* One token is enough for a launch of any cost: the rest becomes debt. */
	grant(1);
	join_launcher(l);
	assert_int_equal(l->launches, 1);
	assert_int_equal(*spent(), COST);
	assert_int_equal(own()->waiting, 0);
	assert_true(own()->waited_ns > 100 * NS_PER_MS);
	/* In debt: a grant that does not pay it off lets nothing pass. */
	l = start_launcher(fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	grant(COST - 1);
	usleep(20000);
	assert_int_equal(l->launches, 0);
	grant(1);
	join_launcher(l);
	assert_int_equal(*spent(), 2 * COST);
}

/* A waiter wakes by the grant, not by the end of its nap. */
static void test_a_grant_wakes(void **state)
{
	uint64_t mean = 0;

	fake_process_set_lease(LEASE_PACED);
	for (int i = 0; i < 20; i++) {
		struct launcher *l;

		l = start_launcher(fake_stream(2), 1);
		assert_true(becomes(&own()->waiting, 1));
		usleep(3000);
		uint64_t begin = sys_now_ns();
		grant(COST);
		join_launcher(l);
		mean += (sys_now_ns() - begin) / 20;
		fake_complete_all();
		inflight_poll(sys_now_ns(), 1, 0);
	}
	assert_true(mean < 20 * NS_PER_MS);
}

/* STOP, FREE and a lost daemon: a launch that waits for a grant sees each of them. */
static void test_other_words(void **state)
{
	struct launcher *l;

	fake_process_set_lease(LEASE_PACED);
	l = start_launcher(fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	fake_process_set_lease(LEASE_STOP);
	grant(COST);
	usleep(100000);
	assert_int_equal(l->launches, 0);
	fake_process_set_lease(LEASE_FREE);
	join_launcher(l);
	assert_int_equal(*spent(), 0);

	atomic_store(&fake_control->device[0].granted, 0);
	fake_process_set_lease(LEASE_PACED);
	l = start_launcher(fake_stream(2), 1);
	assert_true(becomes(&own()->waiting, 1));
	atomic_store(&process_state.daemon_lost, true);
	join_launcher(l);
	assert_int_equal(*spent(), 0);
}

#define THREADS 4
#define GRANTS 200

/* Threads share a grant: no more launches pass than the grant pays, with one launch of debt for each thread. */
static void test_threads_share(void **state)
{
	struct launcher *l[THREADS];

	fake_control->device[0].free_depth_ns = 1ULL << 60;
	fake_process_set_lease(LEASE_PACED);
	for (unsigned i = 0; i < THREADS; i++)
		l[i] = start_launcher(fake_stream(2 + i), 0);
	for (unsigned i = 1; i <= GRANTS; i++) {
		grant(COST);
		usleep(200);
		assert_true(*spent() <= (i + THREADS) * COST);
	}
	for (unsigned i = 0; i < THREADS; i++)
		l[i]->stop = true;
	fake_process_set_lease(LEASE_FREE);
	for (unsigned i = 0; i < THREADS; i++)
		join_launcher(l[i]);
	assert_in_range(*spent(), GRANTS * COST / 2, (GRANTS + THREADS) * COST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_costs),          launching_test(test_space_pays_by_time),
		launching_test(test_each_launch_pays), launching_test(test_waits_for_a_grant),
		launching_test(test_a_grant_wakes),    launching_test(test_other_words),
		launching_test(test_threads_share),
	};

	return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
