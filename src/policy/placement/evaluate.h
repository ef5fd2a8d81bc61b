/*
 * Evaluators decide which of two sets of GPUs is better. Each evaluator gives a set a cost, which is a sum over its GPUs and
 * over its pairs of GPUs; less is better. A request is decided by a chain of evaluators. A later evaluator matters only if all
 * earlier ones see no difference. If the whole chain sees none, the GPUs with the lowest indexes are chosen. The evaluators
 * prefer:
 *
 *   link      several GPUs: the highest sum of pairs' link scores (place_link_score())
 *   fragment  least fragmentation: a GPU in use costs nothing, a free GPU costs its links to GPUs that stay free
 *   share     a part of a GPU: makes the least free capacity useless for later requests, then prefers the fuller GPU
 *   capacity  the most memory left afterwards
 *   balance   the most free compute or memory afterwards, whichever is scarcer on the GPU
 *   room      takes the least room from other kinds of requests (room.h), as the node's workload histogram knows them
 *   binpack   the highest of HAMi's scores
 *   spread    the lowest of HAMi's scores
 *
 * The first five names are from gpu-manager, whose allocator weighs the same things.
 */
#pragma once

#include "policy/placement/place_request.h"

struct place_scale {
	int64_t card[PLACE_MAX_CARDS];
	/* If both cards of a pair are in pair_cards (bit i: card i), the pair costs pair_factor times its link score. */
	int64_t pair_factor;
	uint64_t pair_cards;
};

struct place_costs {
	unsigned scale_count;
	struct place_scale scale[PLACE_MAX_EVALUATORS];
	uint32_t score[PLACE_MAX_CARDS][PLACE_MAX_CARDS]; /* link score of each pair */
};

/* A set's cost by each scale (evaluator). by[i] is compared only if by[0] to by[i - 1] are equal. */
struct place_cost {
	int64_t by[PLACE_MAX_EVALUATORS];
};

/* Below 0 if `a` is better, 0 if both are equal, above 0 if `b` is better. */
int place_cost_compare(const struct place_costs *costs, const struct place_cost *a,
		       const struct place_cost *b);

/* Adds to *cost the cost of choosing `card` in addition to the cards in `chosen`. */
void place_cost_add(const struct place_costs *costs, const unsigned *chosen, unsigned chosen_count,
		    unsigned card, struct place_cost *cost);

bool place_evaluator_exists(const char *name);

/* By the request's evaluators or, if it names none, by those of its policy. Every name must exist. */
void place_costs_fill(struct place_costs *costs, const struct place_node *node,
		      const struct place_request *request);
