#include "policy/placement/choose_cards.h"

#include <errno.h>
#include <string.h>

struct choosing {
	const struct place_costs *costs;
	unsigned count;
	uint64_t must; /* bit i: card i must be in every set */
	bool found;
	struct place_set best;
	uint64_t sets_seen;
};

/* Finds the best set of cards in `able` (bit i: card i may be chosen), and keeps it in *c if it beats the set there. */
static void choose_best(struct choosing *c, uint64_t able)
{
	struct place_pool pool = { 0 };

	if (c->must & ~able)
		return;
	for (unsigned i = 0; i < PLACE_MAX_CARDS; i++) {
		if (c->must >> i & 1)
			pool.given[pool.given_count++] = i;
		else if (able >> i & 1)
			pool.from[pool.from_count++] = i;
	}
	if (pool.given_count > c->count || pool.given_count + pool.from_count < c->count)
		return;
	struct place_set set = place_best_set(c->costs, &pool, c->count, PLACE_SETS_MOST);
	c->sets_seen += set.sets_seen;
	if (c->found && place_cost_compare(c->costs, &set.cost, &c->best.cost) >= 0) {
		c->best.is_best &= set.is_best;
		return;
	}
	set.is_best &= !c->found || c->best.is_best;
	c->found = true;
	c->best = set;
}

/* A GPU whose NUMA node is unknown is in no set. */
static void choose_in_each_numa(struct choosing *c, const struct place_node *node, uint64_t able)
{
	for (unsigned i = 0; i < node->card_count; i++) {
		uint64_t same = 0;
		for (unsigned j = 0; j < node->card_count; j++)
			if ((able >> j & 1) && node->card[j].numa_known &&
			    node->card[j].numa == node->card[i].numa)
				same |= UINT64_C(1) << j;
		/* Consider each NUMA node once, at its first GPU. */
		if (same && (unsigned)__builtin_ctzll(same) == i)
			choose_best(c, same);
	}
}

/* Returns false if a required GPU is missing. */
static bool find_must(const struct place_node *node, struct place_words must, uint64_t *ret)
{
	*ret = 0;
	for (size_t w = 0; w < must.count; w++) {
		unsigned i = 0;
		while (i < node->card_count && strcmp(node->card[i].uuid, must.word[w]))
			i++;
		if (i == node->card_count)
			return false;
		*ret |= UINT64_C(1) << i;
	}
	return true;
}

static bool is_valid(const struct place_request *request)
{
	for (unsigned i = 0; i < request->evaluator_count; i++)
		if (!place_evaluator_exists(request->evaluator[i]))
			return false;
	return request->count > 0 && request->evaluator_count <= PLACE_MAX_EVALUATORS;
}

int place_choose(const struct place_node *node, const struct place_request *request,
		 struct place_choice *ret_choice)
{
	struct place_costs costs;
	struct place_choice choice = { 0 };
	unsigned able_count = 0;
	uint64_t able = 0;

	if (!is_valid(request))
		return -EINVAL;
	for (unsigned i = 0; i < node->card_count; i++) {
		choice.reason[i] = place_check_card(&node->card[i], request);
		if (choice.reason[i] != PLACE_FITS)
			continue;
		able |= UINT64_C(1) << i;
		able_count++;
	}
	place_costs_fill(&costs, node, request);
	struct choosing c = { .costs = &costs, .count = request->count };
	if (find_must(node, request->must_uuid, &c.must)) {
		if (request->numa_bind)
			choose_in_each_numa(&c, node, able);
		else
			choose_best(&c, able);
	}
	choice.sets_seen = c.sets_seen;
	for (unsigned i = 0; !c.found && i < node->card_count; i++)
		if (able >> i & 1)
			choice.reason[i] = request->numa_bind && able_count >= request->count
						   ? PLACE_NUMA_NOT_FIT
						   : PLACE_ALLOCATED_INSUFFICIENT;
	if (c.found) {
		choice.count = c.best.count;
		choice.cost = c.best.cost;
		choice.is_best = c.best.is_best;
		memcpy(choice.card, c.best.card, sizeof(choice.card));
		for (unsigned i = 0; i < choice.count; i++)
			choice.need[i] = place_need(&node->card[choice.card[i]], request);
	}
	*ret_choice = choice;
	return c.found ? 0 : -ENOSPC;
}
