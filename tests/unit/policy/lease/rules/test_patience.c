/*
 * The gain from predicting a holder's pauses. The rivals are an arbiter that always waits for 1 ms (reactive) and one that always
 * yields after 0.1 ms (eager). One tenant works with pauses, another without; guarantees are equal. Prints a table, of
 * which docs/decisions/turn-lengths.md has some figures.
 */
#include "../rules.h"

#include <math.h>
#include <stdio.h>

enum arbitration { REACTIVE, EAGER, PREDICTING, ARBITRATIONS };

struct outcome {
	double own, other; /* percent of the GPU */
	double p99_ms;     /* a burst, from its arrival to its end */
};

static const struct {
	const char *name;
	struct gpu_model_load load;
	double least_gain; /* of the sum, over REACTIVE, in points */
} rows[] = {
	{ "5 ms, then 45 ms", { .kernel_ns = 500 * US, .burst_ns = 5 * MS, .think_ns = 45 * MS }, 1 },
	{ "5 ms, then 10 to 80 ms",
	  { .kernel_ns = 500 * US, .burst_ns = 5 * MS, .think_ns = 10 * MS, .think_max_ns = 80 * MS },
	  1 },
	{ "25 ms, then 0.2 ms",
	  { .kernel_ns = 100 * US, .burst_ns = 25 * MS, .think_ns = 200 * US },
	  -0.1 },
	{ "25 ms, then 0.8 ms",
	  { .kernel_ns = 100 * US, .burst_ns = 25 * MS, .think_ns = 800 * US },
	  -0.1 },
	{ "25 ms, then 2 ms", { .kernel_ns = 100 * US, .burst_ns = 25 * MS, .think_ns = 2 * MS }, 1 },
	{ "3 ms, then 0.1 to 1.5 ms",
	  { .kernel_ns = 100 * US, .burst_ns = 3 * MS, .think_ns = 100 * US, .think_max_ns = 1500 * US },
	  -0.2 },
	{ "8 ms, then 3 ms", { .kernel_ns = 100 * US, .burst_ns = 8 * MS, .think_ns = 3 * MS }, 3 },
	{ "2 ms, then 2 ms", { .kernel_ns = 100 * US, .burst_ns = 2 * MS, .think_ns = 2 * MS }, 5 },
	{ "1 ms, then 20 ms", { .kernel_ns = 100 * US, .burst_ns = 1 * MS, .think_ns = 20 * MS }, 2 },
};

static struct outcome play(const struct gpu_model_load *load, enum arbitration arbitration)
{
	struct gpu_model_config config = gpu_model_default_config();
	uint64_t run_ns = 30 * SECOND, own_before, other_before;
	struct outcome outcome;
	struct gpu_model *m;
	int own, other;

	if (arbitration == REACTIVE)
		config.arbiter.idle_min_ns = config.arbiter.idle_ns;
	else if (arbitration == EAGER)
		config.arbiter.idle_min_ns = config.arbiter.idle_ns = 100 * US;
	m = gpu_model_new(&config);
	own = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, load);
	other = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &hungry);
	gpu_model_run(m, 5 * SECOND);
	gpu_model_take_latency_ns(m, own, 0.5);
	own_before = gpu_model_work_ns(m, own);
	other_before = gpu_model_work_ns(m, other);
	gpu_model_run(m, run_ns);
	outcome.own = 100.0 * (double)(gpu_model_work_ns(m, own) - own_before) / (double)run_ns;
	outcome.other = 100.0 * (double)(gpu_model_work_ns(m, other) - other_before) /
			(double)run_ns;
	outcome.p99_ms = (double)gpu_model_take_latency_ns(m, own, 0.99) / 1e6;
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
	return outcome;
}

static void test_gain(void **state)
{
	static const char *const names[] = { "reactive", "eager", "predicting" };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double sum[ARBITRATIONS];

		for (int a = 0; a < ARBITRATIONS; a++) {
			struct outcome o = play(&rows[i].load, a);

			sum[a] = o.own + o.other;
			printf("%-26s %-10s own %5.2f  other %5.2f  sum %5.2f  p99 %6.2f ms\n",
			       a ? "" : rows[i].name, names[a], o.own, o.other, sum[a], o.p99_ms);
		}
		assert_true(sum[PREDICTING] >= sum[REACTIVE] + rows[i].least_gain);
		/* And where waiting is right, it waits. */
		if (rows[i].load.think_ns <= 200 * US && !rows[i].load.think_max_ns)
			assert_true(sum[PREDICTING] >= sum[EAGER]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_gain) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
