/*
 * Finds the cheapest set of `count` GPUs (evaluate.h). Examines all sets if there are few. Otherwise grows a set from each GPU
 * and exchanges GPUs, up to a bounded number of sets.
 */
#pragma once

#include "policy/placement/evaluate.h"

/* Allows all sets of 8 out of 16 GPUs (12,870), but not all sets of 8 out of 24 (735,471). */
#define PLACE_SETS_MOST 20000

struct place_set {
	unsigned card[PLACE_MAX_CARDS];
	unsigned count;
	struct place_cost cost;
	uint64_t sets_seen;
	bool is_best; /* the best of all sets: all were examined */
};

/* Indexes of GPUs, ascending. */
struct place_pool {
	unsigned given[PLACE_MAX_CARDS], given_count; /* in every set */
	/* allowed in a set; none is in given[] */
	unsigned from[PLACE_MAX_CARDS], from_count;
};

/*
 * Returns the best set of `count` GPUs (at least 1) that contains all of given[] and takes the others from from[]. given[] must
 * not have more than `count`; given[] and from[] together must have enough. Examines all sets if their number is at most
 * sets_most. Of sets of equal cost, returns the first in the order of indexes.
 */
struct place_set place_best_set(const struct place_costs *costs, const struct place_pool *pool,
				unsigned count, uint64_t sets_most);

/* The number of sets of `count` GPUs out of `from_count`; most + 1 if there are more than `most`. */
uint64_t place_sets_count(unsigned from_count, unsigned count, uint64_t most);
