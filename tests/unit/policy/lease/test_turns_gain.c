/*
 * Gain or cost of turns among a tenant's processes (turns.h), by how the processes work, on the model of a GPU that slices
 * between their contexts: work of the tenant and of its neighbour, with and without turns.
 */
#include <stdio.h>

#include "rules.h"

#define PROCESSES 4

struct row {
	const char *name;
	struct gpu_model_load load;
	double limit;
	bool is_alone; /* no neighbour */
	double gain;   /* in points of the card's time, at least */
};

static const struct row rows[] = {
	{ "saturating, 1 ms kernels", { .kernel_ns = MS }, 100, false, 5 },
	{ "saturating, 50 us kernels", { .kernel_ns = 50 * US }, 100, false, 5 },
	{ "saturating, 5 ms kernels", { .kernel_ns = 5 * MS }, 100, false, 5 },
	{ "saturating, alone, cap 50 %", { .kernel_ns = MS }, 50, true, 3 },
	{ "25 ms, then 0.8 ms",
	  { .kernel_ns = 100 * US, .burst_ns = 25 * MS, .think_ns = 800 * US },
	  100,
	  false,
	  3 },
	{ "8 ms, then 3 ms",
	  { .kernel_ns = 100 * US, .burst_ns = 8 * MS, .think_ns = 3 * MS },
	  100,
	  false,
	  2 },
	{ "2 ms, then 2 ms",
	  { .kernel_ns = 100 * US, .burst_ns = 2 * MS, .think_ns = 2 * MS },
	  100,
	  false,
	  -0.3 },
	{ "2 ms, then 2 ms, alone, 50 %",
	  { .kernel_ns = 100 * US, .burst_ns = 2 * MS, .think_ns = 2 * MS },
	  50,
	  true,
	  -0.3 },
	{ "0.5 ms, then 0.1 ms",
	  { .kernel_ns = 100 * US, .burst_ns = 500 * US, .think_ns = 100 * US },
	  100,
	  false,
	  1.5 },
	{ "1 ms, then 20 ms",
	  { .kernel_ns = 100 * US, .burst_ns = 1 * MS, .think_ns = 20 * MS },
	  100,
	  false,
	  -0.3 },
};

struct outcome {
	double own, other, least, most; /* percent of the card's time; of the processes' */
	uint64_t turns, given_up;
};

static struct outcome play(const struct row *row, bool has_turns)
{
	struct gpu_model_config config = gpu_model_default_config();
	uint64_t run_ns = 30 * SECOND, own_before, other_before;
	struct outcome o = { .least = 100 };
	struct gpu_model *m;
	int own, other;

	config.has_turns = has_turns;
	m = gpu_model_new(&config);
	own = gpu_model_add(m,
			    (struct arbiter_share){ row->limit < 100 ? row->limit : 50, row->limit },
			    &row->load);
	for (int i = 1; i < PROCESSES; i++)
		gpu_model_add_process(m, own, &row->load);
	other = gpu_model_add(m, (struct arbiter_share){ 50, 100 },
			      row->is_alone ? &resting : &hungry);
	gpu_model_run(m, 2 * SECOND);
	own_before = gpu_model_work_ns(m, own);
	other_before = gpu_model_work_ns(m, other);
	gpu_model_run(m, run_ns);
	o.own = 100.0 * (double)(gpu_model_work_ns(m, own) - own_before) / (double)run_ns;
	o.other = 100.0 * (double)(gpu_model_work_ns(m, other) - other_before) / (double)run_ns;
	for (unsigned i = 0; i < PROCESSES; i++) {
		double pct = 100.0 * (double)gpu_model_process_work_ns(m, own, i) /
			     (double)(run_ns + 2 * SECOND);

		o.least = pct < o.least ? pct : o.least;
		o.most = pct > o.most ? pct : o.most;
	}
	o.turns = gpu_model_turns(m, own)->given;
	o.given_up = gpu_model_turns(m, own)->given_up;
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
	return o;
}

