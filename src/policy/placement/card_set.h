/*
 * Finds the best set of a number of cards by costs. Examines all sets if there are few, else grows sets and exchanges
 * cards, for a bounded number of sets.
 */
#pragma once

#include "policy/placement/evaluate.h"

/* 8 of 16 cards are 12,870 sets, all of which are examined. 8 of 24 would be 735,471. */
#define PLACE_SETS_MOST 20000

struct place_set {
	unsigned card[PLACE_MAX_CARDS];
	unsigned count;
	struct place_cost cost;
	uint64_t sets_seen;
	bool is_best; /* the best of all sets: all were examined */
};

/* Indexes of cards, ascending. */
struct place_pool {
	unsigned given[PLACE_MAX_CARDS], given_count; /* these are in every set */
	/* these may be in a set; none is in given[] */
	unsigned from[PLACE_MAX_CARDS], from_count;
};

/*
 * `count`, at least 1: all of given[], others of from[]. given[] has at most `count`, both together at least `count`. All
 * sets are examined up to sets_most. Of equal costs, the first in the order of indexes.
 */
struct place_set place_best_set(const struct place_costs *costs, const struct place_pool *pool,
				unsigned count, uint64_t sets_most);

/* Returns the number of sets of `count` among `from_count`; most + 1 if above `most`. */
uint64_t place_sets_count(unsigned from_count, unsigned count, uint64_t most);
