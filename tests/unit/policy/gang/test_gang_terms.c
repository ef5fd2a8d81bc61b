/*
 * The terms of turns beside a gang (turn_terms.h). They must apply beside a gang, as long as it is there, and nowhere else.
 * Also measures what these terms and the gang's turns gain a training on two GPUs with a neighbour on each, whose threads need
 * time to launch and lose their lead at each turn. Prints the table in docs/decisions/gang-turns.md.
 */
#include <stdio.h>

#include "../lease/rules.h"
#include "gang_model.h"

#define RUN_NS (8 * SECOND)
#define SEEDS 3

static const struct turn_terms usual = { .quantum_ns = 50, .quantum_min_ns = 5, .depth_ns = 2 };

static void test_choice(void **state)
{
	const struct turn_terms gang = { .quantum_ns = 100, .quantum_min_ns = 40, .depth_ns = 10 };
	const struct turn_terms less = { .quantum_ns = 20, .quantum_min_ns = 40, .depth_ns = 1 };
	struct turn_terms terms = turn_terms_choose(&usual, &gang, false);

	assert_memory_equal(&terms, &usual, sizeof(terms));
	terms = turn_terms_choose(&usual, &gang, true);
	assert_memory_equal(&terms, &gang, sizeof(terms));
	/* Never less than the usual, whatever is set. */
	terms = turn_terms_choose(&usual, &less, true);
	assert_int_equal(terms.quantum_ns, 50);
	assert_int_equal(terms.quantum_min_ns, 40);
	assert_int_equal(terms.depth_ns, 2);
}

/* From the step after a tenant became one of several cards, to the step after it is no more. */
static void test_while_it_is_there(void **state)
{
	struct bench b = bench_new();
	int gang = bench_add(&b, 45, 100), other = bench_add(&b, 45, 100);
	int urgent;

	bench_work(&b, gang);
	bench_work(&b, other);
	bench_run_for(&b, 20 * MS);
	assert_true(arbiter_quantum_ns(b.arbiter) < 40 * MS);
	assert_int_equal(arbiter_depth_ns(b.arbiter, other, 10 * MS), b.config.depth_ns);

	arbiter_set_gang(b.arbiter, gang, (struct gang_command){ .order = GANG_WAIT });
	bench_step(&b, MS);
	assert_in_range(arbiter_quantum_ns(b.arbiter), 40 * MS, 100 * MS);
	assert_int_equal(arbiter_depth_ns(b.arbiter, gang, 10 * MS), 10 * MS);
	assert_int_equal(arbiter_depth_ns(b.arbiter, other, 10 * MS), 10 * MS);

	/* A tenant with priority finds no more in flight than without gangs. */
	urgent = arbiter_add(b.arbiter, b.now, (struct arbiter_share){ 10, 100, 1 });
	b.count++;
	bench_work(&b, urgent);
	bench_step(&b, MS);
	assert_int_equal(arbiter_depth_ns(b.arbiter, other, 10 * MS), b.config.depth_ns);
	assert_int_equal(arbiter_depth_ns(b.arbiter, gang, 10 * MS), b.config.depth_ns);
	assert_int_equal(arbiter_depth_ns(b.arbiter, urgent, 10 * MS), 10 * MS);

	arbiter_set_gang(b.arbiter, gang, (struct gang_command){ .order = GANG_NONE });
	bench_step(&b, MS);
	assert_true(arbiter_quantum_ns(b.arbiter) < 40 * MS);
	assert_int_equal(arbiter_depth_ns(b.arbiter, urgent, 10 * MS), b.config.depth_ns);
	arbiter_free(b.arbiter);
}

/* How long a tenant may be idle before it gives up its lease, or reports that it would if all of its ranks were idle. */
static uint64_t rest_until_over_ns(struct gang_command word)
{
	struct bench b = bench_new();
	int gang = bench_add(&b, 50, 100), other = bench_add(&b, 50, 100);
	uint64_t idle_ns = 0;

	arbiter_set_gang(b.arbiter, gang, word);
	b.seen[gang].waiting = b.seen[other].waiting = true;
	bench_step(&b, MS);
	assert_int_equal(bench_state(&b, gang), LEASE_GO);
	bench_work(&b, gang);
	bench_run_for(&b, 2 * MS);
	bench_rest(&b, gang);
	while (bench_state(&b, gang) == LEASE_GO && !arbiter_gang_report(b.arbiter, gang).is_idle) {
		bench_step(&b, 100 * US);
		idle_ns += 100 * US;
	}
	assert_true(idle_ns < SECOND);
	arbiter_free(b.arbiter);
	return idle_ns;
}

