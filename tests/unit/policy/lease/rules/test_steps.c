/*
 * Turns that end at a program's steps (steps.h): the steps that trainings do, as a part of those that each does alone, with and
 * without this rule. One training is launch-bound: in the first part of a step it gains a lead over the GPU, which it loses if
 * a turn ends in the middle.
 */
#include <math.h>
#include <stdio.h>

#include "../rules.h"
#include "policy/lease/rules/steps.h"

#define TRAININGS 3

static const struct gpu_model_load trainings[TRAININGS] = {
	/* As ResNet18, a transformer and a GRU on an H200: 25.6, 19.2 and 23.8 ms a step. */
	{ .kernel_ns = 100 * US, .burst_ns = 25 * MS, .think_ns = 500 * US, .launch_ns = 8 * US },
	{ .kernel_ns = 50 * US, .burst_ns = 18 * MS, .think_ns = 500 * US, .launch_ns = 8 * US },
	{ .kernel_ns = 22 * US,
	  .burst_ns = 20 * MS,
	  .think_ns = 300 * US,
	  .launch_ns = 12 * US,
	  .tail_part = 0.4,
	  .tail_kernel_ns = 6 * US },
};

static const struct gpu_model_load *with_rests(struct gpu_model_load *load, int i)
{
	*load = trainings[i];
	load->reports_sync_points = true;
	return load;
}

static struct gpu_model *model(uint64_t step_most_ns)
{
	struct gpu_model_config config = gpu_model_default_config();

	config.rings = true;
	config.arbiter.step_most_ns = step_most_ns;
	return gpu_model_new(&config);
}

static double rate(const struct gpu_model *m, int tenant, uint64_t before, uint64_t run_ns)
{
	return (double)(gpu_model_bursts(m, tenant) - before) / (double)run_ns;
}

/* Returns the steps per ns that a training does alone and without a cap. */
static double rate_alone(int i)
{
	struct gpu_model *m = model(0);
	struct gpu_model_load load;
	int tenant = gpu_model_add(m, (struct arbiter_share){ 100, 100, 0 }, with_rests(&load, i));
	uint64_t before;
	double got;

	gpu_model_run(m, SECOND);
	before = gpu_model_bursts(m, tenant);
	gpu_model_run(m, 20 * SECOND);
	got = rate(m, tenant, before, 20 * SECOND);
	gpu_model_free(m);
	return got;
}

/* The same if it did not pause after each step. */
static double rate_without_pauses(int i)
{
	return 1 / (1 / rate_alone(i) - (double)trainings[i].think_ns);
}

