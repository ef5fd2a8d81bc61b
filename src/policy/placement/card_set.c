#include "policy/placement/card_set.h"

#include <string.h>

struct search {
	const struct place_costs *costs;
	const struct place_pool *pool;
	unsigned count;
	bool found;
	struct place_set best;
};

uint64_t place_sets_count(unsigned from_count, unsigned count, uint64_t most)
{
	uint64_t sets = 1;

	if (count > from_count - count)
		count = from_count - count;
	/* After each step, `sets` is a binomial coefficient, so the division is exact. */
	for (unsigned i = 1; i <= count; i++) {
		sets = sets * (from_count - count + i) / i;
		if (sets > most)
			return most + 1;
	}
	return sets;
}

/* Among sets of equal cost, the first in the order of indexes wins. */
static void consider(struct search *search, const unsigned *card, const struct place_cost *cost)
{
	size_t bytes = search->count * sizeof(card[0]);
	int order = search->found ? place_cost_compare(search->costs, cost, &search->best.cost) : -1;

	search->best.sets_seen++;
	for (unsigned i = 0; order == 0 && i < search->count; i++)
		order = (card[i] > search->best.card[i]) - (card[i] < search->best.card[i]);
	if (order >= 0)
		return;
	search->found = true;
	search->best.cost = *cost;
	memcpy(search->best.card, card, bytes);
}

/* Examines all sets that consist of the `depth` GPUs in `card` and of GPUs in from[], at index `next` or later. */
static void walk(struct search *search, unsigned *card, unsigned depth, unsigned next,
		 const struct place_cost *cost)
{
	if (depth == search->count) {
		consider(search, card, cost);
		return;
	}
	for (unsigned i = next; i + (search->count - depth) <= search->pool->from_count; i++) {
		struct place_cost with = *cost;
		place_cost_add(search->costs, card, depth, search->pool->from[i], &with);
		card[depth] = search->pool->from[i];
		walk(search, card, depth + 1, i + 1, &with);
	}
}

static void sort(unsigned *card, unsigned count)
{
	for (unsigned i = 1; i < count; i++)
		for (unsigned j = i; j && card[j] < card[j - 1]; j--) {
			unsigned other = card[j];
			card[j] = card[j - 1];
			card[j - 1] = other;
		}
}

static struct place_cost cost_of(const struct search *search, const unsigned *card, unsigned count)
{
	struct place_cost cost = { 0 };

	for (unsigned i = 0; i < count; i++)
		place_cost_add(search->costs, card, i, card[i], &cost);
	return cost;
}

static bool has(const unsigned *card, unsigned count, unsigned which)
{
	for (unsigned i = 0; i < count; i++)
		if (card[i] == which)
			return true;
	return false;
}

/* Completes the set: adds the GPU that costs least, again and again. */
static void grow(struct search *search, unsigned *card, unsigned count)
{
	struct place_cost now = cost_of(search, card, count);

	for (; count < search->count; count++) {
		struct place_cost best = { 0 };
		bool found = false;
		for (unsigned i = 0; i < search->pool->from_count; i++) {
			struct place_cost with = now;
			if (has(card, count, search->pool->from[i]))
				continue;
			place_cost_add(search->costs, card, count, search->pool->from[i], &with);
			search->best.sets_seen++;
			if (found && place_cost_compare(search->costs, &with, &best) >= 0)
				continue;
			found = true;
			best = with;
			card[count] = search->pool->from[i];
		}
		now = best;
	}
}

/* Makes the best exchange of one GPU for another. Returns false if none improves the set. */
static bool exchange(struct search *search, unsigned *card)
{
	struct place_cost best = cost_of(search, card, search->count);
	unsigned out = 0, in = 0;
	bool found = false;

	for (unsigned i = search->pool->given_count; i < search->count; i++) {
		unsigned others[PLACE_MAX_CARDS], n = 0;
		for (unsigned j = 0; j < search->count; j++)
			if (j != i)
				others[n++] = card[j];
		struct place_cost without = cost_of(search, others, n);
		for (unsigned j = 0; j < search->pool->from_count; j++) {
			struct place_cost with = without;
			if (has(card, search->count, search->pool->from[j]))
				continue;
			place_cost_add(search->costs, others, n, search->pool->from[j], &with);
			search->best.sets_seen++;
			if (place_cost_compare(search->costs, &with, &best) >= 0)
				continue;
			found = true;
			best = with;
			out = i;
			in = search->pool->from[j];
		}
	}
	if (found)
		card[out] = in;
	return found;
}

/* Stops when sets_most sets were examined. */
static void grow_and_exchange(struct search *search, uint64_t sets_most)
{
	const struct place_pool *pool = search->pool;

	for (unsigned i = 0; i < pool->from_count; i++) {
		unsigned card[PLACE_MAX_CARDS];
		if (search->found && search->best.sets_seen >= sets_most)
			return;
		memcpy(card, pool->given, sizeof(card));
		card[pool->given_count] = pool->from[i];
		grow(search, card, pool->given_count + 1);
		while (search->best.sets_seen < sets_most && exchange(search, card))
			;
		sort(card + pool->given_count, search->count - pool->given_count);
		struct place_cost cost = cost_of(search, card, search->count);
		consider(search, card, &cost);
	}
}

struct place_set place_best_set(const struct place_costs *costs, const struct place_pool *pool,
				unsigned count, uint64_t sets_most)
{
	struct search search = { .costs = costs, .pool = pool, .count = count };
	unsigned card[PLACE_MAX_CARDS];

	memcpy(card, pool->given, sizeof(card));
	search.best.count = count;
	search.best.is_best = place_sets_count(pool->from_count, count - pool->given_count,
					       sets_most) <= sets_most;
	if (search.best.is_best) {
		struct place_cost given = cost_of(&search, card, pool->given_count);
		walk(&search, card, pool->given_count, 0, &given);
	} else {
		grow_and_exchange(&search, sets_most);
	}
	sort(search.best.card, count);
	return search.best;
}