static void test_a_rank_that_rests(void **state)
{
	struct arbiter_config config = arbiter_default_config();
	uint64_t least_ns = config.min_lease_ns + config.gang_turn.depth_ns;
	struct gang_command none = { .order = GANG_NONE, .idle_elsewhere_ns = UINT64_MAX },
			    alone = { .order = GANG_GO, .idle_elsewhere_ns = UINT64_MAX },
			    works = { .order = GANG_GO, .idle_elsewhere_ns = 0 },
			    begins = { .order = GANG_GO, .idle_elsewhere_ns = config.idle_ns / 2 },
			    sync_points = { .order = GANG_GO, .idle_elsewhere_ns = config.idle_ns },
			    slips = { .order = GANG_GO,
				      .idle_elsewhere_ns = UINT64_MAX,
				      .is_slip = true };

	assert_in_range(rest_until_over_ns(none), config.idle_min_ns, config.idle_min_ns + 100 * US);
	/* Its patience begins where the patience for other tenants ends. */
	assert_in_range(rest_until_over_ns(alone), config.idle_ns, config.idle_ns + 100 * US);
	assert_in_range(rest_until_over_ns(sync_points), config.idle_ns, config.idle_ns + 100 * US);
	/* While another rank works, is at the end of the same step, or is helped to it. */
	assert_in_range(rest_until_over_ns(works), least_ns, least_ns + MS);
	assert_in_range(rest_until_over_ns(begins), least_ns, least_ns + MS);
	assert_in_range(rest_until_over_ns(slips), least_ns, least_ns + MS);
}

/* If all ranks are idle, the gang gives the lease up. A tenant without ranks elsewhere gives it up itself. */
static void test_which_rank_gives_up(void **state)
{
	static const bool has_others[2] = { false, true };

	for (int k = 0; k < 2; k++) {
		struct bench b = bench_new();
		int gang = bench_add(&b, 50, 100), other = bench_add(&b, 50, 100);
		struct gang_command word = { .order = GANG_GO,
					     .idle_elsewhere_ns = has_others[k] ? SECOND
										: UINT64_MAX };

		arbiter_set_gang(b.arbiter, gang, word);
		b.seen[gang].waiting = b.seen[other].waiting = true;
		bench_step(&b, MS);
		bench_work(&b, gang);
		bench_run_for(&b, 2 * MS);
		bench_rest(&b, gang);
		bench_run_for(&b, 3 * b.config.idle_ns);
		assert_int_equal(arbiter_gang_report(b.arbiter, gang).is_idle, has_others[k]);
		assert_int_equal(bench_state(&b, gang) == LEASE_GO, has_others[k]);
		assert_int_equal(bench_state(&b, other) == LEASE_GO, !has_others[k]);
		/* It has work again before any report that all ranks are idle. */
		bench_work(&b, gang);
		bench_step(&b, 100 * US);
		assert_false(arbiter_gang_report(b.arbiter, gang).is_idle);
		arbiter_free(b.arbiter);
	}
}

/* A tenant that may run a step ahead elsewhere may not beside a gang, whose other GPUs would wait for it. */
static void test_steps_beside_a_gang(void **state)
{
	struct bench b = bench_new();
	int gang = bench_add(&b, 50, 100), one = bench_add(&b, 50, 100);

	bench_work(&b, gang);
	bench_work(&b, one);
	for (int i = 0; i < 1000 && arbiter_depth_ns(b.arbiter, one, 10 * MS) == b.config.depth_ns;
	     i++) {
		bench_run_for(&b, 10 * MS);
		if (bench_state(&b, one) == LEASE_GO)
			b.seen[one].sync_points++;
	}
	assert_true(arbiter_depth_ns(b.arbiter, one, 10 * MS) > b.config.depth_ns);
	arbiter_set_gang(b.arbiter, gang, (struct gang_command){ .order = GANG_WAIT });
	bench_step(&b, MS);
	assert_int_equal(arbiter_depth_ns(b.arbiter, one, 10 * MS), b.config.gang_turn.depth_ns);
	arbiter_free(b.arbiter);
}

