/*
 * Tenants that idle, start, return and leave, and shares that change: which tenant has the GPU meanwhile, and what it is owed
 * afterwards.
 */
#include "rules.h"

#include <errno.h>
#include <math.h>

static void test_idle_holder(void **state)
{
	struct bench b = bench_new();
	int a = bench_add(&b, 50, 80), c = bench_add(&b, 50, 80);

	bench_work(&b, a);
	bench_run_for(&b, 2 * MS);
	assert_int_equal(arbiter_holder(b.arbiter), a);
	bench_rest(&b, a);
	bench_run_for(&b, 20 * MS); /* no one waits: keeps it */
	assert_int_equal(bench_state(&b, a), LEASE_GO);
	bench_run_for(&b, b.config.free_after_ns);
	assert_int_equal(arbiter_mode(b.arbiter), ARBITER_IDLE);
	bench_work(&b, a);
	bench_step(&b, 200 * US);
	assert_int_equal(arbiter_holder(b.arbiter), a);
	bench_rest(&b, a);
	b.seen[c].waiting = true;
	bench_run_for(&b, 100 * US);
	assert_int_equal(arbiter_holder(b.arbiter), a);
	bench_run_for(&b, 300 * US);
	assert_int_equal(arbiter_holder(b.arbiter), c);
	assert_int_equal(bench_state(&b, a), LEASE_STOP);

	/* c waits on, but launches nothing: that is idle too, after a while, and it is charged. */
	b.seen[a].waiting = true;
	bench_run_for(&b, 6 * MS);
	assert_int_equal(arbiter_holder(b.arbiter), a);
	assert_true(arbiter_account(b.arbiter, c).charged_ns > 4 * MS);
	arbiter_free(b.arbiter);
}

static void test_thinkers_do_not_hold_the_gpu(void **state)
{
	struct gpu_model *m = model_new(8);
	struct gpu_model_load thinks = { .kernel_ns = 500 * US,
					 .burst_ns = 2 * MS,
					 .think_ns = 50 * MS };
	int b;

	gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &thinks);
	b = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &hungry);
	gpu_model_run(m, SECOND);
	assert_true(share_over(m, b, 5 * SECOND) > 92);
	gpu_model_free(m);
}

/* A tenant with a small guarantee uses the time that the owner leaves: it is far ahead of the owner within one lease. */
static void test_owner_does_not_wait_for_a_borrower(void **state)
{
	struct gpu_model *m = model_new(19);
	struct gpu_model_load visits = { .kernel_ns = 1 * MS,
					 .burst_ns = 5 * MS,
					 .think_ns = 400 * MS,
					 .think_max_ns = 600 * MS };
	int owner;

	gpu_model_add(m, (struct arbiter_share){ 10, 97 }, &hungry);
	owner = gpu_model_add(m, (struct arbiter_share){ 80, 80 }, &visits);
	gpu_model_run(m, SECOND);
	gpu_model_take_longest_wait_ns(m, owner);
	gpu_model_run(m, 60 * SECOND);
	assert_true(gpu_model_take_longest_wait_ns(m, owner) < 10 * MS);
	assert_true(gpu_model_bursts(m, owner) > 100);
	gpu_model_free(m);
}

static void test_newcomer_waits_little(void **state)
{
	struct gpu_model *m = model_new(9);
	struct gpu_model_load visits = { .kernel_ns = 1 * MS,
					 .burst_ns = 5 * MS,
					 .think_ns = 400 * MS,
					 .think_max_ns = 600 * MS };
	int visitor, newcomer;

	for (int i = 0; i < 4; i++)
		gpu_model_add(m, (struct arbiter_share){ 20, 100 }, &hungry);
	visitor = gpu_model_add(m, (struct arbiter_share){ 20, 100 }, &visits);
	gpu_model_run(m, SECOND);
	gpu_model_take_longest_wait_ns(m, visitor);
	gpu_model_run(m, 9 * SECOND);
	/* A tenant that returns preempts: the others have at most the shortest lease and a drain. */
	assert_true(gpu_model_take_longest_wait_ns(m, visitor) < 10 * MS);
	assert_true(gpu_model_bursts(m, visitor) > 17);
	/* A newcomer: a quantum and a drain for each one there. */
	newcomer = gpu_model_add(m, (struct arbiter_share){ 20, 100 }, &hungry);
	gpu_model_run(m, 500 * MS);
	assert_true(gpu_model_take_longest_wait_ns(m, newcomer) < 5 * 23 * MS);
	gpu_model_free(m);
}

static void test_lent_time_is_returned(void **state)
{
	struct gpu_model *m = model_new(10);
	struct gpu_model_load later = { .kernel_ns = 1 * MS, .start_ns = 2 * SECOND };
	int borrower = gpu_model_add(m, (struct arbiter_share){ 20, 100 }, &hungry);
	int owner = gpu_model_add(m, (struct arbiter_share){ 80, 100 }, &later);

	gpu_model_run(m, SECOND);
	assert_true(share_over(m, borrower, 990 * MS) > 99);
	gpu_model_run(m, 10 * MS);
	assert_true(share_over(m, owner, 500 * MS) > 73);
	assert_true(fabs(share_over(m, owner, 4 * SECOND) - 79.5) < 1.0);
	gpu_model_free(m);
}

