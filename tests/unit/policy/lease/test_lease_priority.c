/*
 * Priority: a tenant of higher priority overtakes within a budget, and no other tenant loses more than that. Times are of the
 * simulated GPU. docs/decisions/turn-lengths.md has figures of its tables.
 */
#include "rules.h"

#include <math.h>
#include <stdio.h>

#define RUN (60 * SECOND)

/* 5 ms in about each 50 ms, at no fixed place within the others' turns. */
static const struct gpu_model_load inference = { .kernel_ns = 1 * MS,
						 .burst_ns = 5 * MS,
						 .think_ns = 45 * MS,
						 .think_max_ns = 55 * MS,
						 .on_schedule = true };

struct outcome {
	double p99_ms;
	double trainer_pct; /* of the GPU's time */
};

static double p99_alone(const struct gpu_model_load *load)
{
	struct gpu_model *m = model_new(11);
	int a = gpu_model_add(m, (struct arbiter_share){ 10, 100 }, load);
	double p99_ms;

	gpu_model_run(m, RUN);
	p99_ms = (double)gpu_model_take_latency_ns(m, a, 0.99) / 1e6;
	gpu_model_free(m);
	return p99_ms;
}

/* 100 %: the work that the trainer alone does in this time. */
static struct outcome beside_trainer(struct arbiter_share share, const struct gpu_model_load *load,
				     struct arbiter_share trainer_share)
{
	struct gpu_model *m = model_new(12);
	int a = gpu_model_add(m, share, load);
	int trainer = gpu_model_add(m, trainer_share, &hungry);
	struct outcome o;

	gpu_model_run(m, 2 * SECOND);
	gpu_model_take_latency_ns(m, a, 0.99);
	o.trainer_pct = share_over(m, trainer, RUN);
	o.p99_ms = (double)gpu_model_take_latency_ns(m, a, 0.99) / 1e6;
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
	return o;
}

static struct outcome beside(const char *what, struct arbiter_share share,
			     const struct gpu_model_load *load)
{
	struct outcome o = beside_trainer(share, load, (struct arbiter_share){ 0, 100 });

	table_add("%-44s %3.0f / %3.0f  %4d  %7.2f  %7.2f\n", what, share.cores_pct,
		  share.limit_pct, share.priority, o.p99_ms, o.trainer_pct);
	return o;
}

/* The bar of the project: at most twice the time alone, the trainer keeps 85 % of its work. */
static void test_inference_beside_trainer(void **state)
{
	double alone = p99_alone(&inference);
	struct outcome with, without;

	table_add("%-44s %3.0f / %3.0f  %4d  %7.2f\n", "5 ms each 50 ms, alone", 10.0, 100.0, 0,
		  alone);
	without = beside("beside a trainer, 1 ms kernels", (struct arbiter_share){ 10, 100, 0 },
			 &inference);
	with = beside("", (struct arbiter_share){ 10, 100, 50 }, &inference);
	assert_true(with.p99_ms <= 2 * alone);
	assert_true(with.trainer_pct >= 85);
	assert_true(without.p99_ms >= 1.5 * with.p99_ms);
	/* A higher guarantee, no guarantee, and a cap equal to the guarantee. */
	with = beside("", (struct arbiter_share){ 20, 100, 50 }, &inference);
	assert_true(with.p99_ms <= 2 * alone && with.trainer_pct >= 85);
	with = beside("", (struct arbiter_share){ 0, 100, 50 }, &inference);
	assert_true(with.p99_ms <= 2 * alone && with.trainer_pct >= 85);
	with = beside("", (struct arbiter_share){ 15, 15, 50 }, &inference);
	assert_true(with.p99_ms <= 2 * alone && with.trainer_pct >= 85);
	/* Well below its guarantee it is let in after min_lease_ns in any case. */
	beside("", (struct arbiter_share){ 20, 100, 0 }, &inference);
	beside("", (struct arbiter_share){ 0, 100, 0 }, &inference);
}

