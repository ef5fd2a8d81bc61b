/*
 * Chooses the cards of a node that serve a request. The daemon, its device plugin and the tests call the same function. Pure;
 * the same question always has the same answer.
 */
#pragma once

#include "policy/placement/card_set.h"

struct place_choice {
	/* Why each card does not serve the request; see place_choose(). */
	enum place_reason reason[PLACE_MAX_CARDS];
	unsigned count;                          /* number of cards chosen; 0 if none */
	unsigned card[PLACE_MAX_CARDS];          /* indexes, ascending */
	struct place_need need[PLACE_MAX_CARDS]; /* what is taken of each card, in the same order */
	struct place_cost cost; /* cost of the chosen set, by the request's evaluators */
	uint64_t sets_seen;
	bool is_best; /* all sets were examined */
};

/*
 * Returns 0 and the cards, or -ENOSPC and the reason for each card. With -ENOSPC no reason is PLACE_FITS: a card that would
 * serve by itself has PLACE_ALLOCATED_INSUFFICIENT or PLACE_NUMA_NOT_FIT. Returns -EINVAL for a count of 0 or an unknown
 * evaluator; *ret_choice is then not written.
 */
int place_choose(const struct place_node *node, const struct place_request *request,
		 struct place_choice *ret_choice);
