/*
 * Fading use: the GPU time that a tenant has had, with older time counting for less. Waiting tenants are ordered by it
 * (wait_order.h), so last week's training does not outweigh an hour of now. Gil et al. (docs/reference/seeds.md) sum use up for
 * ever, and name fading as what is missing.
 *
 * Each half-life halves the use. Only charged time is added. So time in which a tenant was paused, frozen or waiting adds
 * nothing, and its use fades all the same.
 *
 * Pure: times are arguments, of any one clock. Not thread safe.
 */
#pragma once

#include <stdint.h>

struct fade {
	double use_ns;  /* faded use at time at_ns */
	uint64_t at_ns; /* the time for which use_ns holds; 0 if no use was added yet */
};

/*
 * Adds used_ns of GPU time, spread evenly over the time since the last call. So the result does not depend on how often it is
 * called. At the first call no time has passed. If the half-life is 0, use never fades. A clock that went back counts as
 * standing still.
 */
void fade_add(struct fade *f, uint64_t now_ns, uint64_t used_ns, uint64_t half_life_ns);

/*
 * Returns the fading use at now_ns (not 0) of a tenant whose use was use_ns when last known, passed_ns before now_ns. So a use
 * survives a change of clocks.
 */
struct fade fade_after(double use_ns, uint64_t passed_ns, uint64_t now_ns, uint64_t half_life_ns);

/* Returns the use that is left at now_ns. */
double fade_use_ns(const struct fade *f, uint64_t now_ns, uint64_t half_life_ns);