/* A burst longer than min_lease_ns beside several trainers: each would have its turn in between. */
static void test_long_bursts_beside_trainers(void **state)
{
	struct gpu_model_load burst = { .kernel_ns = 1 * MS,
					.burst_ns = 15 * MS,
					.think_ns = 90 * MS,
					.think_max_ns = 110 * MS,
					.on_schedule = true };
	double p99_ms[2], got;

	for (int priority = 0; priority < 2; priority++) {
		struct gpu_model *m = model_new(17);
		struct arbiter_share share = { 20, 100, priority };
		int a = gpu_model_add(m, share, &burst), trainer = -1;

		for (int i = 0; i < 3; i++)
			trainer = gpu_model_add(m, (struct arbiter_share){ 20, 100 }, &hungry);
		gpu_model_run(m, 2 * SECOND);
		gpu_model_take_latency_ns(m, a, 0.99);
		got = 3 * share_over(m, trainer, RUN);
		p99_ms[priority] = (double)gpu_model_take_latency_ns(m, a, 0.99) / 1e6;
		table_add("%-44s %3.0f / %3.0f  %4d  %7.2f  %7.2f\n",
			  priority ? "" : "15 ms each 100 ms beside three of 20", 20.0, 100.0,
			  priority, p99_ms[priority], got);
		assert_int_equal(gpu_model_violations(m), 0);
		gpu_model_free(m);
	}
	assert_true(p99_ms[1] <= 20);
	assert_true(p99_ms[0] >= 1.15 * p99_ms[1]);
	assert_true(got >= 79);
}

/* Rare enough for the trainer to run free meanwhile, if it were not outranked. */
static void test_rare_inference(void **state)
{
	struct gpu_model_load rare = inference;
	struct outcome with, without;
	double alone;

	rare.think_ns = 400 * MS;
	rare.think_max_ns = 600 * MS;
	alone = p99_alone(&rare);
	table_add("%-44s %3.0f / %3.0f  %4d  %7.2f\n", "5 ms each 500 ms, alone", 10.0, 100.0, 0,
		  alone);
	without = beside("beside a trainer, 1 ms kernels", (struct arbiter_share){ 10, 100, 0 },
			 &rare);
	with = beside("", (struct arbiter_share){ 10, 100, 1 }, &rare);
	assert_true(with.p99_ms <= 2 * alone);
	assert_true(without.p99_ms >= 1.5 * with.p99_ms);
	assert_true(with.trainer_pct >= 97);
}

/* The other way round: a trainer that steps back for everyone. */
static void test_low_priority_trainer(void **state)
{
	struct outcome o = beside_trainer((struct arbiter_share){ 20, 100, 0 }, &inference,
					  (struct arbiter_share){ 0, 100, -10 });

	assert_true(o.p99_ms <= 10 && o.trainer_pct >= 85);
}

/* It waits for its CPU between kernels for longer than the first patience: that is learned. */
static void test_pauses_within_a_burst(void **state)
{
	struct gpu_model_load token = { .kernel_ns = 500 * US,
					.burst_ns = 500 * US,
					.think_ns = 500 * US,
					.think_max_ns = 700 * US };
	struct gpu_model *m = model_new(13);
	int a = gpu_model_add(m, (struct arbiter_share){ 90, 100, 1 }, &token);
	int trainer = gpu_model_add(m, (struct arbiter_share){ 10, 100 }, &hungry);
	uint64_t interrupted;

	gpu_model_run(m, SECOND);
	interrupted = arbiter_account(gpu_model_arbiter(m), trainer).leases;
	share_over(m, trainer, 10 * SECOND);
	interrupted = arbiter_account(gpu_model_arbiter(m), trainer).leases - interrupted;
	/* 9,000 bursts; each would have cost two switches. */
	assert_true(gpu_model_bursts(m, a) > 7000);
	assert_true(interrupted < 1500);
	gpu_model_free(m);
}

