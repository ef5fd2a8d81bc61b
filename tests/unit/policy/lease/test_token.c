/*
 * The token in KubeShare's manner (ARBITER_POLICY_TOKEN) on the simulated GPU: shares, and the rules by
 * which the token moves on.
 */
#include "together.h"

static struct gpu_model_config token_config(void)
{
	struct gpu_model_config config = gpu_model_default_config();

	config.arbiter.policy = ARBITER_POLICY_TOKEN;
	return config;
}

/* After two windows, over three. */
static void with_token(const char *name, struct row *rows, int count)
{
	struct gpu_model_config config = token_config();

	together_after(name, rows, count, 20 * SECOND, 30 * SECOND, &config);
}

/* A token is not cut where a limit is reached: up to one of 300 ms in the 10 s too much. */
static void test_shares(void **state)
{
	const struct gpu_model_load one_ms = { .kernel_ns = 1 * MS };
	struct row alone[] = { { { 30, 30 }, one_ms, 29, 33.5 } };
	struct row three[] = { { { 45, 45 }, one_ms, 42, 48.5 },
			       { { 30, 30 }, one_ms, 28, 33.5 },
			       { { 15, 15 }, one_ms, 13, 18.5 } };
	struct row two[] = { { { 50, 100 }, one_ms, 47, 53 },
			     { { 50, 100 }, { .kernel_ns = 20 * US }, 47, 53 } };
	struct row guarantee[] = { { { 70, 100 }, one_ms, 66, 74 }, { { 0, 100 }, one_ms, 26, 34 } };

	with_token("alone", alone, 1);
	with_token("45, 30, 15", three, 3);
	with_token("two", two, 2);
	with_token("one has a guarantee", guarantee, 2);
}

/* Two kernels of 45 ms may run past each token of 300 ms: they count, and both get the same. */
static void test_overuse_is_charged_back(void **state)
{
	struct row rows[] = { { { 50, 100 }, { .kernel_ns = 45 * MS }, 47, 52 },
			      { { 50, 100 }, { .kernel_ns = 1 * MS }, 47, 52 } };

	with_token("long beside short", rows, 2);
}

static struct bench token_bench(void)
{
	struct bench b = bench_new();

	arbiter_free(b.arbiter);
	b.config.policy = ARBITER_POLICY_TOKEN;
	b.arbiter = arbiter_new(&b.config);
	assert_non_null(b.arbiter);
	return b;
}

/* The whole quota, and not one step of prediction less; the next begins when the work has ended. */
static void test_quota_is_fixed(void **state)
{
	struct bench b = token_bench();
	int one = bench_add(&b, 50, 100), two = bench_add(&b, 50, 100);
	uint64_t begin;

	b.seen[one].waiting = b.seen[two].waiting = true;
	bench_step(&b, 1 * MS);
	assert_int_equal(bench_state(&b, one), LEASE_GO);
	assert_int_equal(bench_state(&b, two), LEASE_STOP);
	bench_work(&b, one);
	b.seen[one].inflight_ns = 50 * MS;
	begin = b.now;
	while (bench_state(&b, one) == LEASE_GO && b.now - begin < SECOND) {
		b.seen[one].launches++;
		bench_run_for(&b, 200 * US);
	}
	assert_true(b.now - begin >= 300 * MS && b.now - begin < 302 * MS);
	assert_int_equal(bench_state(&b, one), LEASE_CLOSING);
	/* Its work goes on: no tenant has the token. */
	bench_run_for(&b, 40 * MS);
	assert_int_equal(bench_state(&b, two), LEASE_STOP);
	bench_rest(&b, one);
	b.seen[one].waiting = true;
	bench_step(&b, 50 * US);
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, one), LEASE_STOP);
	assert_int_equal(bench_state(&b, two), LEASE_GO);
	arbiter_free(b.arbiter);
}

/* A holder without work soon loses the token; a tenant without demand never gets it. */
static void test_idle_holder(void **state)
{
	struct bench b = token_bench();
	int one = bench_add(&b, 50, 100), two = bench_add(&b, 50, 100);

	bench_run_for(&b, 200 * MS);
	assert_int_equal(bench_state(&b, one), LEASE_STOP);
	assert_int_equal(bench_state(&b, two), LEASE_STOP);
	b.seen[one].waiting = true;
	bench_step(&b, 1 * MS);
	assert_int_equal(bench_state(&b, one), LEASE_GO);
	bench_work(&b, one);
	bench_run_for(&b, 5 * MS);
	bench_rest(&b, one);
	b.seen[two].waiting = true;
	bench_run_for(&b, 3 * MS);
	assert_int_equal(bench_state(&b, one), LEASE_STOP);
	assert_int_equal(bench_state(&b, two), LEASE_GO);
	arbiter_free(b.arbiter);
}

/* Beyond its limit in the window it waits, though no other tenant wants the device. */
static void test_limit_binds_alone(void **state)
{
	struct gpu_model_config config = token_config();
	struct gpu_model *m = gpu_model_new(&config);
	int t = gpu_model_add(m, (struct arbiter_share){ 10, 10 }, &hungry);

	/* One token of 300 ms, and no other before they are 10 % of the time since it came. */
	assert_true(share_over(m, t, 1 * SECOND) > 25);
	assert_true(share_over(m, t, 1900 * MS) == 0);
	assert_true(share_over(m, t, 1 * SECOND) > 25);
	gpu_model_free(m);
}

static void test_pause(void **state)
{
	struct gpu_model_config config = token_config();
	struct gpu_model *m = gpu_model_new(&config);
	int a = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &hungry);
	int b = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &hungry);

	gpu_model_run(m, 1 * SECOND);
	arbiter_set_paused(gpu_model_arbiter(m), a, true);
	gpu_model_run(m, 400 * MS);
	assert_true(share_over(m, a, 1 * SECOND) == 0);
	assert_true(share_over(m, b, 1 * SECOND) > 95);
	arbiter_set_paused(gpu_model_arbiter(m), a, false);
	gpu_model_run(m, 400 * MS);
	assert_true(share_over(m, a, 1 * SECOND) > 50);
	gpu_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_overuse_is_charged_back),
		cmocka_unit_test(test_quota_is_fixed),
		cmocka_unit_test(test_idle_holder),
		cmocka_unit_test(test_limit_binds_alone),
		cmocka_unit_test(test_pause),
	};

	return cmocka_run_group_tests(tests, NULL, together_print);
}
