/*
 * Fading use: the sum of a tenant's GPU time, weighted by age. The weight halves in each half-life. Waiting tenants are ordered
 * by their fading use (wait_order.h), so last week's training does not outweigh an hour of today. Gil et al.
 * (docs/reference/seeds.md) sum use for ever, and name fading as missing.
 *
 * Only charged time is added. So while a tenant is paused, frozen or waiting, its use continues to fade. No clock, no I/O:
 * times are arguments, of any one clock. Not thread safe.
 */
#pragma once

#include <stdint.h>

struct fade {
	double use_ns;  /* faded use at time at_ns */
	uint64_t at_ns; /* 0: no use was added yet */
};

/*
 * Adds used_ns, spread evenly since the last call, so that the number of calls does not matter. The first call adds used_ns
 * without fading. Half-life 0: no fading. If the clock went back, no time has passed.
 */
void fade_add(struct fade *f, uint64_t now_ns, uint64_t used_ns, uint64_t half_life_ns);

/*
 * Restores a stored use under another clock. `use_ns` was the faded use at the time that lies `passed_ns` before `now_ns`.
 * Returns the state at `now_ns`, which must not be 0.
 */
struct fade fade_after(double use_ns, uint64_t passed_ns, uint64_t now_ns, uint64_t half_life_ns);

double fade_use_ns(const struct fade *f, uint64_t now_ns, uint64_t half_life_ns);
