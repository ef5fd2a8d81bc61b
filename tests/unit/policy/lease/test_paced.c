/*
 * Grants by feedback (ARBITER_POLICY_FEEDBACK) on the simulated GPU, where tenants with work take the hardware's time slices:
 * the result of each row beside its request. The printed results are the best case of this control: the sensor misses little,
 * and all kernels of a tenant cost the same.
 */
#include <math.h>
#include <stdio.h>

#include "together.h"

static struct gpu_model_config paced_config(enum feedback_control control)
{
	struct gpu_model_config config = gpu_model_default_config();

	config.arbiter.policy = ARBITER_POLICY_FEEDBACK;
	config.arbiter.feedback.control = control;
	return config;
}

static struct gpu_model *paced_model(enum feedback_control control)
{
	struct gpu_model_config config = paced_config(control);

	return gpu_model_new(&config);
}

static const struct gpu_model_load loads[] = {
	{ .kernel_ns = 20 * US, .cost = 132 * 64 },
	{ .kernel_ns = 1 * MS, .cost = 132 * 256 },
	{ .kernel_ns = 1 * MS, .cost = 8192 * 1024 },
	{ .kernel_ns = 500 * US, .kernel_max_ns = 3 * MS, .cost = 1 },
	{ .kernel_ns = 20 * MS, .cost = 132 * 256 },
};
#define LOADS (sizeof(loads) / sizeof(loads[0]))

/* One tenant with a cap, alone: within a point, from the third second on. */
static void test_alone(void **state)
{
	for (size_t i = 0; i < LOADS; i++)
		for (int limit = 10; limit <= 90; limit += 20) {
			struct gpu_model *m = paced_model(FEEDBACK_PI);
			int t = gpu_model_add(m, (struct arbiter_share){ limit, limit }, &loads[i]);
			double got;

			gpu_model_run(m, 2 * SECOND);
			got = share_over(m, t, 10 * SECOND);
			printf("alone, %2d %%: kernel %5llu us, %7llu tokens: %6.2f %%\n", limit,
			       (unsigned long long)loads[i].kernel_ns / US,
			       (unsigned long long)loads[i].cost, got);
			assert_true(fabs(got - limit) < 1);
			assert_int_equal(gpu_model_violations(m), 0);
			gpu_model_free(m);
		}
}

/* P alone, the paper's own: a fifth of the target is missing. */
static void test_p_keeps_an_error(void **state)
{
	struct gpu_model *m = paced_model(FEEDBACK_P);
	int t = gpu_model_add(m, (struct arbiter_share){ 50, 50 }, &loads[1]);
	double got;

	gpu_model_run(m, 2 * SECOND);
	got = share_over(m, t, 10 * SECOND);
	printf("alone, 50 %%, P: %6.2f %%\n", got);
	assert_true(got > 37 && got < 43);
	gpu_model_free(m);
}

static void paced(const char *name, struct row *rows, int count)
{
	struct gpu_model_config config = paced_config(FEEDBACK_PI);

	together_after(name, rows, count, 5 * SECOND, 20 * SECOND, &config);
}

/*
 * Several tenants: the sensor counts a device that switches contexts as used, so results are below the request. Samples decide
 * the shares of loads of different kernel lengths.
 */
static void test_together(void **state)
{
	struct row three[] = { { { 45, 45 }, loads[1], 35, 50 },
			       { { 30, 30 }, loads[1], 23, 35 },
			       { { 15, 15 }, loads[1], 10, 20 } };
	struct row two[] = { { { 50, 100 }, loads[1], 35, 60 }, { { 50, 100 }, loads[1], 35, 60 } };
	struct row grain[] = { { { 50, 100 }, loads[0], 35, 60 },
			       { { 50, 100 }, loads[4], 35, 60 } };
	struct row weights[] = { { { 60, 100 }, loads[1], 62, 78 },
				 { { 20, 30 }, loads[1], 17, 28 } };

	paced("45, 30, 15", three, 3);
	paced("two", two, 2);
	paced("of different grain", grain, 2);
	paced("three to one", weights, 2);
}

/* Alone and without a cap it is FREE; with another it is PACED, and FREE again when that has gone. */
static void test_free_when_alone(void **state)
{
	struct gpu_model *m = paced_model(FEEDBACK_PI);
	struct gpu_model_load late = loads[1];
	int a, b;

	late.start_ns = 1 * SECOND;
	a = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &loads[1]);
	b = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &late);
	assert_true(share_over(m, a, 900 * MS) > 98);
	assert_int_equal(arbiter_state(gpu_model_arbiter(m), a), LEASE_FREE);
	assert_int_equal(arbiter_mode(gpu_model_arbiter(m)), ARBITER_FREE);
	gpu_model_run(m, 500 * MS);
	assert_int_equal(arbiter_state(gpu_model_arbiter(m), a), LEASE_PACED);
	assert_int_equal(arbiter_state(gpu_model_arbiter(m), b), LEASE_PACED);
	assert_int_equal(arbiter_mode(gpu_model_arbiter(m)), ARBITER_PACED);
	gpu_model_set_load(m, b, &resting);
	gpu_model_run(m, 500 * MS);
	assert_int_equal(arbiter_state(gpu_model_arbiter(m), a), LEASE_FREE);
	assert_true(share_over(m, a, 1 * SECOND) > 98);
	gpu_model_free(m);
}

