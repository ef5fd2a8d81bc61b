/*
 * Shares over windows of 100 ms, on the simulated GPU: with kernels of up to 1 ms, 99 % of the windows are
 * within 5 points of a cap alone, and within 6 of each of three caps that leave 10 % of the GPU. And the
 * quantum that this takes, by the cost of a hand-over.
 */
#include "rules.h"

#include <math.h>
#include <stdio.h>

#define WINDOW (100 * MS)
#define WINDOWS 300
#define MOST 3

struct windows {
	int tenant;
	double asked;
	uint64_t first, last;
	int within;
};

static const uint64_t lengths[] = { 20 * US, 200 * US, 1 * MS };

/* Runs tenants with these caps; each must have its share, and all but 1 % of its windows within that. */
static void check(const double *caps, int count, uint64_t kernel_ns, double points)
{
	struct gpu_model *m = model_new(1);
	struct windows w[MOST];

	for (int i = 0; i < count; i++) {
		struct gpu_model_load load = { .kernel_ns = kernel_ns };

		w[i] = (struct windows){ .asked = caps[i] };
		w[i].tenant = gpu_model_add(m, (struct arbiter_share){ caps[i], caps[i] }, &load);
	}
	gpu_model_run(m, 2 * SECOND);
	for (int i = 0; i < count; i++)
		w[i].first = w[i].last = gpu_model_work_ns(m, w[i].tenant);
	for (int k = 0; k < WINDOWS; k++) {
		gpu_model_run(m, WINDOW);
		for (int i = 0; i < count; i++) {
			uint64_t work = gpu_model_work_ns(m, w[i].tenant);
			double pct = 100.0 * (double)(work - w[i].last) / (double)WINDOW;

			w[i].within += fabs(pct - w[i].asked) <= points;
			w[i].last = work;
		}
	}
	for (int i = 0; i < count; i++) {
		double got = 100.0 * (double)(w[i].last - w[i].first) / (double)(WINDOW * WINDOWS);

		printf("%5.0f us: %5.1f %% got %6.2f; %5.1f %% of the windows within %g\n",
		       (double)kernel_ns / 1e3, w[i].asked, got, 100.0 * w[i].within / WINDOWS,
		       points);
		assert_true(fabs(got - w[i].asked) < 0.5);
		assert_true(w[i].within >= WINDOWS * 99 / 100);
	}
	gpu_model_free(m);
}

static void test_a_cap_alone(void **state)
{
	static const double caps[] = { 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95 };

	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++)
		for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++)
			check(&caps[i], 1, lengths[k], 5);
}

/* A tenant that was idle before does not begin with a burst. */
static void test_first_second(void **state)
{
	static const double caps[] = { 50, 80, 95 };

	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		struct gpu_model *m = model_new(i + 1);
		struct gpu_model_load late = { .kernel_ns = 1 * MS, .start_ns = 3 * SECOND };
		int a = gpu_model_add(m, (struct arbiter_share){ caps[i], caps[i] }, &late);

		gpu_model_run(m, 4 * SECOND);
		printf("cap %.0f: %.2f in the first second\n", caps[i],
		       (double)gpu_model_work_ns(m, a) / 1e7);
		assert_true((double)gpu_model_work_ns(m, a) / 1e7 < caps[i] + 3);
		gpu_model_free(m);
	}
}

static void test_three_caps(void **state)
{
	static const double caps[] = { 45, 30, 15 };

	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++)
		check(caps, 3, lengths[k], 6);
}

/*
 * A training that works for 25 ms and pauses for 16.7 uses 60 % of a GPU. With a cap below that its steps take longer in
 * proportion; with a higher cap they do not.
 */
