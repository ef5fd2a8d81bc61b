/*
 * Inference servers that share a GPU by time: two LLM servers, and one beside a training. The same load sliced by the hardware
 * without an arbiter, and the server alone, are for comparison. Also: which tenants get turns instead of slices.
 */
#include <math.h>
#include <stdio.h>

#include "rules.h"

#define RUN_S 12

/* Prefill of 512 tokens by a 4B model, launched eagerly: 10 ms of work, launch-bound. */
static const struct gpu_model_load prefill = {
	.kernel_ns = 5 * US,
	.kernel_max_ns = 35 * US,
	.burst_ns = 9 * MS,
	.launch_ns = 18 * US,
	.gap_every = 28,
	.gap_ns = 50 * US,
	.gap_max_ns = 400 * US,
	.think_ns = 200 * US,
	.think_max_ns = 300 * US,
	.reports_sync_points = true,
};
/* A decode step is one graph; eight of them, and a request has ended and another begins. */
static const struct gpu_model_load server = {
	.kernel_ns = 5150 * US,
	.burst_ns = 5150 * US,
	.think_ns = 200 * US,
	.think_max_ns = 300 * US,
	.reports_sync_points = true,
	.other_every = 9,
	.other = &prefill,
};
/* ResNet18, batch 128, which synchronizes every ten steps. */
static const struct gpu_model_load training = {
	.kernel_ns = 50 * US,
	.kernel_max_ns = 250 * US,
	.burst_ns = 270 * MS,
	.launch_ns = 20 * US,
	.think_ns = 300 * US,
	.reports_sync_points = true,
};

/* Results of one tenant. Of a training, whose steps take 270 ms, only work_pct is compared. */
struct got {
	double tokens_s, work_pct, p50_ms, p99_ms, prefill_ms;
};

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static struct got take(struct gpu_model *m, int tenant, uint64_t bursts_before, uint64_t work_before)
{
	double bursts = (double)(gpu_model_bursts(m, tenant) - bursts_before);
	double work_ns = (double)(gpu_model_work_ns(m, tenant) - work_before);

	return (struct got){
		/* Eight requests are served together; of nine bursts one is a prefill. */
		.tokens_s = bursts * 8 * 8 / 9 / RUN_S,
		.work_pct = 100 * work_ns / (RUN_S * 1e9),
		.p50_ms = ms(gpu_model_latency_ns(m, tenant, 0.5)),
		.p99_ms = ms(gpu_model_latency_ns(m, tenant, 0.99)),
		.prefill_ms = ms(gpu_model_take_other_latency_ns(m, tenant, 0.5)),
	};
}

static void run(const char *what, bool is_native, int count,
		const struct gpu_model_load *const *load, const struct arbiter_share *share,
		struct got *got)
{
	struct gpu_model_config config = gpu_model_default_config();

	config.is_native = is_native;
	struct gpu_model *m = gpu_model_new(&config);
	uint64_t bursts[2], work[2];
	int tenant[2];