/* It gets no more than its guarantee, others keep theirs, and no tenant waits for longer than its bucket lasts. */
static void saturating(double cores, uint64_t kernel_ns, double limit)
{
	struct gpu_model *m = model_new(14);
	struct gpu_model_load load = { .kernel_ns = kernel_ns };
	int a = gpu_model_add(m, (struct arbiter_share){ cores, limit, 100 }, &load);
	int b = gpu_model_add(m, (struct arbiter_share){ 40, 100 }, &hungry);
	int c = gpu_model_add(m, (struct arbiter_share){ 60 - cores, 100 }, &hungry);
	uint64_t before[3], longest;
	double got[3];

	gpu_model_run(m, 2 * SECOND);
	gpu_model_take_longest_wait_ns(m, b);
	for (int i = 0; i < 3; i++)
		before[i] = gpu_model_work_ns(m, i);
	gpu_model_run(m, 20 * SECOND);
	for (int i = 0; i < 3; i++)
		got[i] = 100.0 * (double)(gpu_model_work_ns(m, i) - before[i]) / (20.0 * SECOND);
	longest = gpu_model_take_longest_wait_ns(m, b);
	table_add("%-32s%4.1f ms kernels  %3.0f / %3.0f   100  %6.2f beside 40: %.2f and %.0f: %.2f, "
		  "longest wait %.1f ms\n",
		  "saturating", (double)kernel_ns / 1e6, cores, limit, got[a], got[b], 60 - cores,
		  got[c], (double)longest / 1e6);
	assert_true(fabs(got[a] - cores) < 1.5);
	assert_true(got[b] >= 40 * 0.95 && got[c] >= (60 - cores) * 0.95);
	assert_true(longest < 130 * MS);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

static void test_saturating(void **state)
{
	uint64_t lengths[] = { 100 * US, 1 * MS, 5 * MS };

	for (int k = 0; k < 3; k++) {
		saturating(30, lengths[k], 100);
		saturating(30, lengths[k], 30);
		saturating(10, lengths[k], 100);
	}
}

/* A tenant that saved up a full bucket, and then does not stop. */
static void test_burst_is_bounded(void **state)
{
	struct gpu_model *m = model_new(15);
	int a = gpu_model_add(m, (struct arbiter_share){ 30, 100, 1 }, &resting);
	int b = gpu_model_add(m, (struct arbiter_share){ 70, 100 }, &hungry);
	double got;

	gpu_model_run(m, 2 * SECOND);
	gpu_model_set_load(m, a, &hungry);
	got = share_over(m, b, 200 * MS);
	/* 60 ms saved up, 60 that come in meanwhile, 5 overdrawn, switches. */
	assert_true(got > 36 && got < 60);
	got = share_over(m, b, SECOND);
	assert_true(got > 66);
	gpu_model_free(m);
}

/* Two in a hurry, one more than the other, and a trainer. */
static void test_two_in_a_hurry(void **state)
{
	for (int order = 0; order < 2; order++) {
		struct gpu_model *m = model_new(16 + (uint64_t)order);
		struct arbiter_share share = { 20, 100, 10 };
		struct gpu_model_load other = inference;
		int a, b, trainer;
		double got, p99_a, p99_b;

		other.think_ns = 40 * MS;
		other.think_max_ns = 50 * MS;
		a = gpu_model_add(m, share, &inference);
		share.priority = order ? 10 : 20;
		b = gpu_model_add(m, share, &other);
		trainer = gpu_model_add(m, (struct arbiter_share){ 0, 100 }, &hungry);
		gpu_model_run(m, 2 * SECOND);
		gpu_model_take_latency_ns(m, a, 0.99);
		gpu_model_take_latency_ns(m, b, 0.99);
		got = share_over(m, trainer, RUN);
		p99_a = (double)gpu_model_take_latency_ns(m, a, 0.99) / 1e6;
		p99_b = (double)gpu_model_take_latency_ns(m, b, 0.99) / 1e6;
		table_add("%-44s %3.0f / %3.0f  %4d  %7.2f\n%-44s %3.0f / %3.0f  %4d  %7.2f  %7.2f\n",
			  "two of them and a trainer", 20.0, 100.0, 10, p99_a, "", 20.0, 100.0,
			  share.priority, p99_b, got);
		/* One waits for the other's burst at most, or starts it twice. */
		assert_true(p99_b <= (order ? 15 : 10));
		assert_true(p99_a <= 20);
		assert_true(got >= 73);
		assert_int_equal(gpu_model_violations(m), 0);
		gpu_model_free(m);
	}
}

/* Being interrupted costs the tenant that happened to have the lease nothing against its like. */
static void test_no_disadvantage(void **state)
{
	struct gpu_model *m = model_new(18);
	struct gpu_model_load later = hungry;
	int trainer[2], a;
	double work[2];

	trainer[0] = gpu_model_add(m, (struct arbiter_share){ 40, 100 }, &hungry);
	later.kernel_ns = 3 * MS;
	trainer[1] = gpu_model_add(m, (struct arbiter_share){ 40, 100 }, &later);
	a = gpu_model_add(m, (struct arbiter_share){ 20, 100, 1 }, &inference);
	gpu_model_run(m, RUN);
	for (int i = 0; i < 2; i++)
		work[i] = 100.0 * (double)gpu_model_work_ns(m, trainer[i]) / (double)RUN;
	assert_true(fabs(work[0] - work[1]) < 0.7);
	assert_true(work[0] + work[1] >= 85);
	assert_true(gpu_model_bursts(m, a) > 1150);
	gpu_model_free(m);
}

static void test_capped_trainer(void **state)
{
	struct outcome o = beside_trainer((struct arbiter_share){ 20, 100, 1 }, &inference,
					  (struct arbiter_share){ 60, 60 });

	assert_true(o.p99_ms <= 10);
	assert_true(fabs(o.trainer_pct - 60) < 0.5);
}

/* A tenant that reports falsely to be busy, or idle, still has only its budget. */
static void test_liars(void **state)
{
	enum lie lies[] = { LIE_IDLE, LIE_BUSY, LIE_INFLIGHT, LIE_GARBAGE };

	for (int k = 0; k < 4; k++) {
		struct gpu_model *m = model_new(19 + (uint64_t)k);
		struct gpu_model_load load = { .kernel_ns = MS, .lie = lies[k] };
		int b;

		gpu_model_add(m, (struct arbiter_share){ 20, 100, 1 }, &load);
		b = gpu_model_add(m, (struct arbiter_share){ 80, 100 }, &hungry);
		gpu_model_run(m, 2 * SECOND);
		assert_true(share_over(m, b, 20 * SECOND) > 70);
		gpu_model_free(m);
	}
}

/* By hand: a has had the lease for 2 ms; the rival has been idle for 1 ms longer. */
static int holder_and_rival(struct bench *b, int *rival, struct arbiter_share share)
{
	int a = bench_add(b, 40, 100);

	*rival = arbiter_add(b->arbiter, b->now, share);
	b->count++;
	bench_work(b, *rival);
	bench_run_for(b, 10 * MS);
	b->seen[a].waiting = true;
	bench_run_for(b, 10 * MS);
	bench_rest(b, *rival);
	while (bench_state(b, a) != LEASE_GO)
		bench_step(b, 50 * US);
	bench_work(b, a);
	bench_run_for(b, 2 * MS);
	assert_int_equal(arbiter_holder(b->arbiter), a);
	assert_int_equal(bench_state(b, a), LEASE_GO);
	return a;
}

static void test_interrupts_at_once(void **state)
{
	struct bench b = bench_new();
	int rival, third, a = holder_and_rival(&b, &rival, (struct arbiter_share){ 20, 100, 1 });

	third = bench_add(&b, 40, 100);
	b.seen[third].waiting = true;
	bench_run_for(&b, MS);
	assert_int_equal(arbiter_holder(b.arbiter), a);
	b.seen[rival].waiting = true;
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, a), LEASE_CLOSING);
	bench_rest(&b, a);
	b.seen[a].waiting = true;
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, rival), LEASE_GO);
	/* Longer than min_lease_ns and the quantum: its budget lasts for 50 ms. */
	bench_work(&b, rival);
	bench_run_for(&b, 30 * MS);
	assert_int_equal(bench_state(&b, rival), LEASE_GO);
	/* Done: the tenant that it interrupted goes on, not the one with the least virtual time. */
	bench_rest(&b, rival);
	bench_run_for(&b, 600 * US);
	assert_int_equal(bench_state(&b, a), LEASE_GO);
	assert_int_equal(arbiter_account(b.arbiter, third).leases, 0);
	arbiter_free(b.arbiter);
}