/* Ten idle seconds give a tenant no claim to the next ten. */
static void test_no_credit_for_idleness(void **state)
{
	struct gpu_model *m = model_new(11);
	int idler;

	for (int i = 0; i < 2; i++)
		gpu_model_add(m, (struct arbiter_share){ 30, 100 }, &hungry);
	idler = gpu_model_add(m, (struct arbiter_share){ 30, 100 }, &hungry);
	gpu_model_run(m, SECOND);
	gpu_model_set_load(m, idler, &resting);
	gpu_model_run(m, 10 * SECOND);
	gpu_model_set_load(m, idler, &hungry);
	assert_true(share_over(m, idler, SECOND) < 37);
	assert_true(fabs(share_over(m, idler, 5 * SECOND) - 33) < 1);
	gpu_model_free(m);
}

static void test_set_share_takes_hold(void **state)
{
	struct gpu_model *m = model_new(15);
	int a = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &hungry);
	int c = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &hungry);
	struct arbiter *arbiter = gpu_model_arbiter(m);

	gpu_model_run(m, SECOND);
	gpu_model_set_share(m, a, (struct arbiter_share){ 75, 100 });
	gpu_model_set_share(m, c, (struct arbiter_share){ 25, 100 });
	gpu_model_run(m, 200 * MS);
	assert_true(fabs(share_over(m, a, 5 * SECOND) - 74.5) < 1.5);
	gpu_model_set_load(m, c, &resting);
	gpu_model_run(m, SECOND);
	assert_int_equal(arbiter_mode(arbiter), ARBITER_FREE);
	gpu_model_set_share(m, a, (struct arbiter_share){ 30, 30 });
	gpu_model_run(m, 100 * MS);
	assert_true(fabs(share_over(m, a, 5 * SECOND) - 30) < 1);
	gpu_model_set_share(m, a, (struct arbiter_share){ 30, 100 });
	gpu_model_run(m, 100 * MS);
	assert_true(share_over(m, a, SECOND) > 99.5);
	gpu_model_free(m);
}

static void test_all_leave(void **state)
{
	struct gpu_model *m = model_new(16);
	int index[6];

	for (int round = 0; round < 30; round++) {
		for (int i = 0; i < 6; i++)
			index[i] = gpu_model_add(m, (struct arbiter_share){ 10, i & 1 ? 10 : 100 },
						 &hungry);
		gpu_model_run(m, 37 * MS);
		for (int i = 0; i < 6; i++)
			gpu_model_remove(m, index[i]);
		assert_int_equal(arbiter_holder(gpu_model_arbiter(m)), -1);
		gpu_model_run(m, 13 * MS);
		assert_int_equal(arbiter_mode(gpu_model_arbiter(m)), ARBITER_IDLE);
	}
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

/* Only a cap changes: nothing is owed for it, and earlier time counts by the old cap. */
static void test_limit_changes(void **state)
{
	struct bench b = bench_new();
	int a = bench_add(&b, 30, 30), c = bench_add(&b, 30, 60);
	struct arbiter_account before;

	assert_int_equal(arbiter_set_limit(b.arbiter, a, 29), -EINVAL);
	assert_int_equal(arbiter_set_limit(b.arbiter, a, 100.5), -EINVAL);
	assert_int_equal(arbiter_set_limit(b.arbiter, a, NAN), -EINVAL);
	assert_int_equal(arbiter_set_limit(b.arbiter, 7, 50), -EINVAL);

	bench_work(&b, a);
	bench_run_for(&b, SECOND);
	before = arbiter_account(b.arbiter, a);
	assert_true(before.tokens_ns < 0); /* works on without a lease */
	assert_int_equal(arbiter_set_limit(b.arbiter, a, 97), 0);
	assert_int_equal(arbiter_account(b.arbiter, a).tokens_ns, before.tokens_ns);
	assert_true(fabs(arbiter_account(b.arbiter, a).weight - 30) < 1e-9);
	assert_int_equal(arbiter_set_limit(b.arbiter, c, 100), 0);

	/* No cap, then one: no more saved up than for a lease. */
	bench_rest(&b, a);
	bench_run_for(&b, 2 * SECOND);
	assert_int_equal(arbiter_mode(b.arbiter), ARBITER_IDLE);
	assert_int_equal(bench_state(&b, c), LEASE_FREE);
	assert_int_equal(arbiter_set_limit(b.arbiter, c, 60), 0);
	bench_run_for(&b, 10 * MS);
	assert_int_equal(bench_state(&b, c), LEASE_GO);
	assert_true(arbiter_account(b.arbiter, c).tokens_ns <= (int64_t)b.config.quantum_ns / 2);
	arbiter_free(b.arbiter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle_holder),
		cmocka_unit_test(test_thinkers_do_not_hold_the_gpu),
		cmocka_unit_test(test_owner_does_not_wait_for_a_borrower),
		cmocka_unit_test(test_newcomer_waits_little),
		cmocka_unit_test(test_limit_changes),
		cmocka_unit_test(test_lent_time_is_returned),
		cmocka_unit_test(test_no_credit_for_idleness),
		cmocka_unit_test(test_set_share_takes_hold),
		cmocka_unit_test(test_all_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
