#include "policy/lease/rules/feedback.h"

#define MS 1000000ULL
#define NSEC_PER_S 1e9

struct feedback_config feedback_default_config(void)
{
	return (struct feedback_config){
		.control = FEEDBACK_PI,
		.gains = { FEEDBACK_OWN_GAIN, FEEDBACK_OWN_GAIN, FEEDBACK_OWN_GAIN },
		.period_min_ns = 20 * MS,
		.period_max_ns = 100 * MS,
		.smooth_ns = 300 * MS,
		.rate_max = 2,
		.large_error = 0.05,
		.small_error = 0.02,
	};
}

/* A control with only the P term leaves an error of 1 / (1 + p) of the target. */
static const struct {
	double p, i_smooth, d_s; /* i_smooth is i x smooth */
} own_gains[] = {
	[FEEDBACK_P] = { 4, 0, 0 },
	[FEEDBACK_PI] = { 1, 1, 0 },
	[FEEDBACK_PID] = { 1, 1, 0.02 },
};

struct feedback_gains feedback_gains(const struct feedback_config *c)
{
	struct feedback_gains g = c->gains;
	double smooth_s = (double)c->smooth_ns / NSEC_PER_S;

	if (g.p < 0)
		g.p = own_gains[c->control].p;
	if (g.i_per_s < 0)
		g.i_per_s = smooth_s > 0 ? own_gains[c->control].i_smooth / smooth_s : 0;
	if (g.d_s < 0)
		g.d_s = own_gains[c->control].d_s;
	return g;
}

/* NaN becomes `low`. */
static double clamp(double value, double low, double high)
{
	if (!(value > low))
		return low;
	return value < high ? value : high;
}

static void adapt_period(const struct feedback_config *c, struct feedback_loop *loop, double error)
{
	double size = error < 0 ? -error : error;
	uint64_t period = loop->period_ns;

	if (size > c->large_error)
		period /= 2;
	else if (size < c->small_error)
		period += period / 4;
	if (period > c->period_max_ns)
		period = c->period_max_ns;
	if (period < c->period_min_ns)
		period = c->period_min_ns;
	loop->period_ns = period;
}

double feedback_update(const struct feedback_config *c, struct feedback_loop *loop, double target,
		       double measured, uint64_t dt_ns, bool is_limited)
{
	struct feedback_gains gains = feedback_gains(c);
	double dt_s = (double)dt_ns / NSEC_PER_S;
	double smooth_s = (double)c->smooth_ns / NSEC_PER_S;
	/* 1 - exp(-dt / smooth), to first order; at most 1, so the low-pass filter does not overshoot. */
	double part = dt_s + smooth_s > 0 ? dt_s / (dt_s + smooth_s) : 1;

	target = clamp(target, 0, 1);
	measured = clamp(measured, 0, 1);
	double before = loop->measured;
	/* The filter begins at zero: the tenant ran nothing before the first call. */
	loop->measured += part * (measured - loop->measured);
	double error = target - loop->measured;

	if (is_limited || error < 0)
		loop->integral += gains.i_per_s * error * dt_s;
	loop->integral = clamp(loop->integral, 0, c->rate_max);
	double rate = gains.p * error + loop->integral;
	if (dt_s > 0 && loop->has_measured)
		rate -= gains.d_s * (loop->measured - before) / dt_s;
	loop->has_measured = true;
	adapt_period(c, loop, error);
	return clamp(rate, 0, c->rate_max);
}
