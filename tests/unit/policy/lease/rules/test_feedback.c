/* The control law alone, on a device that follows the control signal exactly or inexactly: step responses of P, PI and PID. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "policy/lease/rules/feedback.h"

#define MS 1000000ULL
#define LOOKS_MAX 4000

/* A device whose rate is `gain` times the rate that the control sets, `delay` samples later, and at most `most`. */
struct plant {
	double gain, most;
	int delay;
};

struct response {
	double settled_s; /* from when on the share stays within 2 points of the target */
	double overshoot; /* the most that it was above it */
	double last;      /* mean of the last second */
	uint64_t shortest_ns, longest_ns; /* periods */
};

static struct response step_to(const struct feedback_config *c, const struct plant *plant,
			       double target, double duration_s)
{
	struct feedback_loop loop = { 0 };
	struct response r = { .shortest_ns = UINT64_MAX };
	double rates[LOOKS_MAX] = { 0 }, at_s = 0, last_sum = 0, last_s = 0;
	uint64_t period = c->period_min_ns;

	for (int i = 0; i < LOOKS_MAX && at_s < duration_s; i++) {
		double rate = i > plant->delay ? rates[i - plant->delay - 1] : 0;
		double share = fmin(plant->gain * rate, plant->most);
		double period_s = (double)period / 1e9;

		at_s += period_s;
		if (fabs(share - target) > 0.02)
			r.settled_s = at_s;
		r.overshoot = fmax(r.overshoot, share - target);
		if (at_s > duration_s - 1) {
			last_sum += share * period_s;
			last_s += period_s;
		}
		rates[i] = feedback_update(c, &loop, target, share, period, share < plant->most);
		assert_true(rates[i] >= 0 && rates[i] <= c->rate_max);
		period = loop.period_ns;
		r.shortest_ns = period < r.shortest_ns ? period : r.shortest_ns;
		r.longest_ns = period > r.longest_ns ? period : r.longest_ns;
	}
	r.last = last_sum / last_s;
	return r;
}

static struct feedback_config config_of(enum feedback_control control)
{
	struct feedback_config c = feedback_default_config();

	c.control = control;
	return c;
}

static const double targets[] = { 0.05, 0.15, 0.3, 0.5, 0.9 };
#define TARGETS (sizeof(targets) / sizeof(targets[0]))

static void settles_without_error(enum feedback_control control, const char *name)
{
	static const double plant_gains[] = { 0.5, 1, 2 };
	struct feedback_config c = config_of(control);

	for (size_t g = 0; g < 3; g++)
		for (size_t k = 0; k < TARGETS; k++)
			for (int delay = 0; delay <= 1; delay++) {
				struct plant plant = { plant_gains[g], 1, delay };
				struct response r = step_to(&c, &plant, targets[k], 10);

				printf("%-4s gain %.1f delay %d target %2.0f %%: settled %.2f s, "
				       "overshoot %4.1f points, at the end %.2f %%\n",
				       name, plant.gain, delay, targets[k] * 100, r.settled_s,
				       r.overshoot * 100, r.last * 100);
				assert_true(fabs(r.last - targets[k]) < 0.002);
				assert_true(r.settled_s < 3);
				/* A device with a gain of 2 overshoots before the control can measure it. */
				assert_true(r.overshoot <=
					    (fmax(plant.gain - 1, 0) + 0.3) * targets[k] + 0.001);
			}
}

static void test_pi_has_no_steady_error(void **state)
{
	settles_without_error(FEEDBACK_PI, "PI");
}

static void test_pid_has_no_steady_error(void **state)
{
	settles_without_error(FEEDBACK_PID, "PID");
}

/* The paper's own: with a gain of 4, a fifth of the target is missing. */
static void test_p_keeps_an_error(void **state)
{
	struct feedback_config c = config_of(FEEDBACK_P);
	struct plant plant = { 1, 1, 0 };

	for (size_t k = 0; k < TARGETS; k++) {
		struct response r = step_to(&c, &plant, targets[k], 10);

		printf("P    target %2.0f %%: at the end %.2f %%\n", targets[k] * 100, r.last * 100);
		assert_true(fabs(r.last - 0.8 * targets[k]) < 0.01 + 0.05 * targets[k]);
	}
}