static void test_gain(void **state)
{
	int missed = 0;

	printf("%-30s %-5s %6s %6s %6s %14s %6s %8s\n", "4 processes", "turns", "own", "other",
	       "sum", "each", "turns", "given up");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double sum[2];

		for (int has_turns = 0; has_turns <= 1; has_turns++) {
			struct outcome o = play(&rows[i], has_turns);

			sum[has_turns] = o.own + o.other;
			printf("%-30s %-5s %6.2f %6.2f %6.2f %6.2f - %5.2f %6llu %8llu\n",
			       has_turns ? "" : rows[i].name, has_turns ? "on" : "off", o.own,
			       o.other, sum[has_turns], o.least, o.most,
			       (unsigned long long)o.turns, (unsigned long long)o.given_up);
		}
		missed += sum[1] < sum[0] + rows[i].gain;
	}
	assert_int_equal(missed, 0);
}

/* Each process has work for ever, of kernels of its own kind. */
static struct gpu_model_load random_load(uint64_t *random)
{
	static const uint64_t lengths[] = { 20 * US, 100 * US, 500 * US, 2 * MS, 5 * MS };
	struct gpu_model_load load = { .kernel_ns = lengths[random_next(random) % 5] };

	if (random_next(random) % 2) {
		load.burst_ns = random_between(random, 100 * US, 30 * MS);
		load.think_ns = random_between(random, 50 * US, 20 * MS);
	}
	return load;
}

#define TENANTS 4

/*
 * Processes of all kinds start and are killed, mostly in their turn. Work is done in each second, and no process is held at its
 * gate for longer than a turn of each tenant and each process.
 */
static void play_at_random(uint64_t seed, double *worst_ms, uint64_t *given, uint64_t *given_up)
{
	struct gpu_model_config config = gpu_model_default_config();
	uint64_t random = seed ^ 0x1234567;
	struct gpu_model *m;
	int count = 1 + (int)(seed % TENANTS), processes[TENANTS];

	config.seed = seed;
	m = gpu_model_new(&config);
	for (int i = 0; i < count; i++) {
		double limit = seed % 3 ? 100 : (double)random_between(&random, 10, 60);
		struct gpu_model_load load = random_load(&random);

		gpu_model_add(m, (struct arbiter_share){ 10, limit }, &load);
		processes[i] = 1;
	}
	for (int round = 0; round < 20; round++) {
		int i = (int)(random_next(&random) % (unsigned)count);
		struct gpu_model_load load = random_load(&random);

		if (processes[i] < 2 || (processes[i] < 5 && random_next(&random) % 2)) {
			gpu_model_add_process(m, i, &load);
			processes[i]++;
		} else {
			gpu_model_kill_process(m, i);
			processes[i]--;
		}
		gpu_model_run(m, random_between(&random, MS, 100 * MS));
	}
	for (int i = 0; i < count; i++)
		gpu_model_take_longest_wait_ns(m, i);
	for (int second = 0; second < 4; second++) {
		uint64_t before = 0, after = 0;

		for (int i = 0; i < count; i++)
			before += gpu_model_work_ns(m, i);
		gpu_model_run(m, SECOND);
		for (int i = 0; i < count; i++)
			after += gpu_model_work_ns(m, i);
		assert_true(after > before);
	}
	for (int i = 0; i < count; i++) {
		double waited_ms = (double)gpu_model_take_longest_wait_ns(m, i) / 1e6;

		*worst_ms = waited_ms > *worst_ms ? waited_ms : *worst_ms;
		/* 50 ms of each tenant, a drain, and that for each process; under low caps four times. */
		assert_true(waited_ms < (seed % 3 ? 62.0 : 250.0) * count * processes[i]);
		*given += gpu_model_turns(m, i)->given;
		*given_up += gpu_model_turns(m, i)->given_up;
	}
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

static void test_at_random(void **state)
{
	uint64_t given = 0, given_up = 0;
	double worst_ms = 0;

	for (uint64_t seed = 1; seed <= 60; seed++)
		play_at_random(seed, &worst_ms, &given, &given_up);
	print_message("longest wait %.0f ms, %llu turns, given up %llu times\n", worst_ms,
		      (unsigned long long)given, (unsigned long long)given_up);
	assert_true(given > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_gain),
					    cmocka_unit_test(test_at_random) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
