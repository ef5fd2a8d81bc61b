/*
 * Finds the cheapest set of `count` cards (evaluate.h). Examines all sets if there are few. Otherwise grows a set from each
 * card and exchanges cards, up to a bounded number of sets.
 */
#pragma once

#include "policy/placement/evaluate.h"

/* Limit of examined sets. It allows all sets of 8 out of 16 cards (12,870), but not all sets of 8 out of 24 (735,471). */
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
 * Returns the best set of `count` cards (`count` is at least 1). The set contains all cards of given[], and its other cards
 * are in from[]. given[] must not have more than `count` cards; given[] and from[] together must have enough. Examines all
 * sets if their number is at most sets_most. Of sets of equal cost, returns the first in the order of indexes.
 */
struct place_set place_best_set(const struct place_costs *costs, const struct place_pool *pool,
				unsigned count, uint64_t sets_most);

/* Returns the number of sets of `count` cards out of `from_count`; most + 1 if there are more than `most`. */
uint64_t place_sets_count(unsigned from_count, unsigned count, uint64_t most);
