/*
 * Evaluators: what makes one set of cards better than another. Each gives a set a cost, less is
 * better: a sum over its cards and over its pairs of cards. A request is decided by a chain of them,
 * in which a later one is asked only where all before it see no difference; what the whole chain can't
 * tell apart goes to the cards with the lowest indexes.
 *
 *   link      several cards: the highest sum of pairs' link scores (place_link_score)
 *   fragment  breaks up least: a card in use costs nothing, a free one the links to the free cards
 *             that it leaves behind
 *   share     parts of cards: leaves least behind that is of no use, then fits best
 *   capacity  the most memory left afterwards
 *   balance   the least taken afterwards, of compute or memory, whichever is scarcer
 *   room      takes the least room from what else is asked for (room.h), as far as the node's workload histogram tells
 *   binpack   the highest of HAMi's card scores
 *   spread    the lowest
 *
 * The first five are gpu-manager's names for what its allocator weighs.
 */
#pragma once

#include "policy/placement/request.h"

/* One evaluator's costs on one node. */
struct place_scale {
	int64_t card[PLACE_MAX_CARDS];
	/* A pair of cards costs pair_factor times its link score, if both are in pair_cards. */
	int64_t pair_factor;
	uint64_t pair_cards;
};

struct place_costs {
	unsigned scale_count;
	struct place_scale scale[PLACE_MAX_EVALUATORS];
	uint32_t score[PLACE_MAX_CARDS][PLACE_MAX_CARDS]; /* of each pair's link */
};

/* A set's cost by each scale, to be compared one after the other. */
struct place_cost {
	int64_t by[PLACE_MAX_EVALUATORS];
};

/* Less than 0 when a is better, 0 when the same. */
int place_cost_compare(const struct place_costs *costs, const struct place_cost *a,
		       const struct place_cost *b);

/* Adds what a card costs that joins those of `chosen`. */
void place_cost_add(const struct place_costs *costs, const unsigned *chosen, unsigned chosen_count,
		    unsigned card, struct place_cost *cost);

bool place_evaluator_exists(const char *name);

/* The costs by the request's own chain, or its policy's. Every name must exist. */
void place_costs_fill(struct place_costs *costs, const struct place_node *node,
		      const struct place_request *request);
