/*
 * Finds the best set of a given number of cards, by given costs. If there are few sets, all are examined. If there are many,
 * the search grows sets and exchanges cards. The number of sets examined is bounded.
 */
#pragma once

#include "policy/placement/evaluate.h"

/* 8 of 16 cards are 12,870 sets, and all are examined. 8 of 24 would be 735,471. */
#define PLACE_SETS_MOST 20000

struct place_set {
	unsigned card[PLACE_MAX_CARDS]; /* ascending */
	unsigned count;
	struct place_cost cost;
	uint64_t sets_seen;
	bool is_best; /* the best of all sets, because all were examined */
};

/* Cards by index, ascending. */
struct place_pool {
	unsigned given[PLACE_MAX_CARDS], given_count; /* these are in every set */
	/* These may be in a set; none of them is in given[]. */
	unsigned from[PLACE_MAX_CARDS], from_count;
};

/*
 * Returns a set of `count` cards, 1 or more. All of given[] are in the set, and the others are from from[]. given[] has at most
 * `count` cards, and both together at least `count`. All sets are examined if there are at most sets_most. Among sets with the
 * same cost, the first in the order of indexes is chosen.
 */
struct place_set place_best_set(const struct place_costs *costs, const struct place_pool *pool,
				unsigned count, uint64_t sets_most);

/* Returns the number of sets of `count` among `from_count`; most + 1 if there are more than `most`. */
uint64_t place_sets_count(unsigned from_count, unsigned count, uint64_t most);
