/*
 * An estimate is the predicted GPU time of a unit of work. There is one per kernel function and launch shape, per
 * executable graph, and per copy entry point and size class. It is learned from samples, which are timed by
 * events.
 *
 * A sample may be far too long: a kernel's first launch loads code, or the thread loses its CPU between the two
 * events. So an estimate is the smoothed median of the last three samples, not an average of all.
 *
 * Tenants that share space pay by length (pace.h). Their speed is measured in the same lengths, so these must not
 * depend on what else ran during a sample. So each estimate has a second value, the stable value `told_ns`. It is set
 * after three samples, and stays until the first value differs from it by more than a factor of 16.
 *
 * The table has a fixed size. A new entry replaces an old one if all places where it may be are taken. Lock-free; a race
 * loses a sample at worst.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "library/launch/inflight/work.h"

struct estimate {
	_Atomic uint64_t key;
	_Atomic uint64_t ns; /* 0 if not known yet */
	_Atomic uint32_t uses;
	_Atomic uint32_t samples_wanted; /* how many more samples to take soon */
	_Atomic uint32_t last, before;   /* the last two samples, in ns; 0 if none yet */
	_Atomic uint32_t told_ns;        /* the stable value; 0 until there are three samples */
	_Atomic uint32_t surprises;      /* number of samples that were far from the estimate */
};

/* Returns the entry for this work, and makes it if there is none. Never NULL. */
struct estimate *estimate_of(const struct work *work);

/*
 * Counts a launch of the work. Returns true if that launch should be timed: the first few launches (of short work, only some of
 * them), then one in 64.
 */
bool estimate_wants_sample(struct estimate *estimate);
/*
 * Like estimate_wants_sample(), for a tenant that shares space. Once the stable value is known, one launch in 64 is timed,
 * whatever the samples show. Timing each launch by two events would hold up other streams that share a hardware queue, as under
 * MPS.
 */
bool estimate_wants_to_tell(struct estimate *estimate);

/* Adds one sample of `ns`. Does nothing if the entry no longer has the key that it had when the sample began. */
void estimate_learn(struct estimate *estimate, uint64_t key, uint64_t ns);
/*
 * Like estimate_learn(), for work that ran at the same time as other tenants' work. That may lengthen it by any factor, so the
 * sample is an upper bound. If the sample is longer than the known value, the work will be timed again while nothing else runs.
 */
void estimate_learn_beside(struct estimate *estimate, uint64_t key, uint64_t ns);

/* True if fewer than three samples were taken while no other tenant's work ran. */
static inline bool estimate_is_untried(const struct estimate *estimate)
{
	return !atomic_load_explicit(&estimate->told_ns, memory_order_relaxed);
}

/*
 * Returns the length by which the work counts as in flight where tenants share space; 0 if nothing is known yet. For work that
 * was timed only while other tenants' work ran, the length is an upper bound.
 */
static inline uint64_t estimate_told_ns(const struct estimate *estimate)
{
	uint32_t told_ns = atomic_load_explicit(&estimate->told_ns, memory_order_relaxed);

	return told_ns ? told_ns : atomic_load_explicit(&estimate->ns, memory_order_relaxed);
}

/*
 * Returns the length by which the work is paid where tenants share space: its stable value. While that is unknown, returns the
 * average of the other entries' stable values, or 0 if there are none. The work's upper bound is not used: other tenants' work
 * may make it a hundred times too long, and the tenant's measured speed (policy/space/space.h) would depend on the other
 * tenants.
 */
uint64_t estimate_paid_ns(const struct estimate *estimate);

/*
 * Like estimate_wants_sample(), but for a launch that runs at the same time as other tenants' work, so that its sample is only
 * an upper bound. Returns true for one launch in 64, and for work of unknown length. The first few samples are not taken here:
 * they must be taken while nothing else runs.
 */
bool estimate_wants_bound(struct estimate *estimate);
