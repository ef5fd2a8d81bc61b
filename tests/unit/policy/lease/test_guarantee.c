/*
 * Guarantees: kept whenever the tenant has work, whatever its neighbours do. Lent time is returned within a quantum. If more
 * than 100 % is promised, all guarantees are scaled.
 */
#include "rules.h"

#include <math.h>

static const uint64_t lengths[] = { 20 * US, 200 * US, 1 * MS, 5 * MS };
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* Beside 1 to 5 tenants that never stop and may use all idle time, for each pair of kernel lengths. */
static void test_kept_beside_others(void **state)
{
	double worst = 50;

	for (int others = 1; others <= 5; others++) {
		for (size_t k = 0; k < LENGTHS * LENGTHS; k++) {
			struct gpu_model_load own = { .kernel_ns = lengths[k % LENGTHS] };
			struct gpu_model_load its = { .kernel_ns = lengths[k / LENGTHS] };
			struct gpu_model *m = model_new(31 + k);
			int a = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &own);
			double got;

			for (int i = 0; i < others; i++)
				gpu_model_add(m, (struct arbiter_share){ 50.0 / others, 100 }, &its);
			gpu_model_run(m, SECOND);
			got = share_over(m, a, 10 * SECOND);
			worst = fmin(worst, got);
			/* The switches of the GPU are everyone's. */
			assert_true(got >= 50 * 0.975);
			assert_int_equal(gpu_model_violations(m), 0);
			gpu_model_free(m);
		}
	}
	print_message("50 beside 1 to 5 others: %.2f at the least\n", worst);
}

/* Unpromised time is lent by weight. */
static void test_rest_is_lent_by_weight(void **state)
{
	struct gpu_model *m = model_new(50);
	int absent = gpu_model_add(m, (struct arbiter_share){ 40, 100 }, &resting);
	int b = gpu_model_add(m, (struct arbiter_share){ 40, 100 }, &hungry);
	uint64_t before[3];
	int capped;

	gpu_model_add(m, (struct arbiter_share){ 20, 100 }, &hungry);
	capped = gpu_model_add(m, (struct arbiter_share){ 20, 25 }, &hungry);

	gpu_model_run(m, 2 * SECOND);
	for (int i = 0; i < 3; i++)
		before[i] = gpu_model_work_ns(m, b + i);
	gpu_model_run(m, 20 * SECOND);
	for (int i = 0; i < 3; i++)
		before[i] = gpu_model_work_ns(m, b + i) - before[i];
	assert_int_equal(gpu_model_work_ns(m, absent), 0);
	/* 25, 50 and 25 by weight: the cap of 25 is just met. */
	assert_true(fabs((double)before[0] / (double)before[1] - 2) < 0.03);
	assert_true(fabs((double)before[capped - b] / (20.0 * SECOND) - 0.25) < 0.01);
	gpu_model_free(m);
}

/*
 * An owner returns. Its burst of 4 ms is done within a quantum and one of the other tenants' kernels; the wait for the lease
 * and for two kernels in flight is included. If only one other tenant was there, it ran free, here with 20 ms in flight; then
 * it is these 20 ms and the burst itself.
 */
static void test_lent_time_is_returned(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	double worst_ms = 0;

	for (int others = 1; others <= 5; others++) {
		for (size_t k = 0; k < LENGTHS; k++) {
			struct gpu_model_load its = { .kernel_ns = lengths[k] };
			struct gpu_model_load own = { .kernel_ns = MS,
						      .burst_ns = 4 * MS,
						      .think_ns = 30 * MS,
						      .think_max_ns = 600 * MS };
			struct gpu_model *m = model_new(60 + k);
			int a = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &own);
			double most_ms = (double)config.arbiter.quantum_ns / 1e6;
			double ms;

			if (others == 1)
				most_ms += (double)own.burst_ns / 1e6;
			for (int i = 0; i < others; i++)
				gpu_model_add(m, (struct arbiter_share){ 50.0 / others, 100 }, &its);
			gpu_model_run(m, 30 * SECOND);
			ms = (double)gpu_model_take_latency_ns(m, a, 1) / 1e6;
			worst_ms = fmax(worst_ms, ms);
			assert_true(ms < most_ms + (double)lengths[k] / 1e6);
			assert_int_equal(gpu_model_violations(m), 0);
			gpu_model_free(m);
		}
	}
	print_message("a burst of 4 ms after a pause: %.2f ms at the most\n", worst_ms);
}

