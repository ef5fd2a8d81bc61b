/*
 * An estimate predicts the GPU time of a unit of work. There is one per kernel function and launch shape, per executable graph,
 * and per copy function and size class. An estimate is learned from samples: launches that were timed by events.
 *
 * A sample may be far too long: a kernel's first launch loads code, or the thread loses its CPU between the two events. So an
 * estimate is the smoothed median of the last three samples, not an average of all.
 *
 * Under MPS, tenants run at the same time, and each pays for work by the work's length (pace.h). That length must not depend on
 * what else ran during a sample. So an estimate also has a stable value, `stable_ns`. It is set after three samples, and stays
 * until `ns` differs from it by more than a factor of 16.
 *
 * The table has a fixed size: a new entry may replace an old one. Lock-free; a race loses a sample at worst.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "library/launch/inflight/work.h"

struct estimate {
	_Atomic uint64_t key;
	_Atomic uint64_t ns; /* the estimate; 0 if not known yet */
	_Atomic uint32_t uses;
	_Atomic uint32_t samples_wanted; /* how many more samples to take soon */
	_Atomic uint32_t last, before;   /* the last two samples, in ns; 0 if none yet */
	_Atomic uint32_t stable_ns;      /* the stable value; 0 before three samples */
	_Atomic uint32_t surprises;
};

/* Adds an entry for this work if needed. Never NULL. */
struct estimate *estimate_of(const struct work *work);

/* Counts a launch. True if it should be timed: the first few launches (not all if the work is short), then one in 64. */
bool estimate_wants_sample(struct estimate *estimate);
/*
 * Like estimate_wants_sample(), for a tenant that runs at the same time as others. Once stable_ns is known, times one launch in
 * 64, because events delay other streams that share a hardware queue, as under MPS.
 */
bool estimate_wants_stable_sample(struct estimate *estimate);

/* Learns from a sample. Does nothing if the entry's key is no longer `key`, the key when the sample began. */
void estimate_learn(struct estimate *estimate, uint64_t key, uint64_t ns);
/*
 * Like estimate_learn(), for work that ran at the same time as other tenants' work. So the sample is an upper bound: it can
 * only lower a known estimate. After the first sample, or one that exceeds the estimate by more than a quarter, the work is
 * timed again while no other tenant's work runs.
 */
void estimate_learn_concurrent(struct estimate *estimate, uint64_t key, uint64_t ns);

/* True if fewer than three samples were taken while no other tenant's work ran. */
static inline bool estimate_is_untried(const struct estimate *estimate)
{
	return !atomic_load_explicit(&estimate->stable_ns, memory_order_relaxed);
}

/* For in-flight work of a tenant that runs beside others. An upper bound if timed only beside them; 0 if unknown. */
static inline uint64_t estimate_stable_ns(const struct estimate *estimate)
{
	uint32_t stable_ns = atomic_load_explicit(&estimate->stable_ns, memory_order_relaxed);

	return stable_ns ? stable_ns : atomic_load_explicit(&estimate->ns, memory_order_relaxed);
}

/*
 * Returns the length for which a tenant pays if it runs at the same time as others: the stable value, else the mean of other
 * entries' stable values, else 0. It uses no upper bounds, which may be a hundred times too long: the tenant's measured speed
 * (policy/space/space.h) must not depend on other tenants.
 */
uint64_t estimate_paid_ns(const struct estimate *estimate);

/* Counts a launch beside other tenants' work, whose sample is an upper bound. True for one in 64, or if `ns` is unknown. */
bool estimate_wants_bound(struct estimate *estimate);
