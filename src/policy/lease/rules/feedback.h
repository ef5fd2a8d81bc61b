/*
 * A control law: how much a tenant may launch, from the share of the device that it is meant to have and the share that was
 * measured (Lu et al., Algorithm 2 and section 5.5: docs/reference/seeds.md). Pure; its state is the caller's; it knows no tokens, devices or tenants.
 *
 *     rate = p x error + i x (integral of error over time) - d x (slope of the measured share)
 *
 * The rate is a share as well: work for that part of the device's time may be begun. Measured shares first pass a filter of
 * time constant `smooth`. With p = 1 and i = 1 / smooth a device that does as it is told is at its target at once, and one
 * that does twice or half as much still gets there.
 *
 *   P     the seed's algorithm: the rate is the error, so the share stays below the target by a fixed part
 *   PI    no error remains
 *   PID   the same, and a fast rise of the share is met early
 *
 * The integral stands still while the tenant takes less than it is given, and never leaves the range of the rate: it does
 * not wind up. The period between two samples is halved while the error is large, and grows while it is small.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum feedback_control { FEEDBACK_P, FEEDBACK_PI, FEEDBACK_PID };

/* In place of a gain: the control's own. */
#define FEEDBACK_OWN_GAIN (-1.0)

struct feedback_gains {
	double p;
	double i_per_s;
	double d_s;
};

struct feedback_config {
	enum feedback_control control;
	struct feedback_gains gains; /* each FEEDBACK_OWN_GAIN, or whatever the control, this one */
	uint64_t period_min_ns,
		period_max_ns;           /* bounds of the adaptive period; min is where it starts */
	uint64_t smooth_ns;              /* time constant of the filter of the measured share */
	double rate_max;                 /* no rate above this; 1 is the whole device's time */
	double large_error, small_error; /* shares: the period is halved above, grows below */
};

struct feedback_config feedback_default_config(void);
/* The gains that are in force: the config's, or the control's own. */
struct feedback_gains feedback_gains(const struct feedback_config *config);

/* All zero is how it begins. */
struct feedback_loop {
	bool has_measured;  /* `measured` means something */
	double measured;    /* filtered share */
	double integral;    /* part of the rate */
	uint64_t period_ns; /* until the next look; 0: not begun */
};

/*
 * One look at the end of a period of dt_ns: `target` and `measured` are shares, 0 to 1. `is_limited`:
 * the tenant used up what it was given. Returns the rate of the next period, 0 to rate_max; its length
 * is loop->period_ns. Values that are no shares (also NaN) count as the nearest one.
 */
double feedback_look(const struct feedback_config *config, struct feedback_loop *loop,
		     double target, double measured, uint64_t dt_ns, bool is_limited);
