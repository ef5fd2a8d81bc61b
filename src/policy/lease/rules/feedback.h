/*
 * A control law. It computes how much a tenant may launch, from the share of the device that the tenant should have and the
 * share that was measured (Lu et al., Algorithm 2 and section 5.5: docs/reference/seeds.md). No clock, no I/O. The caller owns
 * the state.
 *
 *     rate = p x error + i x (integral of error over time) - d x (slope of the measured share)
 *
 * The rate is also a share: it limits launches to that fraction of the device's time. Measured shares first pass a low-pass
 * filter with time constant `smooth`. With p = 1 and i = 1 / smooth, a device that follows the rate exactly reaches its target
 * at once. A device that runs twice or half as much as the rate also converges.
 *
 *   P     Lu et al.'s algorithm: the rate is p x error, so the share stays below the target by a fixed part
 *   PI    no error remains
 *   PID   like PI, and also lowers the rate early when the share rises fast
 *
 * The integral stands still while the tenant takes less than it is given, and never leaves the range of the rate: it does not
 * wind up. The period between two samples is halved while the error is large, and grows while it is small.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum feedback_control { FEEDBACK_P, FEEDBACK_PI, FEEDBACK_PID };

/* selects the default gain of the control */
#define FEEDBACK_OWN_GAIN (-1.0)

struct feedback_gains {
	double p;
	double i_per_s;
	double d_s;
};

struct feedback_config {
	enum feedback_control control;
	struct feedback_gains gains; /* FEEDBACK_OWN_GAIN or an explicit gain */
	uint64_t period_min_ns,
		period_max_ns; /* bounds of the adaptive period, which begins at period_min_ns */
	uint64_t smooth_ns;    /* time constant of the measured share's filter */
	double rate_max;       /* highest rate; 1 is all of the device's time */
	/* the period is halved above large_error, and grows below small_error */
	double large_error, small_error;
};

struct feedback_config feedback_default_config(void);
/* Returns the gains in force: each explicit gain of `config`, else the control's default. */
struct feedback_gains feedback_gains(const struct feedback_config *config);

/* Initialize to all zeros. */
struct feedback_loop {
	bool has_measured;
	double measured;    /* filtered share */
	double integral;    /* the integral's part of the rate */
	uint64_t period_ns; /* time until the next feedback_update(); 0 before the first call */
};

/*
 * Call at each period's end; dt_ns is its length. `target` and `measured`: shares, clamped to 0..1 (NaN to 0). `is_limited`:
 * the tenant used up what the last rate allowed. Returns the next rate, 0 to rate_max, and sets loop->period_ns.
 */
double feedback_update(const struct feedback_config *config, struct feedback_loop *loop,
		       double target, double measured, uint64_t dt_ns, bool is_limited);
