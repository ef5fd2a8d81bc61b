/*
 * Tenants that ring the doorbell at each change: few polls, and hand-overs as soon as with frequent polls. A tenant that does
 * not ring costs the others nothing.
 */
#include "rules.h"

#include <math.h>

static struct gpu_model *model_of(uint64_t seed, bool rings)
{
	struct gpu_model_config config = gpu_model_default_config();

	config.seed = seed;
	config.rings = rings;
	return gpu_model_new(&config);
}

struct outcome {
	double sum_pct, polls_per_lease, looks_a_second;
};

/* So many equal tenants that never stop. */
static struct outcome run_equal(bool rings, int tenants, uint64_t kernel_ns)
{
	struct gpu_model *m = model_of(11, rings);
	struct gpu_model_load load = { .kernel_ns = kernel_ns };
	uint64_t leases = 0, work = 0, steps;

	for (int i = 0; i < tenants; i++)
		gpu_model_add(m, (struct arbiter_share){ 100.0 / tenants, 100 }, &load);
	gpu_model_run(m, SECOND);
	steps = gpu_model_steps(m);
	for (int i = 0; i < tenants; i++) {
		leases -= arbiter_account(gpu_model_arbiter(m), i).leases;
		work -= gpu_model_work_ns(m, i);
	}
	gpu_model_run(m, 10 * SECOND);
	for (int i = 0; i < tenants; i++) {
		leases += arbiter_account(gpu_model_arbiter(m), i).leases;
		work += gpu_model_work_ns(m, i);
	}
	steps = gpu_model_steps(m) - steps;
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
	return (struct outcome){ (double)work / (10.0 * SECOND) * 100,
				 (double)steps / (double)leases, (double)steps / 10 };
}

static void test_few_polls_and_no_later(void **state)
{
	static const uint64_t lengths[] = { 20 * US, 50 * US, MS, 5 * MS };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (int tenants = 3; tenants <= 50; tenants += 47) {
			struct outcome polled = run_equal(false, tenants, lengths[i]);
			struct outcome ringing = run_equal(true, tenants, lengths[i]);

			print_message("%d tenants, %4d us: polled %.1f times a lease, sum %.2f %%; "
				      "ringing %.1f, %.2f\n",
				      tenants, (int)(lengths[i] / US), polled.polls_per_lease,
				      polled.sum_pct, ringing.polls_per_lease, ringing.sum_pct);
			assert_true(ringing.polls_per_lease < 9);
			assert_true(ringing.sum_pct > polled.sum_pct - 0.05);
		}
}

/* A tenant alone under a cap is charged by polls as usual; the time when its tokens return is known. */
static void test_capped_alone(void **state)
{
	for (int pct = 5; pct <= 95; pct += 15) {
		struct gpu_model *m = model_of(12, true);
		int a = gpu_model_add(m, (struct arbiter_share){ pct, pct }, &hungry);
		uint64_t steps;

		gpu_model_run(m, SECOND);
		steps = gpu_model_steps(m);
		assert_true(fabs(share_over(m, a, 10 * SECOND) - pct) < 0.5);
		assert_true(gpu_model_steps(m) - steps < 10 * 1100);
		gpu_model_free(m);
	}
}

/* A short pause of the holder, and the GPU is another's: as soon as by looking each 0.2 ms. */
static void test_idle_lease_goes_on(void **state)
{
	struct gpu_model_load bursts = { .kernel_ns = 200 * US,
					 .burst_ns = 6 * MS,
					 .think_ns = 9 * MS };
	double work[2];

	for (int rings = 0; rings <= 1; rings++) {
		struct gpu_model *m = model_of(13, rings);
		int a = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &bursts);
		int b = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &bursts);
		uint64_t steps;

		gpu_model_run(m, SECOND);
		steps = gpu_model_steps(m);
		work[rings] = share_over(m, a, 10 * SECOND);
		work[rings] += 100.0 * (double)gpu_model_work_ns(m, b) / (11.0 * SECOND);
		print_message("%s: sum of work %.1f %%, %.0f looks a second\n",
			      rings ? "ringing" : "polled", work[rings],
			      (double)(gpu_model_steps(m) - steps) / 10);
		assert_int_equal(gpu_model_violations(m), 0);
		gpu_model_free(m);
	}
	assert_true(work[1] > work[0] - 0.5);
}