/* Three by shares on one card, to the nanosecond the same whatever is set for gangs. */
static void test_nothing_changes_without(void **state)
{
	static const double cores[3] = { 45, 30, 15 };
	struct gpu_model *m[2];
	int t[2][3];

	for (int k = 0; k < 2; k++) {
		struct gpu_model_config config = gpu_model_default_config();

		if (k == 0)
			config.arbiter.gang_turn = (struct turn_terms){ 0 };
		m[k] = gpu_model_new(&config);
		for (int i = 0; i < 3; i++)
			t[k][i] = gpu_model_add(
				m[k], (struct arbiter_share){ cores[i], cores[i], 0 }, &hungry);
	}
	for (int round = 0; round < 100; round++) {
		for (int k = 0; k < 2; k++)
			gpu_model_run(m[k], 30 * MS);
		for (int i = 0; i < 3; i++) {
			struct arbiter_account one = arbiter_account(gpu_model_arbiter(m[0]),
								     t[0][i]);
			struct arbiter_account two = arbiter_account(gpu_model_arbiter(m[1]),
								     t[1][i]);

			assert_memory_equal(&one, &two, sizeof(one));
			assert_int_equal(gpu_model_work_ns(m[0], t[0][i]),
					 gpu_model_work_ns(m[1], t[1][i]));
		}
	}
	assert_true(gpu_model_work_ns(m[0], t[0][0]) > SECOND);
	for (int k = 0; k < 2; k++)
		gpu_model_free(m[k]);
}

/*
 * A step of 26.7 ms alone, as of a ResNet18 by DDP on H200s: kernels of 0.1 ms, four collectives that run beside them, a
 * wait at the end. Threads do something else now and then.
 */
static const struct gang_model_load ddp = { .devices = 3,
					    .kernel_ns = 80 * US,
					    .kernel_max_ns = 120 * US,
					    .kernels = 60,
					    .collective_ns = 800 * US,
					    .sync_every = 4,
					    .think_ns = 300 * US,
					    .think_max_ns = 500 * US,
					    .launch_ns = 20 * US,
					    .stall_every = 40,
					    .stall_max_ns = 2 * MS,
					    .overlaps = true,
					    .reports_sync_points = true };

static struct gang_model_load single(unsigned device)
{
	return (struct gang_model_load){ .devices = 1U << device,
					 .kernel_ns = 80 * US,
					 .kernel_max_ns = 120 * US,
					 .kernels = 240,
					 .sync_every = 1,
					 .think_ns = 200 * US,
					 .think_max_ns = 400 * US,
					 .launch_ns = 12 * US,
					 .stall_every = 40,
					 .stall_max_ns = 500 * US,
					 .reports_sync_points = true };
}

static struct gang_model *model(const struct turn_terms *gang_turn, uint64_t seed)
{
	struct gang_model_config config = gang_model_default_config();

	config.arbiter = arbiter_default_config();
	config.arbiter.gang_turn = *gang_turn;
	config.seed = seed;
	return gang_model_new(&config);
}

static double collectives_alone(const struct gang_model_load *load)
{
	struct gang_model *m = model(&usual, 99);
	int t = gang_model_add(m, (struct arbiter_share){ 50, 100, 0 }, load);
	double count;

	gang_model_run(m, RUN_NS);
	count = (double)gang_model_collectives(m, t);
	gang_model_free(m);
	return count;
}

static double work_alone_ns(void)
{
	static double work_ns;
	struct gang_model_load load = single(0);
	struct gang_model *m;
	int t;

	if (work_ns > 0)
		return work_ns;
	m = model(&usual, 99);
	t = gang_model_add(m, (struct arbiter_share){ 50, 100, 0 }, &load);
	gang_model_run(m, RUN_NS);
	work_ns = (double)gang_model_work_ns(m, t, 0);
	gang_model_free(m);
	return work_ns;
}

/* Percent of the work that each does alone: the mean of SEEDS runs; of the gang the least. */
struct outcome {
	double gang, gang_least, singles;
};

static struct outcome beside_trainings(const char *name, const struct turn_terms *gang_turn,
				       const struct gang_model_load *load, double limit_pct)
{
	struct outcome o = { .gang_least = 100 };
	double alone = collectives_alone(load);

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct gang_model *m = model(gang_turn, seed);
		struct arbiter_share half = { 50, limit_pct, 0 };
		int gang = gang_model_add(m, half, load);
		double got;

		for (unsigned d = 0; d < 2; d++) {
			struct gang_model_load other = single(d);

			gang_model_add(m, half, &other);
		}
		gang_model_run(m, RUN_NS);
		got = 100 * (double)gang_model_collectives(m, gang) / alone;
		o.gang += got / SEEDS;
		o.gang_least = got < o.gang_least ? got : o.gang_least;
		for (int d = 0; d < 2; d++)
			o.singles += 100 * (double)gang_model_work_ns(m, gang + 1 + d, (unsigned)d) /
				     work_alone_ns() / SEEDS / 2;
		assert_int_equal(gang_model_violations(m), 0);
		gang_model_free(m);
	}
	print_message("  %-24s gang %5.2f %% (%5.2f at least), singles %5.2f %%\n", name, o.gang,
		      o.gang_least, o.singles);
	return o;
}