/* From 20 to 60 %: within 5 points, in windows of 200 ms, after a second. */
static void test_step_response(void **state)
{
	static const enum feedback_control controls[] = { FEEDBACK_PI, FEEDBACK_PID };

	for (int c = 0; c < 2; c++) {
		struct gpu_model *m = paced_model(controls[c]);
		int t = gpu_model_add(m, (struct arbiter_share){ 20, 20 }, &loads[1]);
		double most = 0, settled_ms = 0;

		gpu_model_run(m, 3 * SECOND);
		gpu_model_set_share(m, t, (struct arbiter_share){ 60, 60 });
		for (int i = 1; i <= 25; i++) {
			double got = share_over(m, t, 200 * MS);

			most = fmax(most, got);
			if (fabs(got - 60) > 5)
				settled_ms = 200 * i;
		}
		printf("20 to 60 %%, %s: settled within %.0f ms, at most %.1f %%\n",
		       c ? "PID" : "PI", settled_ms, most);
		assert_true(settled_ms <= 1000);
		assert_true(most < 75);
		gpu_model_free(m);
	}
}

/* STOP while paused; the learned values are kept. */
static void test_pause(void **state)
{
	struct gpu_model *m = paced_model(FEEDBACK_PI);
	int t = gpu_model_add(m, (struct arbiter_share){ 40, 40 }, &loads[1]);

	gpu_model_run(m, 2 * SECOND);
	arbiter_set_paused(gpu_model_arbiter(m), t, true);
	gpu_model_run(m, 50 * MS);
	assert_int_equal(arbiter_state(gpu_model_arbiter(m), t), LEASE_STOP);
	assert_true(share_over(m, t, 1 * SECOND) == 0);
	arbiter_set_paused(gpu_model_arbiter(m), t, false);
	gpu_model_run(m, 500 * MS);
	assert_int_equal(arbiter_state(gpu_model_arbiter(m), t), LEASE_PACED);
	assert_true(fabs(share_over(m, t, 2 * SECOND) - 40) < 3);
	gpu_model_free(m);
}

/* A stopped tenant's flags stay up: it is left out after a while, and the other is alone. */
static void test_stopped(void **state)
{
	struct gpu_model *m = paced_model(FEEDBACK_PI);
	int a = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &loads[1]);
	int b = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &loads[1]);

	gpu_model_run(m, 2 * SECOND);
	gpu_model_set_stopped(m, b, true);
	gpu_model_run(m, 500 * MS);
	assert_int_equal(arbiter_state(gpu_model_arbiter(m), a), LEASE_FREE);
	gpu_model_set_stopped(m, b, false);
	gpu_model_run(m, 1 * SECOND);
	assert_true(share_over(m, b, 2 * SECOND) > 30);
	gpu_model_free(m);
}

/* Reports may have any value: the total of grants never falls, and the other tenant works on. */
static void test_garbage(void **state)
{
	struct gpu_model *m = paced_model(FEEDBACK_PI);
	struct gpu_model_load lies = loads[1];
	uint64_t granted = 0;
	int a, b;

	lies.lie = LIE_GARBAGE;
	a = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &loads[1]);
	b = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &lies);
	for (int i = 0; i < 2000; i++) {
		gpu_model_run(m, 1 * MS);
		if (arbiter_granted(gpu_model_arbiter(m), a) < granted)
			fail_msg("what was granted went down");
		granted = arbiter_granted(gpu_model_arbiter(m), a);
	}
	assert_true(share_over(m, a, 2 * SECOND) > 20);
	assert_true(gpu_model_kernels(m, b) > 0);
	gpu_model_free(m);
}

/* Another sensor's word, by hand: believed where it is there; where it is not, the charge is. */
static void test_sensor(void **state)
{
	struct arbiter_config config = arbiter_default_config();

	config.policy = ARBITER_POLICY_FEEDBACK;
	config.feedback_sensor = ARBITER_SENSOR_NVML;
	for (int has_word = 0; has_word <= 1; has_word++) {
		struct arbiter *a = arbiter_new(&config);
		uint64_t now = 1000 * SECOND, before, granted[2];
		struct arbiter_observation seen = { .has_utilization = has_word,
						    .utilization = 0.9 };
		int t = arbiter_add(a, now, (struct arbiter_share){ 30, 30 });

		/* Busy half of each 10 ms by its own word, at a cap of 30 %; it pays all it gets. */
		for (int i = 0; i < 2000; i++) {
			now += 1 * MS;
			seen.busy = i % 10 < 5;
			seen.busy_ns += seen.busy ? 1 * MS : 0;
			seen.launches++;
			seen.spent += 1000;
			seen.waiting = true;
			arbiter_observe(a, t, &seen);
			arbiter_step(a, now);
		}
		before = arbiter_granted(a, t);
		for (int i = 0; i < 1000; i++) {
			now += 1 * MS;
			seen.utilization = 0.05;
			seen.busy = i % 10 < 5;
			seen.busy_ns += seen.busy ? 1 * MS : 0;
			seen.spent += 1000;
			arbiter_observe(a, t, &seen);
			arbiter_step(a, now);
		}
		granted[has_word] = arbiter_granted(a, t) - before;
		/* 50 % by the flag is above the cap: no grant. 5 % by NVML is far below: many. */
		if (has_word)
			assert_true(granted[1] > 200 * 1000);
		else
			assert_true(granted[0] < 100 * 1000);
		arbiter_free(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),         cmocka_unit_test(test_p_keeps_an_error),
		cmocka_unit_test(test_together),      cmocka_unit_test(test_free_when_alone),
		cmocka_unit_test(test_step_response), cmocka_unit_test(test_pause),
		cmocka_unit_test(test_stopped),       cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_sensor),
	};

	return cmocka_run_group_tests(tests, NULL, together_print);
}
