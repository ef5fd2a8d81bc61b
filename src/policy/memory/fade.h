/*
 * Fading use: the GPU time that a tenant has had, with older time counting for less. Waiting tenants are ordered by it
 * (order.h), so last week's training does not outweigh an hour of now. Gil et al. (docs/reference/seeds.md) sum use up for ever,
 * and name fading as what is missing.
 *
 * Each half-life halves the use. Only charged time is added. So time in which a tenant was paused, frozen or waiting adds
 * nothing, and its use fades all the same.
 *
 * Pure: times are arguments, of any one clock. Not thread safe.
 */
#pragma once

#include <stdint.h>

struct fade {
	double use_ns;  /* as of at_ns */
	uint64_t at_ns; /* 0, together with no use, if never used */
};

/*
 * Adds used_ns of GPU time, spread evenly over the time since the last call. So the result does not depend on how often it is
 * called. At the first call no time has passed. If the half-life is 0, use never fades. A clock that went back counts as
 * standing still.
 */
void fade_add(struct fade *f, uint64_t now_ns, uint64_t used_ns, uint64_t half_life_ns);

/* Returns a use as of now_ns (not 0) that was use_ns, by another clock, passed_ns ago. */
struct fade fade_after(double use_ns, uint64_t passed_ns, uint64_t now_ns, uint64_t half_life_ns);

/* Returns the use that is left at now_ns. */
double fade_use_ns(const struct fade *f, uint64_t now_ns, uint64_t half_life_ns);