/* Percent of the steps that each does alone, when they run together with these caps. */
static void run_together(const double caps[TRAININGS], uint64_t step_most_ns,
			 double got_pct[TRAININGS])
{
	struct gpu_model *m = model(step_most_ns);
	struct gpu_model_load load;
	int tenant[TRAININGS];
	uint64_t before[TRAININGS];

	for (int i = 0; i < TRAININGS; i++)
		tenant[i] = gpu_model_add(m, (struct arbiter_share){ caps[i], caps[i], 0 },
					  with_rests(&load, i));
	gpu_model_run(m, 2 * SECOND);
	for (int i = 0; i < TRAININGS; i++)
		before[i] = gpu_model_bursts(m, tenant[i]);
	gpu_model_run(m, 30 * SECOND);
	for (int i = 0; i < TRAININGS; i++)
		got_pct[i] = 100 * rate(m, tenant[i], before[i], 30 * SECOND) /
			     rate_without_pauses(i);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

static void test_trainings_together(void **state)
{
	static const double caps[][TRAININGS] = { { 45, 30, 15 }, { 40, 30, 30 }, { 15, 30, 45 } };

	for (size_t k = 0; k < sizeof(caps) / sizeof(caps[0]); k++) {
		double without[TRAININGS], with[TRAININGS];

		run_together(caps[k], 0, without);
		run_together(caps[k], 40 * MS, with);
		for (int i = 0; i < TRAININGS; i++)
			table_add("| %.0f %% of %s | %.2f | %.2f |\n", caps[k][i],
				  (const char *[]){ "ResNet18", "transformer", "GRU" }[i],
				  without[i], with[i]);
		for (int i = 0; i < TRAININGS; i++)
			assert_true(fabs(with[i] - caps[k][i]) < 0.55);
	}
}

/* A training that waited for its first steps, and then never again, has no known steps. */
static void test_steps_that_ended_are_forgotten(void **state)
{
	struct steps s = { 0 };

	for (int i = 0; i < 10; i++)
		steps_observe(&s, (uint32_t)i + 1, 0, i * 2e6, false);
	assert_true(steps_length_ns(&s, 40e6) > 0);
	steps_observe(&s, 10, 0, 18e6 + 499e6, false);
	assert_true(steps_length_ns(&s, 40e6) > 0);
	steps_observe(&s, 10, 0, 18e6 + 501e6, false);
	assert_true(steps_length_ns(&s, 40e6) == 0);
	for (int i = 0; i < 10; i++)
		steps_observe(&s, (uint32_t)i + 11, 0, 600e6 + i * 2e6, false);
	assert_true(steps_length_ns(&s, 40e6) > 0);
}

/* Alone, a training does as many percent of its native steps as its cap says: its short pauses count as part of its steps. */
static void test_training_alone_with_a_cap(void **state)
{
	static const double caps[] = { 10, 20, 50 };

	for (int i = 0; i < TRAININGS; i++)
		for (size_t k = 0; k < 3; k++) {
			double got[2];

			for (int with = 0; with < 2; with++) {
				struct gpu_model *m = model(with ? 40 * MS : 0);
				struct gpu_model_load load;
				int tenant = gpu_model_add(
					m, (struct arbiter_share){ caps[k], caps[k], 0 },
					with_rests(&load, i));
				gpu_model_run(m, 2 * SECOND);
				uint64_t before = gpu_model_bursts(m, tenant);
				gpu_model_run(m, 30 * SECOND);
				got[with] = 100 * rate(m, tenant, before, 30 * SECOND) /
					    rate_alone(i);
				gpu_model_free(m);
			}
			table_add("| alone, cap %.0f %%, %s | %.2f | %.2f |\n", caps[k],
				  (const char *[]){ "ResNet18", "transformer", "GRU" }[i], got[0],
				  got[1]);
			/* The moments in which the GPU waits for launches within a step are not all charged. */
			assert_true(got[1] > caps[k] - 0.2 &&
				    got[1] < caps[k] * (i == 2 ? 1.02 : 1) + 0.45);
		}
}

/*
 * While one process of a tenant pauses, another works. So the pauses are not charged: if they were, the tenant would do 46 to 47 %.
 * (The GPU loses 1 % by slicing between the processes.)
 */
static void test_pauses_of_two_processes_cost_nothing(void **state)
{
	struct gpu_model *m = model(40 * MS);
	struct gpu_model_load load;
	int tenant = gpu_model_add(m, (struct arbiter_share){ 50, 50, 0 }, with_rests(&load, 0));
	uint64_t before;
	double got;

	gpu_model_add_process(m, tenant, &load);
	gpu_model_run(m, 2 * SECOND);
	before = gpu_model_work_ns(m, tenant);
	gpu_model_run(m, 30 * SECOND);
	got = 100 * (double)(gpu_model_work_ns(m, tenant) - before) / (30 * SECOND);
	table_add("| alone, cap 50 %%, two processes of ResNet18 | %.2f | |\n", got);
	assert_true(got > 48.4 && got < 50.3);
	gpu_model_free(m);
}

/* The same trainings without waits after a step. Alone under a cap, only a turn's length decides when it may end. */
static void test_training_that_never_waits(void **state)
{
	static const double caps[] = { 10, 20, 50 };

	for (int i = 0; i < TRAININGS; i++) {
		struct gpu_model_load load = trainings[i];
		double alone = 0;

		load.never_waits = true;
		for (size_t k = 0; k < 4; k++) {
			double cap = k ? caps[k - 1] : 100;
			struct gpu_model *m = model(40 * MS);
			int tenant = gpu_model_add(m, (struct arbiter_share){ cap, cap, 0 }, &load);
			gpu_model_run(m, 2 * SECOND);
			uint64_t before = gpu_model_bursts(m, tenant);
			gpu_model_run(m, 30 * SECOND);
			double got = rate(m, tenant, before, 30 * SECOND);
			gpu_model_free(m);
			if (!k)
				alone = got;
			table_add("| alone, never waits, cap %.0f %%, %s | %.2f |\n", cap,
				  (const char *[]){ "ResNet18", "transformer", "GRU" }[i],
				  100 * got / alone);
			assert_true(100 * got / alone > cap - 0.5);
			/* A launch-bound training gains: its thread goes on launching while its cap keeps the GPU idle. */
			assert_true(100 * got / alone < cap * (i == 2 ? 1.04 : 1.01));
		}
	}
}

/* Leases in a second under a cap of 50 %, alone. */
static double leases_of(const struct gpu_model_load *load)
{
	struct gpu_model *m = model(40 * MS);
	int tenant = gpu_model_add(m, (struct arbiter_share){ 50, 50, 0 }, load);

	gpu_model_run(m, 2 * SECOND);
	uint64_t before = arbiter_leases(gpu_model_arbiter(m), tenant);
	gpu_model_run(m, 20 * SECOND);
	double leases = (double)(arbiter_leases(gpu_model_arbiter(m), tenant) - before) / 20;
	gpu_model_free(m);
	return leases;
}

/* Only a program whose thread is seldom ahead in short slices has long ones; after each wait that is no step's end too. */
static void test_long_slices(void **state)
{
	const struct gpu_model_load loop = { .kernel_ns = 200 * US };
	const struct gpu_model_load slow = { .kernel_ns = 200 * US, .compute_ns = 300 * US };
	struct gpu_model_load training = trainings[2];

	training.never_waits = true;
	assert_true(leases_of(&loop) > 40);
	assert_true(leases_of(&training) < 10);
	training.never_waits = false;
	training.reports_sync_points = true;
	training.burst_ns = 200 * MS;
	assert_true(leases_of(&training) < 10);
	/* A program whose waits are no sync points: rare ones change nothing, a server's do. */
	training.reports_sync_points = false;
	assert_true(leases_of(&training) < 10);
	training = trainings[2];
	training.burst_ns = 5 * MS;
	training.think_ns = 1 * MS;
	assert_true(leases_of(&training) > 40);
	/* On a slow CPU the thread is not yet at the gate when the work of a slice has ended. */
	assert_true(leases_of(&slow) < 10);
}

/* A server with steps of 60 ms, alone under a cap of 50 %: each step runs as a whole, and the pause comes after it. */
static void test_steps_of_a_server_alone(void **state)
{
	const struct gpu_model_load server = { .kernel_ns = 100 * US,
					       .burst_ns = 60 * MS,
					       .think_ns = 1 * MS,
					       .launch_ns = 8 * US,
					       .reports_sync_points = true };
	struct gpu_model *m = model(40 * MS);
	int tenant = gpu_model_add(m, (struct arbiter_share){ 50, 50, 0 }, &server);

	gpu_model_run(m, 4 * SECOND);
	gpu_model_take_latency_ns(m, tenant, 0.99);
	gpu_model_run(m, 20 * SECOND);
	assert_true(gpu_model_latency_ns(m, tenant, 0.99) < 130 * MS);
	gpu_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trainings_together),
		cmocka_unit_test(test_steps_that_ended_are_forgotten),
		cmocka_unit_test(test_training_that_never_waits),
		cmocka_unit_test(test_long_slices),
		cmocka_unit_test(test_steps_of_a_server_alone),
		cmocka_unit_test(test_training_alone_with_a_cap),
		cmocka_unit_test(test_pauses_of_two_processes_cost_nothing),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	printf("%s", table_text());
	return failed;
}
