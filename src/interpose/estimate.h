/*
 * How long a piece of work takes on the GPU: an estimate per kernel function and launch shape, per
 * executable graph, per copy entry and size class; learned from samples timed by events.
 *
 * A fixed table; a newcomer takes the place of an old one when its places are full. Lock-free; races
 * lose a sample at worst.
 */
#ifndef ALLOT_INTERPOSE_ESTIMATE_H
#define ALLOT_INTERPOSE_ESTIMATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "interpose/work.h"

struct estimate {
	_Atomic uint64_t key;
	_Atomic uint64_t ns; /* 0: not known yet */
	_Atomic uint32_t uses;
};

/* The entry for this work, made when there is none. Never NULL. */
struct estimate *estimate_of(const struct work *work);

/* Counts a use and says whether this one should be timed: till one was, the first few, one in 64. */
bool estimate_wants_sample(struct estimate *estimate);

/* Takes in one timed sample. */
void estimate_learn(struct estimate *estimate, uint64_t key, uint64_t ns);

#endif
