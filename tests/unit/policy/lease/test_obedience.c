/*
 * Work that begins while its tenant may not launch: its charge is unauthorized. Work that was under way at the end of the lease
 * is not, however long it takes and however late it begins.
 */
#include "rules.h"

/* A bench with two tenants that always want the GPU. The first one has a cap of 10 %, and owes many seconds. */
static struct bench bench_in_debt(void)
{
	struct bench b = bench_new();
	int capped = bench_add(&b, 10, 10), other = bench_add(&b, 50, 100);
	bench_work(&b, capped);
	bench_work(&b, other);
	bench_run_for(&b, 5 * SECOND);
	assert_int_equal(bench_state(&b, capped), LEASE_STOP);
	return b;
}

static uint64_t unauthorized_ns(const struct bench *b)
{
	return arbiter_account(b->arbiter, 0).unauthorized_ns;
}

static uint64_t charged_ns(const struct bench *b)
{
	return arbiter_account(b->arbiter, 0).charged_ns;
}

/* It works for 4 ms and pauses for 1 ms, whatever its lease says. */
static void test_batches_without_a_lease(void **state)
{
	struct bench b = bench_in_debt();
	uint64_t before = charged_ns(&b);
	assert_int_equal(unauthorized_ns(&b), 0);
	for (unsigned i = 0; i < 200; i++) {
		bench_work(&b, 0);
		bench_run_for(&b, 4 * MS);
		bench_rest(&b, 0);
		bench_run_for(&b, MS);
	}
	assert_int_equal(bench_state(&b, 0), LEASE_STOP);
	assert_true(charged_ns(&b) - before > 350 * MS);
	assert_true(unauthorized_ns(&b) > (charged_ns(&b) - before) * 9 / 10);
	assert_true(unauthorized_ns(&b) <= charged_ns(&b) - before);
	arbiter_free(b.arbiter);
}

/* It is always busy, and says that it launches. */
static void test_launches_without_a_lease(void **state)
{
	struct bench b = bench_in_debt();
	uint64_t before = charged_ns(&b);
	for (unsigned i = 0; i < 200; i++) {
		bench_work(&b, 0);
		bench_run_for(&b, 5 * MS);
	}
	assert_true(unauthorized_ns(&b) > (charged_ns(&b) - before) * 9 / 10);
	/* When it obeys again, nothing is added. */
	bench_rest(&b, 0);
	bench_run_for(&b, SECOND);
	before = unauthorized_ns(&b);
	b.seen[0].waiting = true;
	bench_run_for(&b, 100 * SECOND);
	for (unsigned i = 0; i < 1000; i++) {
		bool is_let_through = bench_state(&b, 0) == LEASE_GO;
		if (is_let_through && !b.seen[0].busy)
			bench_work(&b, 0);
		else if (!is_let_through)
			bench_rest(&b, 0);
		b.seen[0].waiting = !is_let_through;
		bench_step(&b, 200 * US);
	}
	assert_true(arbiter_account(b.arbiter, 0).leases > 1);
	assert_int_equal(unauthorized_ns(&b), before);
	arbiter_free(b.arbiter);
}

static void test_one_long_kernel(void **state)
{
	struct bench b = bench_in_debt();
	bench_run_for(&b, 60 * SECOND);
	assert_true(charged_ns(&b) > 20 * SECOND);
	assert_int_equal(unauthorized_ns(&b), 0);
	arbiter_free(b.arbiter);
}

/* Sixteen threads passed the gate before the lease's end. Their launches are late, and one of their kernels is long. */
static void test_threads_that_are_late(void **state)
{
	struct bench b = bench_new();
	int many = bench_add(&b, 10, 100), other = bench_add(&b, 50, 100);
	bench_work(&b, other);
	bench_run_for(&b, SECOND);
	b.seen[many].waiting = true;
	while (bench_state(&b, many) != LEASE_GO)
		bench_step(&b, 100 * US);
	while (bench_state(&b, many) == LEASE_GO)
		bench_step(&b, 100 * US);
	for (unsigned i = 0; i < 16; i++) {
		bench_work(&b, many);
		bench_step(&b, 5 * MS);
	}
	bench_run_for(&b, 10 * SECOND);
	assert_int_equal(unauthorized_ns(&b), 0);
	arbiter_free(b.arbiter);

	/* Even a launch that is later by far counts only once a second one follows. */
	b = bench_in_debt();
	bench_work(&b, 0);
	bench_run_for(&b, 10 * SECOND);
	assert_int_equal(unauthorized_ns(&b), 0);
	arbiter_free(b.arbiter);
}

/* While the daemon is kept off the CPU, libraries take it for lost, and let work pass. */
static void test_a_daemon_that_was_stopped(void **state)
{
	struct bench b = bench_in_debt();
	for (unsigned i = 0; i < 20; i++) {
		bench_work(&b, 0);
		bench_step(&b, 300 * MS);
		/* Libraries come back one after the other. */
		for (unsigned k = 0; k < 40; k++) {
			bench_work(&b, 0);
			bench_run_for(&b, 5 * MS);
		}
	}
	assert_int_equal(unauthorized_ns(&b), 0);
	arbiter_free(b.arbiter);
}

static void test_a_paused_tenant(void **state)
{
	struct bench b = bench_new();
	bench_add(&b, 50, 100);
	bench_work(&b, 0);
	bench_run_for(&b, 100 * MS);
	arbiter_set_paused(b.arbiter, 0, true);
	bench_run_for(&b, 5 * SECOND);
	assert_int_equal(unauthorized_ns(&b), 0);
	for (unsigned i = 0; i < 100; i++) {
		bench_work(&b, 0);
		bench_run_for(&b, 5 * MS);
	}
	assert_true(unauthorized_ns(&b) > 400 * MS);
	arbiter_free(b.arbiter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batches_without_a_lease),
		cmocka_unit_test(test_launches_without_a_lease),
		cmocka_unit_test(test_one_long_kernel),
		cmocka_unit_test(test_threads_that_are_late),
		cmocka_unit_test(test_a_daemon_that_was_stopped),
		cmocka_unit_test(test_a_paused_tenant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