/* A tenant that returns is seen at once: short requests get half of the GPU beside five tenants that never stop. */
static void test_come_back(void **state)
{
	struct gpu_model_load requests = { .kernel_ns = 200 * US,
					   .burst_ns = 4 * MS,
					   .think_ns = 60 * MS,
					   .think_max_ns = 90 * MS };
	uint64_t latency[2];

	for (int rings = 0; rings <= 1; rings++) {
		struct gpu_model *m = model_of(14, rings);
		int a = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &requests);

		for (int i = 0; i < 5; i++)
			gpu_model_add(m, (struct arbiter_share){ 10, 100 }, &hungry);
		gpu_model_run(m, SECOND);
		gpu_model_take_latency_ns(m, a, 0.5);
		gpu_model_run(m, 60 * SECOND);
		latency[rings] = gpu_model_take_latency_ns(m, a, 0.99);
		gpu_model_free(m);
	}
	print_message("99 %% of requests of 4 ms: %.2f ms polled, %.2f ringing\n",
		      (double)latency[0] / MS, (double)latency[1] / MS);
	assert_true(latency[1] < latency[0] + MS / 2);
}

/* A tenant that should ring and never does: only its own time is lost. */
static void test_silent_one_pays(void **state)
{
	struct gpu_model *m = model_of(15, true);
	struct gpu_model_load silent = { .kernel_ns = MS, .is_silent = true };
	double share[3];
	int tenant[3];
	uint64_t before[3];

	for (int i = 0; i < 3; i++)
		tenant[i] = gpu_model_add(m, (struct arbiter_share){ 100.0 / 3, 100 },
					  i ? &hungry : &silent);
	gpu_model_run(m, 2 * SECOND);
	for (int i = 0; i < 3; i++)
		before[i] = gpu_model_work_ns(m, tenant[i]);
	gpu_model_run(m, 20 * SECOND);
	for (int i = 0; i < 3; i++)
		share[i] = 100.0 * (double)(gpu_model_work_ns(m, tenant[i]) - before[i]) /
			   (20.0 * SECOND);
	print_message("silent %.2f %%, others %.2f and %.2f\n", share[0], share[1], share[2]);
	assert_true(share[0] < 33.4);
	assert_true(share[1] > 32.5 && share[2] > 32.5);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

static void test_idle_needs_no_polls(void **state)
{
	struct gpu_model *m = model_of(16, true);
	uint64_t steps;

	for (int i = 0; i < 50; i++)
		gpu_model_add(m, (struct arbiter_share){ 2, 100 }, &resting);
	gpu_model_run(m, SECOND);
	steps = gpu_model_steps(m);
	gpu_model_run(m, 10 * SECOND);
	assert_true(gpu_model_steps(m) - steps <= 51);

	/* If one of the tenants can't ring, it is polled as usual. */
	struct arbiter_observation seen = { .has_doorbell = false };
	uint64_t now = gpu_model_now_ns(m);

	arbiter_observe(gpu_model_arbiter(m), 7, &seen);
	assert_int_equal(arbiter_step(gpu_model_arbiter(m), now) - now,
			 arbiter_default_config().poll_idle_ns);
	gpu_model_free(m);
}

/* A lease that was idle before a poll counts as idle from that poll on, and not earlier. */
static void test_idle_time_is_believed_in_bounds(void **state)
{
	struct bench b = bench_new();
	int a = bench_add(&b, 50, 99), c = bench_add(&b, 50, 99);

	b.seen[a].has_doorbell = b.seen[c].has_doorbell = true;
	bench_work(&b, a);
	bench_run_for(&b, 4 * MS);
	b.seen[c].waiting = true;
	bench_step(&b, 100 * US);
	assert_int_equal(arbiter_holder(b.arbiter), a);
	/* More work since, and done for 1 ms. */
	b.seen[a].launches++;
	bench_rest(&b, a);
	b.seen[a].idle_ns = MS;
	bench_step(&b, 2 * MS);
	assert_int_equal(bench_state(&b, a), LEASE_CLOSING);
	arbiter_free(b.arbiter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_polls_and_no_later),
		cmocka_unit_test(test_capped_alone),
		cmocka_unit_test(test_idle_lease_goes_on),
		cmocka_unit_test(test_come_back),
		cmocka_unit_test(test_silent_one_pays),
		cmocka_unit_test(test_idle_needs_no_polls),
		cmocka_unit_test(test_idle_time_is_believed_in_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
