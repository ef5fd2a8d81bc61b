/* Free run, and the start and end of leases: each is revoked in time, and none without need. */
#include "rules.h"

#include <math.h>

static void test_free_run_and_back(void **state)
{
	struct bench b = bench_new();
	int a = bench_add(&b, 50, 100), c = bench_add(&b, 50, 100), capped = bench_add(&b, 20, 20);

	bench_step(&b, 0);
	assert_int_equal(arbiter_mode(b.arbiter), ARBITER_IDLE);
	assert_int_equal(bench_state(&b, a), LEASE_FREE);
	assert_int_equal(bench_state(&b, capped), LEASE_GO);
	assert_int_equal(b.next - b.now, b.config.poll_idle_ns);
	bench_work(&b, a);
	bench_run_for(&b, 500 * MS);
	assert_int_equal(arbiter_mode(b.arbiter), ARBITER_FREE);
	assert_int_equal(bench_state(&b, a), LEASE_FREE);
	assert_int_equal(bench_state(&b, c), LEASE_FREE);

	/* The second one works: both drain, then one has the lease. */
	bench_work(&b, c);
	bench_step(&b, MS);
	assert_int_equal(arbiter_mode(b.arbiter), ARBITER_LEASES);
	assert_int_equal(bench_state(&b, a), LEASE_CLOSING);
	assert_int_equal(bench_state(&b, c), LEASE_CLOSING);
	assert_int_equal(bench_state(&b, capped), LEASE_STOP);
	assert_int_equal(b.next - b.now, b.config.poll_drain_ns);
	bench_rest(&b, c);
	b.seen[c].waiting = true;
	bench_step(&b, 50 * US);
	assert_int_equal(arbiter_holder(b.arbiter), -1);
	bench_rest(&b, a);
	b.seen[a].waiting = true;
	bench_step(&b, 50 * US);
	assert_int_equal(arbiter_holder(b.arbiter), c);
	assert_int_equal(bench_state(&b, c), LEASE_GO);
	assert_int_equal(bench_state(&b, a), LEASE_STOP);

	/* c leaves: a takes over, and is free again once c has been idle for a while. */
	bench_rest(&b, c);
	bench_run_for(&b, 2 * MS);
	assert_int_equal(arbiter_holder(b.arbiter), a);
	bench_work(&b, a);
	bench_run_for(&b, b.config.free_after_ns);
	assert_int_equal(arbiter_mode(b.arbiter), ARBITER_FREE);
	bench_rest(&b, a);
	bench_run_for(&b, b.config.free_after_ns + 2 * MS);
	assert_int_equal(arbiter_mode(b.arbiter), ARBITER_IDLE);
	arbiter_free(b.arbiter);
}

/* A tenant that works alone becomes the holder without a drain. */
static void test_lone_worker_is_not_drained(void **state)
{
	struct bench b = bench_new();
	int a = bench_add(&b, 50, 100), c = bench_add(&b, 50, 100);

	bench_work(&b, a);
	bench_run_for(&b, 10 * MS);
	b.seen[c].launches = 1; /* began and ended between two polls */
	bench_step(&b, MS);
	b.seen[c].launches = 2;
	bench_step(&b, MS);
	assert_int_equal(arbiter_mode(b.arbiter), ARBITER_LEASES);
	assert_int_equal(arbiter_holder(b.arbiter), a);
	assert_int_equal(bench_state(&b, a), LEASE_GO);
	/* A capped tenant that starts while its word is GO without a lease keeps it as a lease. */
	assert_int_equal(arbiter_set_share(b.arbiter, a, (struct arbiter_share){ 50, 60 }), 0);
	bench_step(&b, MS);
	assert_int_equal(bench_state(&b, a), LEASE_GO);
	arbiter_free(b.arbiter);
}

static void test_revocation_in_time(void **state)
{
	struct gpu_model *m = model_new(3);
	struct gpu_model_load later = { .kernel_ns = 1 * MS, .start_ns = 1 * SECOND };
	struct gpu_model_load slow = { .kernel_ns = 5 * MS };
	int a = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &slow), c;

	gpu_model_run(m, 500 * MS);
	c = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &later);
	gpu_model_run(m, 499 * MS);
	assert_int_equal(arbiter_mode(gpu_model_arbiter(m)), ARBITER_FREE);
	gpu_model_run(m, 101 * MS);
	assert_true(gpu_model_work_ns(m, c) > 30 * MS);
	assert_true(gpu_model_take_longest_wait_ns(m, c) < 60 * MS);
	gpu_model_run(m, 1 * SECOND);
	assert_true(fabs(share_over(m, a, 4 * SECOND) - 49.5) < 1);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

static void test_closing_ahead_of_quantum(void **state)
{
	struct bench b = bench_new();
	int a = bench_add(&b, 50, 100), c = bench_add(&b, 50, 100);
	uint64_t start;
	int other;

	b.seen[a].waiting = b.seen[c].waiting = true;
	bench_run_for(&b, MS / 10);
	other = arbiter_holder(b.arbiter) == a ? c : a;
	a = arbiter_holder(b.arbiter);
	assert_true(a >= 0);
	bench_work(&b, a);
	b.seen[a].inflight_ns = 1500 * US;
	start = b.now;
	while (bench_state(&b, a) == LEASE_GO)
		bench_step(&b, b.next - b.now);
	assert_int_equal(bench_state(&b, a), LEASE_CLOSING);
	start += arbiter_quantum_ns(b.arbiter);
	assert_in_range(start - b.now, 1300 * US, 1700 * US);
	/* Announced too soon: seen as drained only after it could read CLOSING. */
	b.seen[a].busy = false;
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, other), LEASE_GO);
	assert_int_equal(bench_state(&b, a), LEASE_STOP);
	arbiter_free(b.arbiter);
}

