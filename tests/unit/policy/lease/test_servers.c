/*
 * Inference servers that share a GPU by turns: two LLM servers, and one beside a training. Against the hardware's own slicing
 * of the same load, and against the server alone.
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
	.tells_rests = true,
};
/* A decode step is one graph; eight of them, and a request has ended and another begins. */
static const struct gpu_model_load server = {
	.kernel_ns = 5150 * US,
	.burst_ns = 5150 * US,
	.think_ns = 200 * US,
	.think_max_ns = 300 * US,
	.tells_rests = true,
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
	.tells_rests = true,
};

/* Results of one tenant; of a training, whose steps take 270 ms, only work_pct is compared. */
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
		say("| %s, %s | %.0f | %.1f | %.1f | %.1f | %.1f |\n", what,
		    load[i] == &server ? "server" : "training", got[i].tokens_s, got[i].work_pct,
		    got[i].p50_ms, got[i].p99_ms, got[i].prefill_ms);
	}
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

static const struct gpu_model_load *const two[] = { &server, &server };
static const struct gpu_model_load *const mixed[] = { &server, &training };
static const struct arbiter_share half[] = { { 50, 100, 0 }, { 50, 100, 0 } };
static const struct arbiter_share uneven[] = { { 40, 100, 0 }, { 60, 100, 0 } };

/* The model shows what was measured on an H100 (driver 580.159.04). */
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

/*
 * By turns: shares are right, no work is lost, and a turn is a step long. (With turns of 25 ms and more a step took up to 56 ms.)
 */
static void test_by_turns(void **state)
{
	struct got alone[1], native[2], got[2];

	run("alone", true, 1, two, half, alone);
	run("two, native", true, 2, two, half, native);
	run("two, turns", false, 2, two, half, got);
	assert_true(fabs(got[0].work_pct - got[1].work_pct) < 0.5);
	assert_true(got[0].tokens_s + got[1].tokens_s >= native[0].tokens_s + native[1].tokens_s);
	for (int i = 0; i < 2; i++)
		assert_true(got[i].p50_ms < native[i].p50_ms &&
			    got[i].p99_ms < 1.3 * native[i].p99_ms);
	run("40 beside a training, turns", false, 2, mixed, uneven, got);
	/* The training gets the time that the server leaves between its steps. */
	assert_true(got[0].work_pct > 37 && got[1].work_pct > 57.5);
	/* The best there is: a step alone, by its share. */
	assert_true(got[0].p99_ms < 1.3 * alone[0].p99_ms / 0.4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone_as_measured),
		cmocka_unit_test(test_sliced_by_the_hardware_as_measured),
		cmocka_unit_test(test_by_turns),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	printf("| scene | tokens/s | work %% | step p50 ms | step p99 ms | prefill p50 ms |\n%s",
	       said());
	return failed;
}