static void test_when_a_tenant_does_not_interrupt(void **state)
{
	struct arbiter_share shares[] = { { 20, 100, 0 }, { 20, 100, -1 }, { 0.1, 100, 1 } };

	for (int k = 0; k < 3; k++) {
		struct bench b = bench_new();
		int rival, a = holder_and_rival(&b, &rival, shares[k]);

		/* The last one has spent its budget. */
		assert_true((arbiter_account(b.arbiter, rival).budget_ns < 0) == (k == 2));
		b.seen[rival].waiting = true;
		bench_step(&b, 50 * US);
		assert_int_equal(bench_state(&b, a), LEASE_GO);
		arbiter_free(b.arbiter);
	}
}

static void test_closed_for_nothing(void **state)
{
	struct bench b = bench_new();
	int rival, third, a = holder_and_rival(&b, &rival, (struct arbiter_share){ 20, 100, 1 });

	third = bench_add(&b, 40, 100);
	b.seen[third].waiting = true;
	b.seen[rival].waiting = true;
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, a), LEASE_CLOSING);
	bench_rest(&b, rival);
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, a), LEASE_GO);
	arbiter_free(b.arbiter);
}

static void test_priority_changes(void **state)
{
	struct bench b = bench_new();
	int rival, a = holder_and_rival(&b, &rival, (struct arbiter_share){ 20, 100, 0 });

	b.seen[rival].waiting = true;
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, a), LEASE_GO);
	arbiter_set_share(b.arbiter, rival, (struct arbiter_share){ 20, 100, 5 });
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, a), LEASE_CLOSING);
	arbiter_set_share(b.arbiter, rival, (struct arbiter_share){ 20, 100, 0 });
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, a), LEASE_GO);
	/* Removed while its victim waits for its return, and the victim before it. */
	arbiter_set_share(b.arbiter, rival, (struct arbiter_share){ 20, 100, 5 });
	bench_step(&b, 50 * US);
	bench_rest(&b, a);
	b.seen[a].waiting = true;
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, rival), LEASE_GO);
	arbiter_remove(b.arbiter, a);
	bench_run_for(&b, 5 * MS);
	arbiter_free(b.arbiter);
}