static void test_training_beside_trainings(void **state)
{
	struct turn_terms most = arbiter_default_config().gang_turn,
			  depth = { .depth_ns = most.depth_ns };
	struct turn_terms none = { 0 }, turns = { .quantum_ns = most.quantum_ns,
						  .quantum_min_ns = most.quantum_min_ns };
	struct outcome without = beside_trainings("as elsewhere", &none, &ddp, 100), with;

	beside_trainings("longer turns", &turns, &ddp, 100);
	beside_trainings("more in flight", &depth, &ddp, 100);
	with = beside_trainings("both", &most, &ddp, 100);
	assert_true(with.gang_least > 48.5);
	assert_true(with.gang > without.gang + 0.4);
	/* No other tenant loses by it. */
	assert_true(with.singles > 49.2);
	assert_true(with.singles > without.singles - 0.2);
}

/*
 * The ranks pause between two steps for about as long as the gang waits for a pause. If each rank waited by itself, for 0.2
 * to 1 ms, the gang would get less than its 50 %.
 */
static void test_rests_between_steps(void **state)
{
	static const struct {
		const char *name;
		uint64_t think_ns, think_max_ns;
	} sync_points[] = {
		{ "rests of 0.3 to 1.2 ms", 300 * US, 1200 * US },
		{ "of 0.5 to 2 ms", 500 * US, 2 * MS },
		{ "of 0.9 to 1.3 ms", 900 * US, 1300 * US },
		{ "of 3 to 6 ms", 3 * MS, 6 * MS },
	};
	struct turn_terms most = arbiter_default_config().gang_turn;

	for (size_t i = 0; i < sizeof(sync_points) / sizeof(*sync_points); i++)
		for (int is_capped = 0; is_capped < 2; is_capped++) {
			struct gang_model_load load = ddp;
			struct outcome o;

			load.think_ns = sync_points[i].think_ns;
			load.think_max_ns = sync_points[i].think_max_ns;
			o = beside_trainings(sync_points[i].name, &most, &load,
					     is_capped ? 50 : 100);
			assert_true(o.gang_least > 49);
			assert_true(o.singles > 49);
		}
}

/* Requests with priority on one of the GPUs find no more in flight beside gangs, and wait no longer. */
static void test_requests_beside(void **state)
{
	const struct gang_model_load request = { .devices = 1,
						 .kernel_ns = MS,
						 .kernels = 5,
						 .sync_every = 1,
						 .think_ns = 40 * MS,
						 .think_max_ns = 50 * MS };
	struct turn_terms terms[2] = { { 0 }, arbiter_default_config().gang_turn };
	double median_ms[2], p99_ms[2];

	for (int k = 0; k < 2; k++) {
		struct gang_model *m = model(&terms[k], 7);
		int first;

		gang_model_add(m, (struct arbiter_share){ 45, 100, 0 }, &ddp);
		first = gang_model_add(m, (struct arbiter_share){ 20, 100, 5 }, &request);
		for (unsigned d = 0; d < 2; d++) {
			struct gang_model_load load = single(d);

			gang_model_add(m, (struct arbiter_share){ 35, 100, 0 }, &load);
		}
		gang_model_run(m, SECOND);
		gang_model_take_collective_ns(m, first, 0);
		gang_model_run(m, RUN_NS);
		median_ms[k] = (double)gang_model_take_collective_ns(m, first, 0.5) / 1e6;
		gang_model_run(m, 2 * RUN_NS);
		p99_ms[k] = (double)gang_model_take_collective_ns(m, first, 0.99) / 1e6;
		print_message("  requests of 5 ms with priority, %s: median %.2f ms, 99th "
			      "percentile %.2f\n",
			      k ? "terms of gangs" : "usual terms", median_ms[k], p99_ms[k]);
		gang_model_free(m);
	}
	assert_true(median_ms[1] < median_ms[0] + 0.5);
	assert_true(p99_ms[1] < p99_ms[0] + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_while_it_is_there),
		cmocka_unit_test(test_a_rank_that_rests),
		cmocka_unit_test(test_which_rank_gives_up),
		cmocka_unit_test(test_steps_beside_a_gang),
		cmocka_unit_test(test_nothing_changes_without),
		cmocka_unit_test(test_training_beside_trainings),
		cmocka_unit_test(test_rests_between_steps),
		cmocka_unit_test(test_requests_beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
