/*
 * The best set of so many cards by given costs: every set where there are few, the best that growing
 * and exchanging find where there are many. The work is bounded by the number of sets looked at.
 */
#pragma once

#include "policy/placement/evaluate.h"

/* 8 of 16 cards are 12,870 sets: all are looked at. 8 of 24 would be 735,471. */
#define PLACE_SETS_MOST 20000

struct place_set {
	unsigned card[PLACE_MAX_CARDS]; /* rising */
	unsigned count;
	struct place_cost cost;
	uint64_t sets_seen;
	bool is_best; /* of all sets, since all were looked at */
};

/* Cards by index, rising. */
struct place_pool {
	unsigned given[PLACE_MAX_CARDS], given_count; /* are in every set */
	unsigned from[PLACE_MAX_CARDS], from_count;   /* may be; none of those given */
};

/*
 * `count` cards, 1 or more: those given, of which there are no more, and the rest of those that may be, of
 * which there are enough. Every set is looked at where there are sets_most or fewer. Of sets with the same
 * cost the one that comes first in the order of indexes.
 */
struct place_set place_best_set(const struct place_costs *costs, const struct place_pool *pool,
				unsigned count, uint64_t sets_most);

/* Sets of `count` among `from_count`, or `most` + 1 when there are more than `most`. */
uint64_t place_sets_count(unsigned from_count, unsigned count, uint64_t most);
