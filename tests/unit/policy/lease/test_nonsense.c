/*
 * Reports that the arbiter must not trust: impossible shares, time that jumps, tenants that report falsely. A false report
 * costs other tenants little and gains its tenant little.
 */
#include "rules.h"

#include <errno.h>
#include <math.h>

static void test_refuses_bad_shares(void **state)
{
	struct bench b = bench_new();
	struct arbiter_share bad[] = { { -1, 100 }, { 50, 40 },   { 10, 101 },
				       { 0, 0 },    { NAN, 100 }, { 10, NAN } };

	bench_add(&b, 10, 100);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(arbiter_add(b.arbiter, b.now, bad[i]), -EINVAL);
		assert_int_equal(arbiter_set_share(b.arbiter, 0, bad[i]), -EINVAL);
	}
	assert_int_equal(arbiter_set_share(b.arbiter, 7, (struct arbiter_share){ 1, 2 }), -EINVAL);
	for (int i = 1; i < ARBITER_MAX_TENANTS; i++)
		assert_int_equal(arbiter_add(b.arbiter, b.now, (struct arbiter_share){ 1, 100 }), i);
	assert_int_equal(arbiter_add(b.arbiter, b.now, (struct arbiter_share){ 1, 100 }), -ENOSPC);
	arbiter_remove(b.arbiter, 5);
	assert_int_equal(arbiter_add(b.arbiter, b.now, (struct arbiter_share){ 1, 100 }), 5);
	arbiter_remove(b.arbiter, -1);
	arbiter_remove(b.arbiter, ARBITER_MAX_TENANTS);
	arbiter_free(b.arbiter);
	assert_null(arbiter_free(NULL));
}

static void test_time_jumps(void **state)
{
	struct bench b = bench_new();
	int a = bench_add(&b, 20, 20), c = bench_add(&b, 20, 100);
	struct arbiter_account before, after;

	bench_work(&b, a);
	b.seen[c].waiting = true;
	bench_run_for(&b, 3 * MS);
	before = arbiter_account(b.arbiter, a);
	bench_step(&b, 3600 * SECOND);
	after = arbiter_account(b.arbiter, a);
	assert_true(after.charged_ns - before.charged_ns <= 201 * MS);
	assert_true(after.tokens_ns <= 100 * (int64_t)MS);
	bench_rest(&b, a);
	for (int i = 0; i < 100; i++)
		bench_step(&b, 3600 * SECOND);
	assert_true(arbiter_account(b.arbiter, a).tokens_ns <= 100 * (int64_t)MS);
	/* Standing still, and backwards. */
	before = arbiter_account(b.arbiter, c);
	for (int i = 0; i < 1000; i++)
		bench_step(&b, 0);
	arbiter_step(b.arbiter, b.now - SECOND);
	after = arbiter_account(b.arbiter, c);
	assert_int_equal(before.charged_ns, after.charged_ns);
	arbiter_free(b.arbiter);
}

static void test_lies(void **state)
{
	enum lie lies[] = { LIE_IDLE, LIE_BUSY, LIE_INFLIGHT, LIE_GARBAGE };
	double limits[] = { 100, 30 };

	for (int l = 0; l < 4; l++) {
		for (int k = 0; k < 2; k++) {
			struct gpu_model *m = model_new(20 + (uint64_t)l);
			struct gpu_model_load load = { .kernel_ns = 1 * MS, .lie = lies[l] };
			struct arbiter_share share = { 30, limits[k] };
			int liar = gpu_model_add(m, share, &load);
			int honest[2];
			double got[3];

			for (int i = 0; i < 2; i++)
				honest[i] = gpu_model_add(m, share, &hungry);
			gpu_model_run(m, 2 * SECOND);
			got[0] = (double)gpu_model_work_ns(m, liar);
			for (int i = 0; i < 2; i++)
				got[1 + i] = (double)gpu_model_work_ns(m, honest[i]);
			gpu_model_run(m, 10 * SECOND);
			got[0] = ((double)gpu_model_work_ns(m, liar) - got[0]) / 1e8;
			for (int i = 0; i < 2; i++)
				got[1 + i] = ((double)gpu_model_work_ns(m, honest[i]) - got[1 + i]) /
					     1e8;
			print_message(
				"lie %d, limit %3.0f: liar %5.2f %%, honest %5.2f and %5.2f %%\n",
				lies[l], limits[k], got[0], got[1], got[2]);
			/*
			 * A tenant that hides all its work gains at most the depth of the queue at each lease. Only the
			 * driver's own figures could lower this bound.
			 */
			assert_true(got[0] < (lies[l] == LIE_IDLE ? 38 : 34));
			assert_true(got[1] > (lies[l] == LIE_IDLE ? 26 : 29));
			assert_true(got[2] > (lies[l] == LIE_IDLE ? 26 : 29));
			assert_int_equal(gpu_model_violations(m), 0);
			gpu_model_free(m);
		}
	}
}

/* A tenant alone that reports no time is charged by the daemon's observations. */
static void test_alone_own_samples_are_the_floor(void **state)
{
	struct bench b = bench_new();
	int a = bench_add(&b, 50, 90);

	for (int i = 0; i < 50; i++) {
		bench_work(&b, a);
		bench_run_for(&b, 5 * MS);
		b.seen[a].busy_ns = 0;
		bench_rest(&b, a);
		bench_run_for(&b, 5 * MS);
	}
	assert_in_range(arbiter_account(b.arbiter, a).charged_ns, 225 * MS, 251 * MS);
	/* A tenant that reports more time than has passed pays for the time that has passed. */
	b.seen[a].busy_ns = UINT64_MAX / 2;
	bench_step(&b, MS);
	assert_true(arbiter_account(b.arbiter, a).charged_ns <= 510 * MS);
	arbiter_free(b.arbiter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_bad_shares),
		cmocka_unit_test(test_time_jumps),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_alone_own_samples_are_the_floor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