	for (int i = 0; i < count; i++)
		tenant[i] = gpu_model_add(m, share[i], load[i]);
	gpu_model_run(m, 2 * SECOND);
	for (int i = 0; i < count; i++) {
		bursts[i] = gpu_model_bursts(m, tenant[i]);
		work[i] = gpu_model_work_ns(m, tenant[i]);
		gpu_model_take_latency_ns(m, tenant[i], 1);
		gpu_model_take_other_latency_ns(m, tenant[i], 1);
	}
	gpu_model_run(m, RUN_S * SECOND);
	for (int i = 0; i < count; i++) {
		got[i] = take(m, tenant[i], bursts[i], work[i]);
		table_add("| %s, %s | %.0f | %.1f | %.1f | %.1f | %.1f |\n", what,
			  load[i] == &server ? "server" : "training", got[i].tokens_s,
			  got[i].work_pct, got[i].p50_ms, got[i].p99_ms, got[i].prefill_ms);
	}
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

/* A decode step of a 1B model without a CUDA graph: most of the time the GPU waits for the CPU. */
static const struct gpu_model_load eager = {
	.kernel_ns = 3 * US,
	.kernel_max_ns = 15 * US,
	.burst_ns = 3 * MS,
	.launch_ns = 12 * US,
	.gap_every = 40,
	.gap_ns = 20 * US,
	.gap_max_ns = 300 * US,
	.think_ns = 200 * US,
	.think_max_ns = 500 * US,
	.reports_sync_points = true,
};

static const struct gpu_model_load *const two[] = { &server, &server };
static const struct gpu_model_load *const two_eager[] = { &eager, &eager };
static const struct gpu_model_load *const mixed[] = { &server, &training };
static const struct arbiter_share half[] = { { 50, 100, 0 }, { 50, 100, 0 } };
static const struct arbiter_share uneven[] = { { 40, 100, 0 }, { 60, 100, 0 } };

/* The model reproduces the measurements on an H100 (driver 580.159.04). */
static void test_alone_as_measured(void **state)
{
	struct got got[1];

	run("alone", true, 1, two, half, got);
	assert_true(got[0].tokens_s > 1080 && got[0].tokens_s < 1180);
	assert_true(fabs(got[0].p50_ms - 5.4) < 0.3 && got[0].p99_ms < 6);
	assert_true(fabs(got[0].prefill_ms - 13) < 2);
}

static void test_sliced_by_the_hardware_as_measured(void **state)
{
	struct got got[2];

	run("two, native", true, 2, two, half, got);
	for (int i = 0; i < 2; i++) {
		assert_true(fabs(got[i].tokens_s - 588) < 60);
		assert_true(fabs(got[i].p50_ms - 11.3) < 0.6 && fabs(got[i].p99_ms - 12.4) < 1.2);
		assert_true(fabs(got[i].prefill_ms - 20) < 3);
	}
	run("40 beside a training, native", true, 2, mixed, uneven, got);
	assert_true(fabs(got[0].p99_ms - 12.3) < 1.2);
}

/* Two alike lose nothing against the hardware by itself: neither work nor a steady step. */
static void test_two_alike(void **state)
{
	struct got native[2], got[2];

	run("two, native", true, 2, two, half, native);
	run("two, allot", false, 2, two, half, got);
	assert_true(fabs(got[0].work_pct - got[1].work_pct) < 0.5);
	for (int i = 0; i < 2; i++)
		assert_true(got[i].tokens_s > 0.99 * native[i].tokens_s &&
			    got[i].p99_ms < 1.15 * native[i].p99_ms);
}

static void test_beside_a_training(void **state)
{
	static const struct arbiter_share first[] = { { 40, 100, 10 }, { 60, 100, 0 } };
	struct got alone[1], got[2];

	run("alone", true, 1, two, half, alone);
	run("40 with priority beside a training, allot", false, 2, mixed, first, got);
	assert_true(got[0].p99_ms < 1.25 * alone[0].p99_ms / 0.4);
	assert_true(got[0].work_pct > 34 && got[1].work_pct > 50);
	run("40 beside a training, allot", false, 2, mixed, uneven, got);
	/* The best there is: a step alone, by its share. And all steps are about as long. */
	assert_true(got[0].p99_ms < 1.15 * alone[0].p99_ms / 0.4 &&
		    got[0].p99_ms < 1.1 * got[0].p50_ms);
	/* 40 to 60, of the work that slices leave. */
	assert_true(got[0].work_pct > 34 && got[1].work_pct > 50);
}

/*
 * A cap is kept, and a server's steps stay steady; beside a training, if the server has the higher priority. A server alone
 * with a cap has turns. After a prompt a server waits for as long as the prompt was above its cap.
 */
static void test_caps(void **state)
{
	static const struct arbiter_share both[] = { { 50, 50, 0 }, { 50, 50, 0 } };
	static const struct arbiter_share quarter[] = { { 25, 25, 0 }, { 25, 25, 0 } };
	static const struct arbiter_share pair[] = { { 40, 40, 10 }, { 60, 60, 0 } };
	struct got native[2], got[2];

	run("two, native", true, 2, two, half, native);
	run("two, cap 50", false, 2, two, both, got);
	for (int i = 0; i < 2; i++)
		assert_true(got[i].tokens_s > 0.99 * native[i].tokens_s &&
			    got[i].p99_ms < 1.25 * native[i].p99_ms);
	run("two, cap 25", false, 2, two, quarter, got);
	for (int i = 0; i < 2; i++)
		assert_true(got[i].work_pct < 25.5 && got[i].work_pct > 20 &&
			    got[i].p99_ms < 1.4 * 5.4 / 0.25);
	run("40 beside a training, caps", false, 2, mixed, pair, got);
	assert_true(got[0].p99_ms < 1.25 * 5.4 / 0.4);
	assert_true(got[0].work_pct > 34 && got[0].work_pct < 40.5);
	assert_true(got[1].work_pct > 50 && got[1].work_pct < 60.5);
	/* Its pauses count as part of its steps, up to a sixteenth of them. */
	run("one, cap 50", false, 1, two, both, got);
	assert_true(got[0].work_pct > 50 / (1 + 1.0 / 16) && got[0].work_pct < 50 &&
		    got[0].p99_ms < 3 * 5.4);
}

struct scene {
	struct gpu_model *model;
	int tenant[5];
	int count;
};

static struct scene begin_as(const struct gpu_model_config *config, int count,
			     const struct gpu_model_load *const *load,
			     const struct arbiter_share *share)
{
	struct scene s = { .model = gpu_model_new(config), .count = count };

	for (int i = 0; i < count; i++)
		s.tenant[i] = gpu_model_add(s.model, share[i], load[i]);
	gpu_model_run(s.model, 2 * SECOND);
	return s;
}

static struct scene begin(int count, const struct gpu_model_load *const *load,
			  const struct arbiter_share *share)
{
	struct gpu_model_config config = gpu_model_default_config();

	return begin_as(&config, count, load, share);
}

static double charged_pct(struct scene *s, int which, uint64_t before_ns, double seconds)
{
	struct arbiter_account account = arbiter_account(gpu_model_arbiter(s->model),
							 s->tenant[which]);

	return 100 * (double)(account.charged_ns - before_ns) / (seconds * 1e9);
}

static uint64_t charged_ns(struct scene *s, int which)
{
	return arbiter_account(gpu_model_arbiter(s->model), s->tenant[which]).charged_ns;
}

static void end(struct scene *s)
{
	assert_int_equal(gpu_model_violations(s->model), 0);
	gpu_model_free(s->model);
}

/*
 * The hardware already gives two tenants of the same share the same time, and the GPU idles now and then. So a tenant is rarely
 * held.
 */
static void test_two_eager(void **state)
{
	struct got native[2], got[2];
	struct scene s = begin(2, two_eager, half);
	unsigned held_ms = 0;

	for (int i = 0; i < RUN_S * 1000; i++) {
		gpu_model_run(s.model, MS);
		assert_int_equal(arbiter_mode(gpu_model_arbiter(s.model)), ARBITER_SLICED);
		for (int k = 0; k < 2; k++)
			held_ms += arbiter_account(gpu_model_arbiter(s.model), s.tenant[k]).state !=
				   LEASE_FREE;
	}
	table_add("| two eager, held %u of %u ms | | | | | |\n", held_ms, RUN_S * 1000);
	assert_true(held_ms < RUN_S * 1000 / 100);
	end(&s);
	run("two eager, native", true, 2, two_eager, half, native);
	run("two eager, allot", false, 2, two_eager, half, got);
	for (int i = 0; i < 2; i++)
		assert_true(got[i].tokens_s > 0.99 * native[i].tokens_s);
}

/*
 * The arbiter knows when a held tenant's tokens are back. So it steps no more often for a low cap, under which the training is
 * nearly always held.
 */
static void test_steps_while_over_the_cap(void **state)
{
	static const double limits_pct[] = { 60, 5 };
	double steps_s[2];

	for (int i = 0; i < 2; i++) {
		const struct arbiter_share share[] = { { 40, 40, 10 },
						       { limits_pct[i], limits_pct[i], 0 } };
		struct scene s = begin(2, mixed, share);
		uint64_t before = gpu_model_steps(s.model);

		gpu_model_run(s.model, RUN_S * SECOND);
		assert_int_equal(arbiter_mode(gpu_model_arbiter(s.model)), ARBITER_SLICED);
		steps_s[i] = (double)(gpu_model_steps(s.model) - before) / RUN_S;
		table_add("| beside a training, cap %.0f: %.0f steps/s of the arbiter | | | | | |\n",
			  limits_pct[i], steps_s[i]);
		end(&s);
	}
	assert_true(steps_s[1] < 1.1 * steps_s[0]);
}

/* A prompt of 300 ms in 40 steps is no reason for turns, though with caps all must have short steps. */
static void test_long_prompts(void **state)
{
	static const struct gpu_model_load prompt = { .kernel_ns = 300 * MS,
						      .burst_ns = 300 * MS,
						      .think_ns = 300 * US,
						      .reports_sync_points = true };
	struct gpu_model_load reader = server;
	const struct gpu_model_load *const load[] = { &reader, &server };
	static const struct arbiter_share capped[] = { { 50, 50, 0 }, { 50, 50, 0 } };
	unsigned sliced = 0;
	struct scene s;

	reader.other_every = 40;
	reader.other = &prompt;
	s = begin(2, load, capped);
	for (int i = 0; i < 4000; i++) {
		gpu_model_run(s.model, MS);
		sliced += arbiter_mode(gpu_model_arbiter(s.model)) == ARBITER_SLICED;
	}
	table_add("| long prompts | sliced %.1f %% of the time | | | | |\n", sliced / 40.0);
	assert_int_equal(sliced, 4000);
	end(&s);
}

/* The hardware gives all the same time; the arbiter makes the difference. A prompt also waits for things other than the GPU. */
static void test_shares_of_three(void **state)
{
	static const struct gpu_model_load *const load[] = { &server, &server, &training };
	static const struct arbiter_share share[] = { { 60, 100, 0 },
						      { 25, 100, 0 },
						      { 15, 100, 0 } };
	struct scene s = begin(3, load, share);
	uint64_t before[3];

	for (int i = 0; i < 3; i++)
		before[i] = charged_ns(&s, i);
	gpu_model_run(s.model, RUN_S * SECOND);
	assert_int_equal(arbiter_mode(gpu_model_arbiter(s.model)), ARBITER_SLICED);
	for (int i = 0; i < 3; i++)
		table_add("| 60, 25, 15 | %.1f of %.0f | | | | |\n",
			  charged_pct(&s, i, before[i], RUN_S), share[i].cores_pct);
	for (int i = 0; i < 2; i++)
		assert_true(charged_pct(&s, i, before[i], RUN_S) > share[i].cores_pct - 6);
	assert_true(charged_pct(&s, 2, before[2], RUN_S) > 14.5);
	end(&s);
}

/* Each process has slices of its own: a tenant gains nothing by having three. */
static void test_more_processes_are_no_larger_share(void **state)
{
	struct scene s = begin(2, two, half);
	uint64_t before[2];

	gpu_model_add_process(s.model, s.tenant[1], &server);
	gpu_model_add_process(s.model, s.tenant[1], &training);
	gpu_model_run(s.model, SECOND);
	for (int i = 0; i < 2; i++)
		before[i] = charged_ns(&s, i);
	gpu_model_run(s.model, RUN_S * SECOND);
	table_add("| one process beside three | %.1f | | | | |\n",
		  charged_pct(&s, 0, before[0], RUN_S));
	assert_true(charged_pct(&s, 0, before[0], RUN_S) > 46);
	end(&s);
}

/* A tenant that returns has its share at once, and a tenant that is alone again has the whole GPU. */
static void test_a_tenant_leaves_and_returns(void **state)
{
	struct scene s = begin(2, two, half);
	uint64_t work, alone_work;

	gpu_model_run(s.model, SECOND);
	gpu_model_set_stopped(s.model, s.tenant[1], true);
	gpu_model_run(s.model, 50 * MS);
	alone_work = gpu_model_work_ns(s.model, s.tenant[0]);
	gpu_model_run(s.model, SECOND);
	alone_work = gpu_model_work_ns(s.model, s.tenant[0]) - alone_work;
	assert_true(alone_work > 0.89 * SECOND);
	gpu_model_set_stopped(s.model, s.tenant[1], false);
	gpu_model_run(s.model, 20 * MS);
	work = gpu_model_work_ns(s.model, s.tenant[1]);
	gpu_model_run(s.model, 500 * MS);
	work = gpu_model_work_ns(s.model, s.tenant[1]) - work;
	assert_true(work > 0.4 * 500 * MS);
	end(&s);
}

/* While a tenant of higher priority works, no other begins work, as far as the budget allows. */
static void test_priority(void **state)
{
	static const struct gpu_model_load now_and_then = {
		.kernel_ns = 5150 * US,
		.burst_ns = 5150 * US,
		.think_ns = 15 * MS,
		.think_max_ns = 25 * MS,
		.reports_sync_points = true,
	};
	static const struct gpu_model_load *const load[] = { &now_and_then, &training };
	static const struct arbiter_share first[] = { { 40, 100, 10 }, { 60, 100, 0 } };
	double p50_ms[2], p99_ms[2];

	for (int i = 0; i < 2; i++) {
		struct scene s = begin(2, load, i ? first : uneven);

		gpu_model_take_latency_ns(s.model, s.tenant[0], 1);
		gpu_model_run(s.model, RUN_S * SECOND);
		assert_int_equal(arbiter_mode(gpu_model_arbiter(s.model)), ARBITER_SLICED);
		p50_ms[i] = ms(gpu_model_latency_ns(s.model, s.tenant[0], 0.5));
		p99_ms[i] = ms(gpu_model_latency_ns(s.model, s.tenant[0], 0.99));
		table_add("| now and then, priority %d | | | %.1f | %.1f | |\n", i ? 10 : 0,
			  p50_ms[i], p99_ms[i]);
		end(&s);
	}
	assert_true(p50_ms[1] < 0.75 * p50_ms[0] && p99_ms[1] < 0.9 * p99_ms[0]);
}

/* The same beside three trainings, whose work in flight must end first. */
static void test_priority_beside_three(void **state)
{
	static const struct gpu_model_load now_and_then = {
		.kernel_ns = 5150 * US,
		.burst_ns = 5150 * US,
		.think_ns = 40 * MS,
		.think_max_ns = 50 * MS,
		.reports_sync_points = true,
	};
	static const struct gpu_model_load *const load[] = { &now_and_then, &training, &training,
							     &training };
	double p50_ms[2];

	for (int i = 0; i < 2; i++) {
		const struct arbiter_share share[] = {
			{ 25, 100, 10 * i }, { 25, 100, 0 }, { 25, 100, 0 }, { 25, 100, 0 }
		};
		struct scene s = begin(4, load, share);

		gpu_model_take_latency_ns(s.model, s.tenant[0], 1);
		gpu_model_run(s.model, RUN_S * SECOND);
		assert_int_equal(arbiter_mode(gpu_model_arbiter(s.model)), ARBITER_SLICED);
		p50_ms[i] = ms(gpu_model_latency_ns(s.model, s.tenant[0], 0.5));
		table_add("| now and then beside three, priority %d | | | %.1f | %.1f | |\n",
			  10 * i, p50_ms[i], ms(gpu_model_latency_ns(s.model, s.tenant[0], 0.99)));
		end(&s);
	}
	assert_true(p50_ms[1] < 0.75 * p50_ms[0]);
}

/* A tenant that never stops gets no more than its share by its priority. */
static void test_priority_is_no_larger_share(void **state)
{
	static const struct arbiter_share first[] = { { 40, 100, 10 }, { 60, 100, 0 } };
	struct scene s = begin(2, mixed, first);
	uint64_t before = charged_ns(&s, 1);

	gpu_model_run(s.model, RUN_S * SECOND);
	table_add("| beside a server of 40 %% with priority | %.1f of 60 | | | | |\n",
		  charged_pct(&s, 1, before, RUN_S));
	assert_true(charged_pct(&s, 1, before, RUN_S) > 57);
	end(&s);
}

/*
 * Whatever a tenant reports, and whatever its priority, the other has its half of the slices, and never waits for a tenant that
 * does not come.
 */
static void test_liars(void **state)
{
	static const struct arbiter_share first[] = { { 50, 100, 0 }, { 50, 100, 10 } };

	for (int i = 0; i < 2 * (LIE_GARBAGE - LIE_IDLE + 1); i++) {
		struct gpu_model_load liar = server;
		const struct gpu_model_load *const load[] = { &server, &liar };
		struct scene s;
		uint64_t work;

		liar.lie = LIE_IDLE + i / 2;
		s = begin(2, load, i % 2 ? first : half);
		work = gpu_model_work_ns(s.model, s.tenant[0]);
		gpu_model_run(s.model, RUN_S * SECOND);
		work = gpu_model_work_ns(s.model, s.tenant[0]) - work;
		table_add("| beside liar %d%s | %.1f | | | | |\n", (int)liar.lie,
			  i % 2 ? ", of a higher priority" : "", (double)work / (RUN_S * 1e7));
		assert_true(work > 0.4 * RUN_S * SECOND);
		end(&s);
	}
}

/* A loop that only launches and waits would lose time by slices and gain nothing. And slices can be switched off. */
static void test_which_tenants_have_turns(void **state)
{
	static const struct gpu_model_load loop = {
		.kernel_ns = MS,
		.burst_ns = 8 * MS,
		.launch_ns = 30 *
			     US, /* launching takes longer than a server's gap, but the GPU works meanwhile */
		.reports_sync_points = true,
	};
	static const struct gpu_model_load *const loops[] = { &loop, &loop, &loop, &loop, &loop };
	static const struct arbiter_share fifth[] = {
		{ 20, 100, 0 }, { 20, 100, 0 }, { 20, 100, 0 }, { 20, 100, 0 }, { 20, 100, 0 }
	};
	static const struct arbiter_share capped[] = { { 40, 40, 0 }, { 60, 60, 0 } };
	struct gpu_model_config none = gpu_model_default_config();
	struct scene s;
	double sum_ns = 0;

	none.arbiter.slice_step_ns = 0;
	s = begin_as(&none, 2, two, half);
	assert_int_equal(arbiter_mode(gpu_model_arbiter(s.model)), ARBITER_LEASES);
	end(&s);
	/* A training's cap is kept by turns, unless the server has a higher priority. */
	s = begin(2, mixed, capped);
	assert_int_equal(arbiter_mode(gpu_model_arbiter(s.model)), ARBITER_LEASES);
	end(&s);
	s = begin(5, loops, fifth);
	assert_int_equal(arbiter_mode(gpu_model_arbiter(s.model)), ARBITER_LEASES);
	for (int i = 0; i < 5; i++)
		sum_ns -= (double)gpu_model_work_ns(s.model, s.tenant[i]);
	gpu_model_run(s.model, RUN_S * SECOND);
	for (int i = 0; i < 5; i++)
		sum_ns += (double)gpu_model_work_ns(s.model, s.tenant[i]);
	table_add("| five loops of 8 kernels | %.1f %% | | | | |\n", sum_ns / (RUN_S * 1e7));
	assert_true(sum_ns > 0.95 * RUN_S * 1e9);
	end(&s);
}

/*
 * Trainings that wait for each step of 19 to 25 ms keep the GPU busy, so slices would only cost them work. They take turns, also
 * after a start with short steps, as while they copy their weights.
 */
static void test_trainings_have_turns(void **state)
{
	static const struct arbiter_share capped[] = { { 45, 45, 0 }, { 30, 30, 0 }, { 15, 15, 0 } };
	static const uint64_t step_ns[] = { 25 * MS, 19 * MS, 22 * MS };
	static const struct gpu_model_load start = {
		.kernel_ns = 300 * US,
		.burst_ns = 2 * MS,
		.think_ns = 200 * US,
		.reports_sync_points = true,
	};
	static const struct gpu_model_load *const starts[] = { &start, &start, &start };
	struct scene s = begin(3, starts, capped);
	uint64_t before[3];

	assert_int_equal(arbiter_mode(gpu_model_arbiter(s.model)), ARBITER_SLICED);
	for (int i = 0; i < 3; i++) {
		struct gpu_model_load steps = training;

		steps.burst_ns = step_ns[i];
		gpu_model_set_load(s.model, s.tenant[i], &steps);
	}
	gpu_model_run(s.model, SECOND);
	assert_int_equal(arbiter_mode(gpu_model_arbiter(s.model)), ARBITER_LEASES);
	for (int i = 0; i < 3; i++)
		before[i] = gpu_model_work_ns(s.model, s.tenant[i]);
	gpu_model_run(s.model, RUN_S * SECOND);
	for (int i = 0; i < 3; i++) {
		uint64_t work_ns = gpu_model_work_ns(s.model, s.tenant[i]) - before[i];
		double pct = (double)work_ns / (RUN_S * 1e7);

		table_add("| training, step %.0f ms, cap %.0f | | %.1f | | | |\n", ms(step_ns[i]),
			  capped[i].cores_pct, pct);
		assert_true(fabs(pct - capped[i].cores_pct) < 0.5);
	}
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone_as_measured),
		cmocka_unit_test(test_sliced_by_the_hardware_as_measured),
		cmocka_unit_test(test_two_alike),
		cmocka_unit_test(test_beside_a_training),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_two_eager),
		cmocka_unit_test(test_steps_while_over_the_cap),
		cmocka_unit_test(test_long_prompts),
		cmocka_unit_test(test_shares_of_three),
		cmocka_unit_test(test_more_processes_are_no_larger_share),
		cmocka_unit_test(test_a_tenant_leaves_and_returns),
		cmocka_unit_test(test_priority),
		cmocka_unit_test(test_priority_beside_three),
		cmocka_unit_test(test_priority_is_no_larger_share),
		cmocka_unit_test(test_liars),
		cmocka_unit_test(test_which_tenants_have_turns),
		cmocka_unit_test(test_trainings_have_turns),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	printf("| scene | tokens/s | work %% | step p50 ms | step p99 ms | prefill p50 ms |\n%s",
	       table_text());
	return failed;
}
