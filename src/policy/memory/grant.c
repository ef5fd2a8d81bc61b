#include "policy/memory/grant.h"

#include <stdlib.h>

struct moment {
	uint64_t now_ns;
	const struct order_bounds *bounds;
};

uint64_t grant_free_bytes(const struct grant_card *card)
{
	return card->size_bytes > card->taken_bytes ? card->size_bytes - card->taken_bytes : 0;
}

/* For qsort_r(): growth requests first, by arrival, then waiting requests by order_compare(). */
static int compare(const void *a, const void *b, void *data)
{
	const struct grant_request *x = a, *y = b;
	const struct moment *m = data;

	if (x->is_growth != y->is_growth)
		return x->is_growth ? -1 : 1;
	if (x->is_growth && x->key.arrival != y->key.arrival)
		return x->key.arrival < y->key.arrival ? -1 : 1;
	return order_compare(&x->key, &y->key, m->now_ns, m->bounds);
}

/* True if the request would fit into its GPUs if no other tenant held memory. */
static bool is_possible(const struct grant_card *cards, size_t card_count,
			const struct grant_request *r)
{
	for (unsigned i = 0; i < r->need_count; i++)
		if (r->need[i].card >= card_count ||
		    r->need[i].bytes > cards[r->need[i].card].size_bytes)
			return false;
	return true;
}

/* Whether the request fits into bytes that are neither taken nor kept. kept_bytes never exceeds the free bytes (keep()). */
static bool fits(const struct grant_card *cards, const struct grant_request *r)
{
	for (unsigned i = 0; i < r->need_count; i++) {
		const struct grant_card *c = &cards[r->need[i].card];
		if (r->need[i].bytes > grant_free_bytes(c) - c->kept_bytes)
			return false;
	}
	return true;
}

static void take_request(struct grant_card *cards, struct grant_request *r)
{
	for (unsigned i = 0; i < r->need_count; i++)
		cards[r->need[i].card].taken_bytes += r->need[i].bytes;
	r->verdict = GRANT_GRANTED;
}

/* Keeps free the bytes that the request needs, as far as they are free now, even on GPUs that have enough. */
static void keep(struct grant_card *cards, const struct grant_request *r)
{
	for (unsigned i = 0; i < r->need_count; i++) {
		struct grant_card *c = &cards[r->need[i].card];
		uint64_t left = grant_free_bytes(c) - c->kept_bytes;
		c->kept_bytes += r->need[i].bytes < left ? r->need[i].bytes : left;
	}
}

static bool share_a_card(const struct grant_request *a, const struct grant_request *b)
{
	for (unsigned i = 0; i < a->need_count; i++)
		for (unsigned j = 0; j < b->need_count; j++)
			if (a->need[i].card == b->need[j].card && a->need[i].bytes &&
			    b->need[j].bytes)
				return true;
	return false;
}

/* Counts an overtaking for each waiting request that comes before `granted` in the order and needs one of the same GPUs. */
static void count_passes(struct grant_request *first, const struct grant_request *granted)
{
	for (struct grant_request *r = first; r < granted; r++)
		if (r->verdict == GRANT_WAITS && r->key.passes < UINT32_MAX &&
		    share_a_card(r, granted))
			r->key.passes++;
}

/* Sets verdicts and places of waiting requests. Returns how many are overdue; these come first. */
static size_t place_all(const struct grant_card *cards, size_t card_count,
			struct grant_request *waiting, size_t count, const struct moment *m)
{
	size_t overdue = 0;
	unsigned place = 0;

	for (size_t i = 0; i < count; i++) {
		struct grant_request *r = &waiting[i];
		bool is_possible_ever = is_possible(cards, card_count, r);
		r->verdict = is_possible_ever ? GRANT_WAITS : GRANT_REFUSED;
		r->place = is_possible_ever ? ++place : 0;
		if (order_is_overdue(&r->key, m->now_ns, m->bounds))
			overdue = i + 1;
	}
	return overdue;
}

void grant_decide(struct grant_card *cards, size_t card_count, struct grant_request *requests,
		  size_t count, uint64_t now_ns, const struct order_bounds *bounds)
{
	struct moment m = { .now_ns = now_ns, .bounds = bounds };
	size_t growing = 0;

	for (size_t i = 0; i < card_count; i++)
		cards[i].kept_bytes = 0;
	if (count > 1)
		qsort_r(requests, count, sizeof(*requests), compare, &m);
	while (growing < count && requests[growing].is_growth)
		growing++;

	struct grant_request *waiting = requests + growing;
	size_t waiting_count = count - growing;
	size_t overdue = place_all(cards, card_count, waiting, waiting_count, &m);

	for (size_t i = 0; i < overdue; i++) {
		if (waiting[i].verdict != GRANT_WAITS)
			continue;
		if (fits(cards, &waiting[i]))
			take_request(cards, &waiting[i]);
		else
			keep(cards, &waiting[i]);
	}
	for (size_t i = 0; i < growing; i++) {
		requests[i].place = 0;
		requests[i].verdict = GRANT_REFUSED;
		if (is_possible(cards, card_count, &requests[i]) && fits(cards, &requests[i]))
			take_request(cards, &requests[i]);
	}
	for (size_t i = overdue; i < waiting_count; i++) {
		if (waiting[i].verdict != GRANT_WAITS || !fits(cards, &waiting[i]))
			continue;
		take_request(cards, &waiting[i]);
		count_passes(waiting, &waiting[i]);
	}
}
