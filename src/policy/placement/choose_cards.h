/* Chooses a node's GPUs for a request. Pure: equal input gives equal results. */
#pragma once

#include "policy/placement/card_set.h"

struct place_choice {
	/* Why each GPU does not serve, or PLACE_FITS; see place_choose(). */
	enum place_reason reason[PLACE_MAX_CARDS];
	unsigned count;                 /* chosen GPUs; 0: none */
	unsigned card[PLACE_MAX_CARDS]; /* indexes, ascending */
	/* share taken of each chosen GPU, in the same order */
	struct place_need need[PLACE_MAX_CARDS];
	struct place_cost cost; /* cost of the chosen GPUs (evaluate.h) */
	uint64_t sets_seen;
	bool is_best; /* all sets of GPUs were examined, so the chosen one is best */
};

/*
 * Returns 0 and the chosen GPUs, or -ENOSPC and a reason for each GPU. If GPUs serve but are too few, their reason is
 * PLACE_ALLOCATED_INSUFFICIENT or PLACE_NUMA_NOT_FIT, never PLACE_FITS. Returns -EINVAL, and does not write *ret_choice, if the
 * request is for 0 GPUs or names an unknown evaluator.
 */
int place_choose(const struct place_node *node, const struct place_request *request,
		 struct place_choice *ret_choice);
