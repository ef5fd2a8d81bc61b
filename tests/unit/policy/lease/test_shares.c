/* Long-run shares of GPU work on the simulated GPU: the result of each row beside its request. Prints a table. */
#include <math.h>

#include "together.h"

static const uint64_t lengths[] = { 20 * US, 200 * US, 1 * MS, 5 * MS, 50 * MS };
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static void alone(double limit, bool late)
{
	struct gpu_model_config config = gpu_model_default_config();

	for (size_t k = 0; k < LENGTHS; k++) {
		struct row row = { .share = { limit, limit },
				   .load = { .kernel_ns = lengths[k], .late_report = late } };
		/* A whole turn of 50 ms kernels at 20 % takes half a second: run longer. */
		uint64_t run = lengths[k] < 50 * MS ? 10 * SECOND : 100 * SECOND;

		together(late ? "alone, counts its own delay" : "alone, capped", &row, 1, run,
			 &config);
		assert_true(fabs(row.got_pct - limit) < 0.5);
	}
}

static void test_alone_20(void **state)
{
	alone(20, false);
}

static void test_alone_50(void **state)
{
	alone(50, false);
}

static void test_alone_80(void **state)
{
	alone(80, false);
}

static void test_alone_late_report(void **state)
{
	alone(20, true);
	alone(50, true);
	alone(80, true);
}

/* An estimate that is off, lengths that vary. */
static void test_alone_badly_predicted(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	double factors[] = { 0.2, 5 };

	for (int k = 0; k < 2; k++) {
		struct row row = { .share = { 50, 50 },
				   .load = { .kernel_ns = 50 * US,
					     .kernel_max_ns = 4 * MS,
					     .prediction = factors[k] } };

		together(k ? "alone, predicted 5 x too long" : "alone, predicted 5 x too short",
			 &row, 1, 20 * SECOND, &config);
		assert_true(fabs(row.got_pct - 50) < 0.5);
	}
}

/* Work with pauses: the cap counts work, not the time from its first kernel to its last. */
static void test_alone_with_pauses(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct row rows[] = {
		{ .share = { 30, 30 },
		  .load = { .kernel_ns = 1 * MS, .burst_ns = 5 * MS, .think_ns = 5 * MS } },
		{ .share = { 30, 30 },
		  .load = { .kernel_ns = 200 * US, .burst_ns = 400 * US, .think_ns = 400 * US } },
		{ .share = { 30, 30 },
		  .load = { .kernel_ns = 1 * MS, .burst_ns = 2 * MS, .think_ns = 8 * MS } },
	};
	double demand[] = { 30, 30, 19.9 };

	for (int k = 0; k < 3; k++) {
		together("alone, with pauses", &rows[k], 1, 20 * SECOND, &config);
		assert_true(fabs(rows[k].got_pct - demand[k]) < 0.5);
	}
}

static void test_45_30_15(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	double shares[] = { 45, 30, 15 };

	for (size_t k = 0; k < LENGTHS; k++) {
		struct row rows[3];
		uint64_t run = lengths[k] < 50 * MS ? 10 * SECOND : 100 * SECOND;

		for (int i = 0; i < 3; i++)
			rows[i] = (struct row){ .share = { shares[i], shares[i] },
						.load = { .kernel_ns = lengths[k] } };
		together("45 / 30 / 15, hard caps", rows, 3, run, &config);
		for (int i = 0; i < 3; i++)
			assert_true(fabs(rows[i].got_pct - shares[i]) < 0.5);
	}
}

static void test_45_30_15_mixed(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct row rows[] = {
		{ .share = { 45, 45 }, .load = { .kernel_ns = 20 * US } },
		{ .share = { 30, 30 }, .load = { .kernel_ns = 5 * MS } },
		{ .share = { 15, 15 }, .load = { .kernel_ns = 1 * MS } },
	};

	together("45 / 30 / 15, mixed kernels", rows, 3, 20 * SECOND, &config);
	for (int i = 0; i < 3; i++)
		assert_true(fabs(rows[i].got_pct - rows[i].share.cores_pct) < 0.5);
}

/*
 * Trainings: a pause between two steps, which its step alone has too, does not reduce the credit that the tenant saved while
 * others had the GPU.
 */
static void test_45_30_15_in_steps(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct gpu_model_load step = { .kernel_ns = 100 * US,
				       .burst_ns = 25 * MS,
				       .think_ns = 200 * US };
	struct row rows[] = {
		{ .share = { 45, 45 }, .load = step },
		{ .share = { 30, 30 }, .load = step },
		{ .share = { 15, 15 }, .load = step },
	};

	together("45 / 30 / 15, steps of 25 ms", rows, 3, 20 * SECOND, &config);
	for (int i = 0; i < 3; i++)
		assert_true(fabs(rows[i].got_pct - rows[i].share.cores_pct) < 0.5);
}

/* A GPU that changes tenants faster, or slower, than the arbiter's allowance for it. */
static void test_45_30_15_other_switch_cost(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	uint64_t costs[] = { 90 * US, 210 * US };
	double shares[] = { 45, 30, 15 };

	for (int k = 0; k < 2; k++) {
		struct row rows[3];

		config.switch_ns = costs[k];
		for (int i = 0; i < 3; i++)
			rows[i] = (struct row){ .share = { shares[i], shares[i] },
						.load = { .kernel_ns = 1 * MS } };
		together(k ? "45 / 30 / 15, switch 0.21 ms" : "45 / 30 / 15, switch 0.09 ms", rows,
			 3, 20 * SECOND, &config);
		for (int i = 0; i < 3; i++)
			assert_true(fabs(rows[i].got_pct - shares[i]) < 0.5);
	}
}

