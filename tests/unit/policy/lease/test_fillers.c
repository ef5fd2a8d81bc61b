/*
 * Opportunistic tenants: no guarantee, the lowest priority, capped at their request. Whatever they do, tenants with a guarantee
 * get it; the opportunistic ones get the idle time.
 */
#include "rules.h"

#include <math.h>

#define LOWEST (-100)

static const uint64_t lengths[] = { 20 * US, 200 * US, 1 * MS, 5 * MS };
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static void add_fillers(struct gpu_model *m, int count, uint64_t kernel_ns)
{
	struct gpu_model_load its = { .kernel_ns = kernel_ns };
	for (int i = 0; i < count; i++)
		gpu_model_add(m, (struct arbiter_share){ 0, 20, LOWEST }, &its);
}

/* One with all of its guarantee, beside 1 to 5 fillers that never stop. */
static void check_guarantee(double cores_pct, double limit_pct, double most_lost)
{
	double worst = 0;
	for (int fillers = 1; fillers <= 5; fillers += 2)
		for (size_t k = 0; k < LENGTHS * LENGTHS; k++) {
			struct gpu_model_load own = { .kernel_ns = lengths[k % LENGTHS] };
			struct gpu_model *m = model_new(11 + k);
			int a = gpu_model_add(m, (struct arbiter_share){ cores_pct, limit_pct, 0 },
					      &own);
			add_fillers(m, fillers, lengths[k / LENGTHS]);
			gpu_model_run(m, SECOND);
			worst = fmax(worst, cores_pct - share_over(m, a, 5 * SECOND));
			assert_int_equal(gpu_model_violations(m), 0);
			gpu_model_free(m);
		}
	print_message("guarantee %.0f, limit %.0f beside 1 to 5 fillers: at most %.2f less\n",
		      cores_pct, limit_pct, worst);
	assert_true(worst <= most_lost);
}

static void test_a_guarantee_holds(void **state)
{
	check_guarantee(80, 80, 0.5);
	check_guarantee(80, 100, 0.5);
	check_guarantee(50, 50, 0.5);
	check_guarantee(100, 100, 0.5);
}

/* The owner is idle for three fifths of the time. The others get that time, and yield when the owner is back. */
static void test_they_have_the_rest(void **state)
{
	struct gpu_model_load bursts = { .kernel_ns = MS, .burst_ns = 40 * MS, .think_ns = 60 * MS };
	struct gpu_model *m = model_new(7);
	int a = gpu_model_add(m, (struct arbiter_share){ 80, 80, 0 }, &bursts);
	uint64_t before_ns, filled_ns = 0;

	add_fillers(m, 3, MS);
	gpu_model_run(m, SECOND);
	gpu_model_take_latency_ns(m, a, 1);
	before_ns = gpu_model_work_ns(m, a + 1) + gpu_model_work_ns(m, a + 2) +
		    gpu_model_work_ns(m, a + 3);
	gpu_model_run(m, 10 * SECOND);
	for (int i = 1; i <= 3; i++)
		filled_ns += gpu_model_work_ns(m, a + i);
	filled_ns -= before_ns;
	double latency_ms = (double)gpu_model_take_latency_ns(m, a, 0.5) / 1e6;
	print_message("bursts of 40 ms take %.1f ms, fillers have %.1f %%\n", latency_ms,
		      (double)filled_ns / 1e8);
	/* Its burst takes as long as its cap lets it, and a moment to get the card back. */
	assert_true(latency_ms < 40 / 0.8 + 5);
	assert_true(filled_ns > 45 * SECOND / 10);
	gpu_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_a_guarantee_holds),
					    cmocka_unit_test(test_they_have_the_rest) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