static void test_leases_last_a_quantum(void **state)
{
	struct gpu_model *m = model_new(4);
	int last = 0;
	double mean_ms, quantum_ms;

	for (int i = 0; i < 5; i++)
		last = gpu_model_add(m, (struct arbiter_share){ 20, 100 }, &hungry);
	gpu_model_run(m, 10 * SECOND);
	mean_ms = (double)gpu_model_work_ns(m, last) / 1e6 /
		  (double)arbiter_account(gpu_model_arbiter(m), last).leases;
	quantum_ms = (double)arbiter_quantum_ns(gpu_model_arbiter(m)) / 1e6;
	assert_true(quantum_ms > 15 && quantum_ms < 35);
	assert_true(mean_ms > 0.9 * quantum_ms && mean_ms < 1.1 * quantum_ms);
	gpu_model_free(m);
}

/* Several quanta in a row for the heavier one: no drain between them. */
static void test_no_drain_for_nothing(void **state)
{
	struct gpu_model *m = model_new(5);
	int heavy = gpu_model_add(m, (struct arbiter_share){ 80, 100 }, &hungry);
	int light = gpu_model_add(m, (struct arbiter_share){ 20, 100 }, &hungry);
	int capped;

	gpu_model_run(m, 10 * SECOND);
	assert_true(gpu_model_closings(m, heavy) <=
		    arbiter_account(gpu_model_arbiter(m), light).leases + 2);
	assert_true((double)gpu_model_work_ns(m, heavy) > 3.8 * (double)gpu_model_work_ns(m, light));
	gpu_model_free(m);

	/* Alone and capped, it closes for its tokens only: 4 ms each. */
	m = model_new(6);
	capped = gpu_model_add(m, (struct arbiter_share){ 50, 50 }, &hungry);
	gpu_model_run(m, 10 * SECOND);
	assert_in_range(gpu_model_closings(m, capped), 560, 680);
	gpu_model_free(m);
}

static void test_tokens_end_near_zero(void **state)
{
	struct gpu_model *m = model_new(7);
	struct gpu_model_load small = { .kernel_ns = 300 * US };
	int a = gpu_model_add(m, (struct arbiter_share){ 40, 40 }, &small);
	enum lease_state was = LEASE_STOP;
	int ends = 0;

	for (int i = 0; i < 20000; i++) {
		struct arbiter_account account;

		gpu_model_run(m, 100 * US);
		account = arbiter_account(gpu_model_arbiter(m), a);
		if (was != LEASE_STOP && account.state == LEASE_STOP) {
			assert_in_range(account.tokens_ns + 1000 * (int64_t)US, 200 * US, 1500 * US);
			ends++;
		}
		was = account.state;
	}
	assert_in_range(ends, 100, 130);
	gpu_model_free(m);
}

static void test_closed_for_a_tenant_that_left(void **state)
{
	struct bench b = bench_new();
	int a = bench_add(&b, 50, 99), c = bench_add(&b, 50, 99);

	bench_work(&b, a);
	b.seen[a].inflight_ns = 20 * MS;
	bench_run_for(&b, 15 * MS);
	assert_int_equal(bench_state(&b, a), LEASE_GO);
	b.seen[c].waiting = true;
	bench_run_for(&b, 20 * MS);
	assert_int_equal(bench_state(&b, a), LEASE_CLOSING);
	b.seen[c].waiting = false;
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, a), LEASE_GO);
	assert_int_equal(arbiter_account(b.arbiter, a).expired, 0);
	arbiter_free(b.arbiter);
}

/*
 * How often the daemon has to poll. A lease of 20 ms with 2 ms in flight is polled each millisecond, and its drain at shorter
 * and shorter intervals: fewer than 40 polls in all.
 */
static void test_polls_are_few(void **state)
{
	struct gpu_model *m = model_new(4);
	uint64_t leases = 0;
	int tenant[3];

	for (int i = 0; i < 3; i++)
		tenant[i] = gpu_model_add(m, (struct arbiter_share){ 33, 100 }, &hungry);
	gpu_model_run(m, SECOND);
	uint64_t begin = gpu_model_steps(m);
	for (int i = 0; i < 3; i++)
		leases -= arbiter_account(gpu_model_arbiter(m), tenant[i]).leases;
	gpu_model_run(m, 10 * SECOND);
	for (int i = 0; i < 3; i++)
		leases += arbiter_account(gpu_model_arbiter(m), tenant[i]).leases;
	print_message("%.1f looks a lease\n", (double)(gpu_model_steps(m) - begin) / (double)leases);
	assert_true(leases > 400);
	assert_true(gpu_model_steps(m) - begin < 40 * leases);
	gpu_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_free_run_and_back),
		cmocka_unit_test(test_lone_worker_is_not_drained),
		cmocka_unit_test(test_revocation_in_time),
		cmocka_unit_test(test_closing_ahead_of_quantum),
		cmocka_unit_test(test_leases_last_a_quantum),
		cmocka_unit_test(test_no_drain_for_nothing),
		cmocka_unit_test(test_tokens_end_near_zero),
		cmocka_unit_test(test_closed_for_a_tenant_that_left),
		cmocka_unit_test(test_polls_are_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
