/*
 * An estimate is the predicted GPU time of a unit of work: one per kernel function and launch shape, per executable graph, per
 * copy entry and size class. It is learned from samples, which are timed by events.
 *
 * A sample may be far too long: a kernel's first launch loads code, or the thread loses its CPU between the two events. So an
 * estimate is the smoothed median of the last three samples, not an average of all.
 *
 * Tenants that share space pay by length (pace.h), and their speed is known in the same lengths, which must not follow what ran
 * beside a sample. So each estimate has a second value, the told one: set after three samples, it stays until the first
 * value is not within a factor of 16 of it.
 *
 * A fixed table; a new entry takes the place of an old one when its places are full. Lock-free; races lose a sample at worst.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "library/launch/inflight/work.h"

struct estimate {
	_Atomic uint64_t key;
	_Atomic uint64_t ns; /* 0: not known yet */
	_Atomic uint32_t uses;
	_Atomic uint32_t samples_wanted; /* so many of the next uses are timed */
	_Atomic uint32_t last, before;   /* the last two samples in ns, 0: none yet */
	_Atomic uint32_t told_ns;        /* the told value (above); 0: fewer than three samples */
};

/* The entry for this work, made when there is none. Never NULL. */
struct estimate *estimate_of(const struct work *work);

/* Counts a use and says whether this one should be timed: till a few were (of short ones now and then), then one in 64. */
bool estimate_wants_sample(struct estimate *estimate);
/*
 * The same where what is told counts: once that is known, one in 64, whatever comes out. Two events at each launch would hold up other streams
 * that share a queue of the hardware, as they do under MPS: a program of 8 streams ran at 97 % of its speed.
 */
bool estimate_wants_to_tell(struct estimate *estimate);

/* Takes in one timed sample. */
void estimate_learn(struct estimate *estimate, uint64_t key, uint64_t ns);
/*
 * The same of work that ran beside others', which makes it longer by any factor: it is an upper bound. One longer than what
 * is known asks to be timed again while nothing else runs.
 */
void estimate_learn_beside(struct estimate *estimate, uint64_t key, uint64_t ns);

/* Was it timed less than three times but beside others' work? */
static inline bool estimate_is_untried(const struct estimate *estimate)
{
	return !atomic_load_explicit(&estimate->told_ns, memory_order_relaxed);
}

/*
 * What it counts for in what is in flight where tenants share space; 0: nothing is known yet. Of what was timed but beside
 * others, a bound from above.
 */
static inline uint64_t estimate_told_ns(const struct estimate *estimate)
{
	uint32_t told_ns = atomic_load_explicit(&estimate->told_ns, memory_order_relaxed);

	return told_ns ? told_ns : atomic_load_explicit(&estimate->ns, memory_order_relaxed);
}

/*
 * What it is paid for there: of what is not told yet, as much as a use of the others is on average. A bound would be a hundred times
 * too much where others are at work, and not where it runs alone, so that its speed (policy/space/space.h) would be another. 0: none is
 * told yet.
 */
uint64_t estimate_paid_ns(const struct estimate *estimate);

/* As estimate_wants_sample(), of a use beside others' work: what asks to be timed alone is not timed then. */
bool estimate_wants_bound(struct estimate *estimate);
