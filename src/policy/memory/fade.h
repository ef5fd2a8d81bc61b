/*
 * Use that fades: how much GPU time a tenant has had, where the older part counts for less. By it those
 * that wait are ordered (order.h), so that last week's training does not outweigh an hour of now. Gil
 * et al. (docs/reference/seeds.md) add use up for ever, and name this as what is missing.
 *
 * Each half-life halves what was there. Only what a tenant was charged is added, so time in which it was
 * paused, frozen or waiting adds none, and it fades all the same.
 *
 * Pure: times are arguments, of any one clock. Not thread safe.
 */
#pragma once

#include <stdint.h>

struct fade {
	double use_ns;  /* as of: */
	uint64_t at_ns; /* 0 and no use: never used */
};

/*
 * Notes that `used_ns` of GPU time were used since the last call, spread evenly over that time: how
 * often it is called does not matter. Before the first call with a time, nothing had passed. A half-life
 * of 0: it never fades. A clock that went back stands still.
 */
void fade_add(struct fade *f, uint64_t now_ns, uint64_t used_ns, uint64_t half_life_ns);

/*
 * What was `use_ns` so long ago, by another clock, as of now_ns of this one (not 0).
 */
struct fade fade_after(double use_ns, uint64_t passed_ns, uint64_t now_ns, uint64_t half_life_ns);

/* What is left of it at `now_ns`. */
double fade_use_ns(const struct fade *f, uint64_t now_ns, uint64_t half_life_ns);
