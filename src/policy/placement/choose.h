/*
 * Which cards of a node serve a request: the one function that the daemon, its device plugin and
 * tests ask. Pure, and the same answer for the same question.
 */
#pragma once

#include "policy/placement/set.h"

struct place_choice {
	/* Of the cards by themselves, and of the node where they do not suffice: see place_choose(). */
	enum place_reason reason[PLACE_MAX_CARDS];
	unsigned count;                          /* of cards chosen; 0: none */
	unsigned card[PLACE_MAX_CARDS];          /* indexes, rising */
	struct place_need need[PLACE_MAX_CARDS]; /* what is taken of each, in the same order */
	struct place_cost cost;                  /* by the request's evaluators */
	uint64_t sets_seen;
	bool is_best; /* all sets were looked at */
};

/*
 * 0 and the cards, or -ENOSPC and, for each card, why it does not serve: PLACE_FITS for none then, as
 * those that would serve alone are PLACE_ALLOCATED_INSUFFICIENT or PLACE_NUMA_NOT_FIT. -EINVAL for a
 * count of 0 or an evaluator that does not exist. *ret_choice is written in the first two cases.
 */
int place_choose(const struct place_node *node, const struct place_request *request,
		 struct place_choice *ret_choice);