/*
 * More than 100 % is promised: guarantees shrink in proportion. A tenant without a guarantee gets as much as for a guarantee of
 * 1 of 100. Caps stay.
 */
static void test_promised_too_much(void **state)
{
	struct gpu_model *m = model_new(70);
	struct arbiter_share share[] = { { 80, 100 }, { 60, 100 }, { 60, 60 }, { 0, 100 } };
	double wants[] = { 40, 30, 30, 1 };
	uint64_t before[4];
	int extra;

	for (int i = 0; i < 4; i++)
		gpu_model_add(m, share[i], &hungry);
	gpu_model_run(m, 2 * SECOND);
	for (int i = 0; i < 4; i++) {
		before[i] = gpu_model_work_ns(m, i);
		assert_true(fabs(arbiter_account(gpu_model_arbiter(m), i).weight - wants[i]) < 1e-9);
	}
	gpu_model_run(m, 50 * SECOND);
	for (int i = 0; i < 4; i++) {
		double got = (double)(gpu_model_work_ns(m, i) - before[i]) / (0.5 * SECOND);

		assert_true(fabs(got - wants[i] / 1.01 * 0.985) < 0.5);
	}
	/* One tenant more, and one less: shares are scaled again, and no tenant is behind for the time before. */
	extra = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &resting);
	assert_true(fabs(arbiter_account(gpu_model_arbiter(m), 0).weight - 32) < 1e-9);
	gpu_model_remove(m, extra);
	gpu_model_remove(m, 1);
	gpu_model_remove(m, 3);
	assert_true(fabs(arbiter_account(gpu_model_arbiter(m), 2).weight - 60.0 / 1.4) < 1e-9);
	gpu_model_set_share(m, 0, (struct arbiter_share){ 40, 40 });
	assert_true(fabs(arbiter_account(gpu_model_arbiter(m), 0).weight - 40) < 1e-9);
	assert_true(fabs(share_over(m, 2, 10 * SECOND) - 60) < 1.5);
	assert_true(fabs(share_over(m, 0, 10 * SECOND) - 40) < 1.0);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

/* A change of scale, or of a tenant's own share, changes no tenant's place in the order. */
static void test_scale_keeps_leads(void **state)
{
	struct gpu_model *m = model_new(71);
	int a = gpu_model_add(m, (struct arbiter_share){ 60, 100 }, &hungry);
	int b = gpu_model_add(m, (struct arbiter_share){ 40, 100 }, &hungry), extra;
	double got;

	gpu_model_run(m, SECOND);
	got = share_over(m, a, SECOND);
	for (int i = 0; i < 20; i++) {
		extra = gpu_model_add(m, (struct arbiter_share){ 100, 100 }, &resting);
		gpu_model_run(m, 33 * MS);
		gpu_model_remove(m, extra);
		gpu_model_run(m, 17 * MS);
	}
	assert_true(fabs(share_over(m, a, SECOND) - got) < 2);
	assert_true((double)gpu_model_work_ns(m, a) / (double)gpu_model_work_ns(m, b) > 1.45);
	gpu_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_beside_others),
		cmocka_unit_test(test_rest_is_lent_by_weight),
		cmocka_unit_test(test_lent_time_is_returned),
		cmocka_unit_test(test_promised_too_much),
		cmocka_unit_test(test_scale_keeps_leads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
