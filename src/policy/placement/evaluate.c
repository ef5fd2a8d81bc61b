#include "policy/placement/evaluate.h"

#include <string.h>

#include "policy/placement/place_request.h"
#include "policy/placement/room.h"
#include "policy/placement/score.h"

#define MIB (UINT64_C(1) << 20)
#define SCORE_DIGITS 1e6 /* HAMi's scores are fractions; six digits are compared */
#define LOSS_DIGITS \
	1e12 /* twelve digits of a loss of room (room.h) are compared; a loss is at most 1 */

/*
 * Evaluator "share": finds the GPU that a request for a part of a GPU fits best.
 *
 * A later request needs both compute and memory of the GPU. So the first cost of a placement is how much of the free capacity
 * becomes useless to usual requests: an eighth, a quarter, half and all of a GPU. The second cost is the capacity that stays
 * free, so that the fuller GPU is filled. (The first is the measure of "Beware of Fragmentation", USENIX ATC 2023. It uses a
 * histogram of workloads, which is unknown here.)
 */

/* The free parts of a GPU, as fractions of the whole GPU. */
#define WHOLE INT64_C(10000)
struct place_remaining {
	int64_t cores, memory; /* 0 to WHOLE */
};

static const int64_t usual_parts[] = { WHOLE / 8, WHOLE / 4, WHOLE / 2, WHOLE };
#define USUAL_PARTS ((int64_t)(sizeof(usual_parts) / sizeof(usual_parts[0])))

static int64_t part(uint64_t left, uint64_t total)
{
	return total ? (int64_t)((double)left * (double)WHOLE / (double)total + 0.5) : 0;
}

static struct place_remaining remaining(const struct place_card *card, uint64_t cores_left,
					uint64_t memory_left)
{
	return (struct place_remaining){ .cores = part(cores_left, card->cores_total_mpct),
					 .memory = part(memory_left, card->memory_total_bytes) };
}

static struct place_remaining remaining_now(const struct place_card *card)
{
	return remaining(card, place_cores_left(card), place_memory_left(card));
}

static struct place_remaining remaining_after(const struct place_card *card,
					      const struct place_request *request)
{
	struct place_need need = place_need(card, request);
	uint32_t cores = place_cores_left(card);
	uint64_t memory = place_memory_left(card);

	return remaining(card, need.cores_mpct < cores ? cores - need.cores_mpct : 0,
			 need.memory_bytes < memory ? memory - need.memory_bytes : 0);
}

/* How much of the remaining compute and memory the usual requests could not use, summed over these requests. */
static int64_t fragmentation(struct place_remaining left)
{
	int64_t scarcer = left.cores < left.memory ? left.cores : left.memory, sum = 0;

	for (int64_t i = 0; i < USUAL_PARTS; i++)
		if (scarcer < usual_parts[i])
			sum += left.cores + left.memory;
	return sum;
}

/* The request must fit. Less is better. */
static int64_t place_share_cost(const struct place_card *card, const struct place_request *request)
{
	struct place_remaining now = remaining_now(card), after = remaining_after(card, request);
	int64_t lost = fragmentation(after) - fragmentation(now);

	/* after.cores + after.memory is less than the factor of `lost`, so it decides only if `lost` is equal. */
	return lost * (2 * WHOLE + 1) + after.cores + after.memory;
}

typedef void evaluate_fn(const struct place_costs *costs, const struct place_node *node,
			 const struct place_request *request, struct place_scale *ret);

static void link_fill(const struct place_costs *costs, const struct place_node *node,
		      const struct place_request *request, struct place_scale *ret)
{
	ret->pair_factor = -1;
	ret->pair_cards = ~UINT64_C(0);
}

/*
 * Taking a GPU cuts off its links to GPUs that stay free. Links within the chosen set are not cut off, but are counted at both
 * ends, so pair_factor subtracts them.
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
		struct place_remaining left = remaining_after(&node->card[i], request);
		int64_t scarcer = left.cores < left.memory ? left.cores : left.memory;
		ret->card[i] = WHOLE - scarcer;
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

/* The lost room for later requests (room.h). Without a histogram, all GPUs cost the same, and the next evaluator decides. */
static void room_fill(const struct place_costs *costs, const struct place_node *node,
		      const struct place_request *request, struct place_scale *ret)
{
	double loss[PLACE_MAX_CARDS];
	if (!node->histogram)
		return;
	place_room_losses(node->histogram, node, request, loss);
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

/*
 * Each policy's evaluators, in order. "auto" equals "topology" and suits all requests: "link" matters only if several GPUs are
 * requested, "share" only if a part of a GPU is.
 */
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