static void fifty_beside_four(bool lend)
{
	struct gpu_model_config config = gpu_model_default_config();

	for (size_t k = 0; k < LENGTHS; k++) {
		struct row rows[5];
		uint64_t run = lengths[k] < 50 * MS ? 10 * SECOND : 100 * SECOND;

		for (int i = 0; i < 5; i++) {
			double cores = i ? 10 : 50;

			rows[i] = (struct row){ .share = { cores, lend ? 100 : cores },
						.load = { .kernel_ns = lengths[k] } };
		}
		together(lend ? "50 beside 4 x 10, lending" : "50 beside 4 x 10, hard caps", rows,
			 5, run, &config);
		assert_true(rows[0].got_pct >= 49);
		for (int i = 1; i < 5; i++)
			assert_true(rows[i].got_pct >= 9.5);
	}
}

static void test_50_beside_four_capped(void **state)
{
	fifty_beside_four(false);
}

static void test_50_beside_four_lending(void **state)
{
	fifty_beside_four(true);
}

/* Only the greedy ones may be lent to: the 50 % tenant keeps its cap. */
static void test_50_capped_beside_lent(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct row rows[5];

	for (int i = 0; i < 5; i++)
		rows[i] = (struct row){ .share = { i ? 10 : 50, i ? 100 : 50 },
					.load = { .kernel_ns = 1 * MS } };
	together("50 capped beside 4 x 10 lent to", rows, 5, 20 * SECOND, &config);
	assert_true(rows[0].got_pct >= 49 && rows[0].got_pct < 50.5);
}

static void test_five_equal(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();

	for (size_t k = 0; k < LENGTHS; k++) {
		struct row one = { .share = { 20, 100 }, .load = { .kernel_ns = lengths[k] } };
		struct row rows[5];
		uint64_t run = lengths[k] < 50 * MS ? 10 * SECOND : 60 * SECOND;
		double single = together("one alone, no cap", &one, 1, 2 * SECOND, &config);

		for (int i = 0; i < 5; i++)
			rows[i] = one;
		assert_true(together("five equal", rows, 5, run, &config) >= 0.97 * single);
		for (int i = 0; i < 5; i++)
			assert_true(fabs(rows[i].got_pct - rows[0].got_pct) < 1.0);
	}
}

static void test_mixed_equal(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct row rows[LENGTHS];
	double least = 100, most = 0;

	for (size_t k = 0; k < LENGTHS; k++)
		rows[k] = (struct row){ .share = { 20, 100 }, .load = { .kernel_ns = lengths[k] } };
	together("five equal, mixed kernels", rows, LENGTHS, 60 * SECOND, &config);
	for (size_t k = 0; k < LENGTHS; k++) {
		least = fmin(least, rows[k].got_pct);
		most = fmax(most, rows[k].got_pct);
	}
	assert_true(most - least < 1.5);
}

/* A tenant that pauses between bursts gets close to its request beside one that never stops. */
static void test_pauses_beside_hungry(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct row rows[] = {
		{ .share = { 50, 100 },
		  .load = { .kernel_ns = 1 * MS, .burst_ns = 10 * MS, .think_ns = 20 * MS } },
		{ .share = { 50, 100 }, .load = { .kernel_ns = 1 * MS } },
	};
	double sum = together("10 ms of each 30 beside hungry", rows, 2, 20 * SECOND, &config);

	assert_true(rows[0].got_pct > 25);
	assert_true(sum > 93);
}

/* Polls that come late, and a daemon that is kept off the CPU now and then. */
static void test_late_polls(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct row rows[3];
	double shares[] = { 45, 30, 15 };

	config.poll_jitter_ns = 300 * US;
	config.stall_every_ns = 200 * MS;
	config.stall_ns = 15 * MS;
	for (int i = 0; i < 3; i++)
		rows[i] = (struct row){ .share = { shares[i], shares[i] },
					.load = { .kernel_ns = 500 * US } };
	together("45 / 30 / 15, late polls", rows, 3, 30 * SECOND, &config);
	for (int i = 0; i < 3; i++)
		assert_true(fabs(rows[i].got_pct - shares[i]) < 1.0);
}

/* Tenants without a guarantee share the unpromised time. */
static void test_unpromised(void **state)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct row rows[] = {
		{ .share = { 60, 100 }, .load = { .kernel_ns = 1 * MS } },
		{ .share = { 0, 100 }, .load = { .kernel_ns = 1 * MS } },
		{ .share = { 0, 100 }, .load = { .kernel_ns = 200 * US } },
	};

	together("60 beside two without guarantee", rows, 3, 20 * SECOND, &config);
	assert_true(fabs(rows[0].got_pct - 59.2) < 1);
	assert_true(fabs(rows[1].got_pct - rows[2].got_pct) < 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone_20),
		cmocka_unit_test(test_alone_50),
		cmocka_unit_test(test_alone_80),
		cmocka_unit_test(test_alone_late_report),
		cmocka_unit_test(test_alone_badly_predicted),
		cmocka_unit_test(test_alone_with_pauses),
		cmocka_unit_test(test_45_30_15),
		cmocka_unit_test(test_45_30_15_mixed),
		cmocka_unit_test(test_45_30_15_in_steps),
		cmocka_unit_test(test_45_30_15_other_switch_cost),
		cmocka_unit_test(test_50_beside_four_capped),
		cmocka_unit_test(test_50_beside_four_lending),
		cmocka_unit_test(test_50_capped_beside_lent),
		cmocka_unit_test(test_five_equal),
		cmocka_unit_test(test_mixed_equal),
		cmocka_unit_test(test_pauses_beside_hungry),
		cmocka_unit_test(test_late_polls),
		cmocka_unit_test(test_unpromised),
	};

	return cmocka_run_group_tests(tests, NULL, together_print);
}
