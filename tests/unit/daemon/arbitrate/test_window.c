#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/arbitrate/window.h"

#define MS NSEC_PER_MSEC

static void check(double pct, double wanted, double slack)
{
	if (pct < wanted - slack || pct > wanted + slack)
		fail_msg("%g, wanted %g +- %g", pct, wanted, slack);
}

static void test_young(void **state)
{
	struct window w;
	window_init(&w, NSEC_PER_SEC, 0, 0);
	check(window_pct(&w, 0, 0), 0, 0);
	check(window_pct(&w, 100 * MS, 25 * MS), 25, 0.01);
}

static void test_steady(void **state)
{
	struct window w;
	window_init(&w, NSEC_PER_SEC, 0, 0);
	for (uint64_t t = 0; t <= 5000 * MS; t += 50 * MS)
		window_add(&w, t, t * 3 / 10);
	check(window_pct(&w, 5000 * MS, 1500 * MS), 30, 0.01);
}

static void test_old_work_is_forgotten(void **state)
{
	struct window w;
	window_init(&w, NSEC_PER_SEC, 0, 0);
	uint64_t value = 0;
	for (uint64_t t = 0; t <= 3000 * MS; t += 50 * MS) {
		value = t < 1000 * MS ? t : 1000 * MS;
		window_add(&w, t, value);
	}
	check(window_pct(&w, 3000 * MS, value), 0, 0);
	check(window_pct(&w, 1500 * MS, value), 0, 100); /* any time is legal */
}

static void test_halves(void **state)
{
	struct window w;
	window_init(&w, NSEC_PER_SEC, 0, 0);
	uint64_t value = 0;
	for (uint64_t t = 0; t <= 10000 * MS; t += 50 * MS) {
		value += t > 9500 * MS ? 50 * MS : 0;
		window_add(&w, t, value);
	}
	check(window_pct(&w, 10000 * MS, value), 50, 3);
}

static void test_uneven_ticks(void **state)
{
	struct window w;
	window_init(&w, NSEC_PER_SEC, 0, 0);
	uint64_t t = 0;
	for (unsigned i = 0; i < 400; i++) {
		t += i % 2 ? 49 * MS : 57 * MS;
		window_add(&w, t, t / 2);
	}
	check(window_pct(&w, t, t / 2), 50, 0.01);
}

static void test_gap(void **state)
{
	struct window w;
	window_init(&w, NSEC_PER_SEC, 0, 0);
	window_add(&w, 100 * MS, 100 * MS);
	/* Nothing was sampled for ten seconds: the average is over them, not over a second. */
	check(window_pct(&w, 10100 * MS, 5100 * MS), 50, 0.01);
}

/* A burst of 200 ms in each second is a peak of 100 % from its end until the next one begins. */
static void test_peak_of_bursts(void **state)
{
	struct window w;
	window_init(&w, NSEC_PER_SEC, 0, 0);
	uint64_t value = 0;
	for (uint64_t t = 0; t <= 10000 * MS; t += 50 * MS) {
		value += t % (1000 * MS) < 200 * MS ? 50 * MS : 0;
		window_add(&w, t, value);
		if (t > 1000 * MS && t % (1000 * MS) >= 150 * MS)
			check(window_peak_pct(&w, 3, t + 20 * MS, value), 100, 0.1);
		if (t > 1000 * MS && t % (1000 * MS) >= 200 * MS)
			/* The newest steps count from half a second on. */
			check(window_peak_pct(&w, 12, t + 20 * MS, value), 36, 3);
	}
}

static void test_peak_of_steady_work(void **state)
{
	struct window w;
	window_init(&w, NSEC_PER_SEC, 0, 0);
	check(window_peak_pct(&w, 3, 0, 0), 0, 0);
	for (uint64_t t = 0; t <= 5000 * MS; t += 50 * MS)
		window_add(&w, t, t * 3 / 10);
	check(window_peak_pct(&w, 3, 5000 * MS, 1500 * MS), 30, 0.01);
	check(window_peak_pct(&w, 3, 5010 * MS, 1503 * MS), 30, 0.01);
}

static void test_peak_before_a_gap_is_forgotten(void **state)
{
	struct window w;
	window_init(&w, NSEC_PER_SEC, 0, 0);
	for (uint64_t t = 0; t <= 2000 * MS; t += 50 * MS)
		window_add(&w, t, t);
	check(window_peak_pct(&w, 3, 3000 * MS, 2000 * MS), 0, 0);
	check(window_peak_pct(&w, 3, 4000 * MS, 2000 * MS), 0, 0);
	check(window_peak_pct(&w, 3, 4000 * MS, 2400 * MS), 20, 0.01);
	/* Work that begins after the gap counts at once, together with the idle time before it. */
	window_add(&w, 4000 * MS, 2000 * MS);
	for (uint64_t ms = 4050; ms <= 4400; ms += 50)
		window_add(&w, ms * MS, (ms - 2000) * MS);
	check(window_peak_pct(&w, 12, 4440 * MS, 2440 * MS), 73.3, 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_young),
		cmocka_unit_test(test_steady),
		cmocka_unit_test(test_old_work_is_forgotten),
		cmocka_unit_test(test_halves),
		cmocka_unit_test(test_uneven_ticks),
		cmocka_unit_test(test_gap),
		cmocka_unit_test(test_peak_of_bursts),
		cmocka_unit_test(test_peak_of_steady_work),
		cmocka_unit_test(test_peak_before_a_gap_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
