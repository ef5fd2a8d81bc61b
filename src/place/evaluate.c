#include "place/evaluate.h"

#include <string.h>

#include "place/room.h"
#include "place/score.h"
#include "place/share.h"

#define MIB (UINT64_C(1) << 20)
#define SCORE_DIGITS 1e6 /* HAMi's scores are fractions: so much of them is told apart */
#define LOSS_DIGITS 1e12 /* of room: all that there is of it is worth 1 at most */

typedef void evaluate_fn(const struct place_costs *costs, const struct place_node *node,
			 const struct place_request *request, struct place_scale *ret);

static void link_fill(const struct place_costs *costs, const struct place_node *node,
		      const struct place_request *request, struct place_scale *ret)
{
	ret->pair_factor = -1;
	ret->pair_cards = ~UINT64_C(0);
}

/*
 * A free card takes its links to all other free ones with it. Those to free cards of the same set are
 * not left behind: they were counted at both ends.
 */
static void fragment_fill(const struct place_costs *costs, const struct place_node *node,
			  const struct place_request *request, struct place_scale *ret)
{
	for (unsigned i = 0; i < node->card_count; i++)
		if (place_is_free(&node->card[i]))
			ret->pair_cards |= UINT64_C(1) << i;
	ret->pair_factor = -2;
	for (unsigned i = 0; i < node->card_count; i++) {
		if (!(ret->pair_cards >> i & 1))
			continue;
		ret->card[i] = 1;
		for (unsigned j = 0; j < node->card_count; j++)
			if (j != i && (ret->pair_cards >> j & 1))
				ret->card[i] += costs->score[i][j];
	}
}

static void share_fill(const struct place_costs *costs, const struct place_node *node,
		       const struct place_request *request, struct place_scale *ret)
{
	for (unsigned i = 0; i < node->card_count; i++)
		ret->card[i] = place_share_cost(&node->card[i], request);
}

static void capacity_fill(const struct place_costs *costs, const struct place_node *node,
			  const struct place_request *request, struct place_scale *ret)
{
	for (unsigned i = 0; i < node->card_count; i++) {
		const struct place_card *card = &node->card[i];
		ret->card[i] = (int64_t)(place_need(card, request).memory_bytes / MIB) -
			       (int64_t)(place_memory_left(card) / MIB);
	}
}

static void balance_fill(const struct place_costs *costs, const struct place_node *node,
			 const struct place_request *request, struct place_scale *ret)
{
	for (unsigned i = 0; i < node->card_count; i++) {
		struct place_rest rest = place_rest_after(&node->card[i], request);
		int64_t scarcer = rest.cores < rest.memory ? rest.cores : rest.memory;
		ret->card[i] = PLACE_REST_WHOLE - scarcer;
	}
}

static void spread_fill(const struct place_costs *costs, const struct place_node *node,
			const struct place_request *request, struct place_scale *ret)
{
	for (unsigned i = 0; i < node->card_count; i++)
		ret->card[i] = (int64_t)(place_card_score(&node->card[i], request) * SCORE_DIGITS +
					 0.5);
}

static void binpack_fill(const struct place_costs *costs, const struct place_node *node,
			 const struct place_request *request, struct place_scale *ret)
{
	spread_fill(costs, node, request, ret);
	for (unsigned i = 0; i < node->card_count; i++)
		ret->card[i] = -ret->card[i];
}

/* A request of no mix finds no room worth anything, and leaves the choice to what comes after. */
static void room_fill(const struct place_costs *costs, const struct place_node *node,
		      const struct place_request *request, struct place_scale *ret)
{
	double loss[PLACE_MAX_CARDS];
	if (!node->mix)
		return;
	place_room_losses(node->mix, node, request, loss);
	for (unsigned i = 0; i < node->card_count; i++)
		ret->card[i] = (int64_t)(loss[i] * LOSS_DIGITS + (loss[i] < 0 ? -0.5 : 0.5));
}

static const struct evaluator {
	const char *name;
	evaluate_fn *fill;
} evaluators[] = {
	{ "link", link_fill },         { "fragment", fragment_fill }, { "share", share_fill },
	{ "capacity", capacity_fill }, { "balance", balance_fill },   { "room", room_fill },
	{ "binpack", binpack_fill },   { "spread", spread_fill },
};
#define EVALUATOR_COUNT (sizeof(evaluators) / sizeof(evaluators[0]))

/* The chain of each policy. "auto" is that of topology: each link in it cares for its own kind. */
static const char *const chains[][PLACE_MAX_EVALUATORS] = {
	[PLACE_POLICY_AUTO] = { "link", "share", "fragment" },
	[PLACE_POLICY_BINPACK] = { "binpack", "fragment" },
	[PLACE_POLICY_SPREAD] = { "spread", "fragment" },
	[PLACE_POLICY_TOPOLOGY] = { "link", "share", "fragment" },
};

static const struct evaluator *find(const char *name)
{
	for (size_t i = 0; i < EVALUATOR_COUNT; i++)
		if (!strcmp(evaluators[i].name, name))
			return &evaluators[i];
	return NULL;
}

bool place_evaluator_exists(const char *name)
{
	return find(name) != NULL;
}

const char *place_evaluator_name(unsigned index)
{
	return index < EVALUATOR_COUNT ? evaluators[index].name : NULL;
}

void place_costs_fill(struct place_costs *costs, const struct place_node *node,
		      const struct place_request *request)
{
	const char *const *chain = request->evaluator_count ? request->evaluator
							    : chains[request->policy];
	unsigned most = request->evaluator_count ? request->evaluator_count : PLACE_MAX_EVALUATORS;

	for (unsigned i = 0; i < node->card_count; i++)
		for (unsigned j = 0; j < node->card_count; j++)
			costs->score[i][j] = i == j ? 0 : place_link_score(node->link[i][j]);
	costs->scale_count = 0;
	for (unsigned i = 0; i < most && chain[i]; i++) {
		struct place_scale *scale = &costs->scale[costs->scale_count++];
		*scale = (struct place_scale){ 0 };
		find(chain[i])->fill(costs, node, request, scale);
	}
}

int place_cost_compare(const struct place_costs *costs, const struct place_cost *a,
		       const struct place_cost *b)
{
	for (unsigned s = 0; s < costs->scale_count; s++)
		if (a->by[s] != b->by[s])
			return a->by[s] < b->by[s] ? -1 : 1;
	return 0;
}

void place_cost_add(const struct place_costs *costs, const unsigned *chosen, unsigned chosen_count,
		    unsigned card, struct place_cost *cost)
{
	for (unsigned s = 0; s < costs->scale_count; s++) {
		const struct place_scale *scale = &costs->scale[s];
		int64_t links = 0;
		cost->by[s] += scale->card[card];
		if (!(scale->pair_factor && (scale->pair_cards >> card & 1)))
			continue;
		for (unsigned i = 0; i < chosen_count; i++)
			if (scale->pair_cards >> chosen[i] & 1)
				links += costs->score[card][chosen[i]];
		cost->by[s] += scale->pair_factor * links;
	}
}