static void test_pauses_between_steps(void **state)
{
	static const double caps[] = { 20, 30, 40, 50, 55, 62, 70, 80, 90 };
	struct gpu_model_load training = { .kernel_ns = 200 * US,
					   .burst_ns = 25 * MS,
					   .think_ns = 16700 * US };

	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		struct gpu_model *m = model_new(i + 1);
		int a = gpu_model_add(m, (struct arbiter_share){ caps[i], caps[i] }, &training);
		double step_ms, wanted_ms = fmax(25 + 16.7, 25 * 100 / caps[i]);
		uint64_t before;

		gpu_model_run(m, 2 * SECOND);
		before = gpu_model_bursts(m, a);
		gpu_model_run(m, 40 * SECOND);
		step_ms = 40e3 / (double)(gpu_model_bursts(m, a) - before);
		printf("cap %.0f %%: a step takes %.2f ms, %.2f wanted\n", caps[i], step_ms,
		       wanted_ms);
		assert_true(fabs(step_ms / wanted_ms - 1) < 0.01);
		gpu_model_free(m);
	}
}

/* The quantum after five seconds of these tenants, all with the same load. */
static double quantum_of_ms(const double *caps, int count, uint64_t switch_ns,
			    const struct gpu_model_load *load)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct gpu_model *m;
	double ms;

	config.switch_ns = switch_ns;
	m = gpu_model_new(&config);
	for (int i = 0; i < count; i++)
		gpu_model_add(m, (struct arbiter_share){ 0, caps[i] }, load);
	gpu_model_run(m, 5 * SECOND);
	ms = (double)arbiter_quantum_ns(gpu_model_arbiter(m)) / 1e6;
	gpu_model_free(m);
	return ms;
}

static double quantum_ms(const double *caps, int count, uint64_t switch_ns)
{
	return quantum_of_ms(caps, count, switch_ns, &hungry);
}

static void test_quantum(void **state)
{
	static const double full[] = { 100, 100 }, roomy[] = { 45, 45 }, tight[] = { 50, 48 };
	struct gpu_model_load behind = { .kernel_ns = 200 * US,
					 .burst_ns = 200 * US,
					 .think_ns = 20 * US };
	struct arbiter_config config = arbiter_default_config();
	double most = (double)config.quantum_ns / 1e6, least = (double)config.quantum_min_ns / 1e6;

	/* Nothing to spare: 1.2 % of it for a hand-over of about 0.3 ms. */
	assert_true(fabs(quantum_ms(full, 2, 150 * US) - 25) < 5);
	/* Caps that leave something: the more, the shorter; the dearer a hand-over, the longer. */
	assert_true(quantum_ms(roomy, 2, 150 * US) < quantum_ms(tight, 2, 150 * US));
	assert_true(quantum_ms(tight, 2, 150 * US) < most);
	assert_true(quantum_ms(roomy, 2, 150 * US) < 10);
	assert_true(quantum_ms(roomy, 2, 0) >= least);
	/* A tenant that never has much in flight runs behind its launches: its turns are longer. */
	assert_true(quantum_of_ms(roomy, 2, 150 * US, &behind) >
		    1.5 * quantum_ms(roomy, 2, 150 * US));
}

/* Liars can't make it much shorter than it is with honest ones, nor longer than the most. */
static void test_quantum_of_liars(void **state)
{
	struct arbiter_config config = arbiter_default_config();
	enum lie lies[] = { LIE_IDLE, LIE_BUSY, LIE_INFLIGHT, LIE_GARBAGE };

	for (size_t k = 0; k < sizeof(lies) / sizeof(lies[0]); k++) {
		struct gpu_model *m = model_new(k + 1);
		struct gpu_model_load liar = { .kernel_ns = 1 * MS, .lie = lies[k] };
		uint64_t quantum;

		gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &hungry);
		gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &liar);
		gpu_model_run(m, 5 * SECOND);
		quantum = arbiter_quantum_ns(gpu_model_arbiter(m));
		assert_true(quantum <= config.quantum_ns && quantum >= 12 * MS);
		gpu_model_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cap_alone),  cmocka_unit_test(test_three_caps),
		cmocka_unit_test(test_first_second), cmocka_unit_test(test_pauses_between_steps),
		cmocka_unit_test(test_quantum),      cmocka_unit_test(test_quantum_of_liars),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