/* A gain that is set counts in place of the control's own; the others stay. */
static void test_gains(void **state)
{
	struct feedback_config c = config_of(FEEDBACK_P);
	struct plant plant = { 1, 1, 0 };
	struct response r;

	/* With P alone a part of 1 / (1 + p) is missing. */
	c.gains.p = 1;
	r = step_to(&c, &plant, 0.4, 10);
	assert_true(fabs(r.last - 0.2) < 0.01);
	c.gains.i_per_s = 3;
	r = step_to(&c, &plant, 0.4, 10);
	assert_true(fabs(r.last - 0.4) < 0.002);
	c = config_of(FEEDBACK_PID);
	c.gains.p = 0;
	assert_true(feedback_gains(&c).p == 0 && feedback_gains(&c).d_s == 0.02);
	assert_true(fabs(feedback_gains(&c).i_per_s - 1 / 0.3) < 1e-9);
}

/* A tenant that wants 10 % of its 50 % saves nothing up: later it gets no more than its target. */
static void test_does_not_wind_up(void **state)
{
	struct feedback_config c = config_of(FEEDBACK_PI);
	struct feedback_loop loop = { 0 };
	double rate = 0, sum = 0;

	for (int i = 0; i < 2000; i++)
		feedback_update(&c, &loop, 0.5, 0.1, 100 * MS, false);
	for (int i = 0; i < 50; i++) {
		rate = feedback_update(&c, &loop, 0.5, i ? rate : 0.1, 20 * MS, true);
		sum += fmin(rate, 1) / 50;
	}
	/* The first second after, all in all. */
	assert_true(sum < 0.6);
}

/* After other tenants kept it from running it gets more for a bounded time, then the target again. */
static void test_integral_is_bounded(void **state)
{
	struct feedback_config c = config_of(FEEDBACK_PI);
	struct feedback_loop loop = { 0 };
	double rate = 0, at_s = 0, settled_s = 0;

	for (int i = 0; i < 5000; i++)
		rate = feedback_update(&c, &loop, 0.5, 0.2, 100 * MS, true);
	assert_true(rate <= c.rate_max && loop.integral <= c.rate_max);
	while (at_s < 5) {
		double dt_s = (double)loop.period_ns / 1e9;

		rate = feedback_update(&c, &loop, 0.5, fmin(rate, 1), loop.period_ns, true);
		at_s += dt_s;
		if (fabs(fmin(rate, 1) - 0.5) > 0.02)
			settled_s = at_s;
	}
	assert_true(settled_s < 3);
}

static void test_sampling_adapts(void **state)
{
	struct feedback_config c = config_of(FEEDBACK_PI);
	struct feedback_loop loop = { 0 };
	uint64_t last;

	for (int i = 0; i < 100; i++)
		feedback_update(&c, &loop, 0.4, 0.4, 20 * MS, true);
	assert_int_equal(loop.period_ns, c.period_max_ns);
	last = loop.period_ns;
	for (int i = 0; i < 100 && loop.period_ns > c.period_min_ns; i++) {
		feedback_update(&c, &loop, 0.9, 0.4, loop.period_ns, true);
		assert_true(loop.period_ns <= last);
		last = loop.period_ns;
	}
	assert_int_equal(loop.period_ns, c.period_min_ns);
}

static void test_never_negative(void **state)
{
	struct feedback_config c = config_of(FEEDBACK_PID);
	static const double odd[] = { -1, 0, 0.5, 1, 7, NAN, INFINITY, -INFINITY };

	for (size_t i = 0; i < 8; i++)
		for (size_t k = 0; k < 8; k++) {
			struct feedback_loop loop = { 0 };

			for (int n = 0; n < 20; n++) {
				double rate = feedback_update(&c, &loop, odd[i], odd[(k + n) % 8],
							      (uint64_t)n * 7 * MS, n % 2);

				assert_true(rate >= 0 && rate <= c.rate_max);
				assert_true(loop.integral >= 0 && loop.integral <= c.rate_max);
				assert_true(loop.period_ns >= c.period_min_ns &&
					    loop.period_ns <= c.period_max_ns);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pi_has_no_steady_error),
		cmocka_unit_test(test_pid_has_no_steady_error),
		cmocka_unit_test(test_p_keeps_an_error),
		cmocka_unit_test(test_gains),
		cmocka_unit_test(test_does_not_wind_up),
		cmocka_unit_test(test_integral_is_bounded),
		cmocka_unit_test(test_sampling_adapts),
		cmocka_unit_test(test_never_negative),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