/* Between equals in everything else. */
static void test_ties(void **state)
{
	struct bench b = bench_new();
	struct arbiter_share share = { 0, 100, 0 };

	b.config.urgent_default_pct = 0;
	arbiter_free(b.arbiter);
	b.arbiter = arbiter_new(&b.config);
	for (b.count = 0; b.count < 3; b.count++) {
		share.priority = b.count == 1;
		arbiter_add(b.arbiter, b.now, share);
		b.seen[b.count].waiting = true;
	}
	bench_step(&b, 0);
	bench_step(&b, 50 * US);
	assert_int_equal(arbiter_holder(b.arbiter), 1);
	arbiter_free(b.arbiter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inference_beside_trainer),
		cmocka_unit_test(test_long_bursts_beside_trainers),
		cmocka_unit_test(test_rare_inference),
		cmocka_unit_test(test_low_priority_trainer),
		cmocka_unit_test(test_pauses_within_a_burst),
		cmocka_unit_test(test_saturating),
		cmocka_unit_test(test_burst_is_bounded),
		cmocka_unit_test(test_two_in_a_hurry),
		cmocka_unit_test(test_no_disadvantage),
		cmocka_unit_test(test_capped_trainer),
		cmocka_unit_test(test_liars),
		cmocka_unit_test(test_interrupts_at_once),
		cmocka_unit_test(test_when_a_tenant_does_not_interrupt),
		cmocka_unit_test(test_closed_for_nothing),
		cmocka_unit_test(test_priority_changes),
		cmocka_unit_test(test_ties),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	printf("\n%-44s %9s  %4s  %7s  %7s\n%s", "case", "cores/lim", "prio", "p99 ms", "trainer",
	       table_text());
	return failed;
}
