#include "scheduler/opportunistic/opportunistic.h"

#include <stdlib.h>

#include "base/min.h"

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

uint64_t opportunistic_taken_pct(const struct opportunistic_card *c, uint64_t now_ns)
{
	if (!c->use)
		return c->guaranteed_pct + c->borrowed_pct;
	if (now_ns < c->use->cooldown_ns)
		return c->total_pct;
	/* Guarantees in held_pct may have ended since the measurement; they count until the node reports again. */
	uint64_t held = c->use->held_pct, peak = c->use->peak_pct;
	uint64_t used = peak < held ? min_u64(held, peak + OPPORTUNISTIC_MARGIN_PCT) : peak;
	return used + less(c->guaranteed_pct, held) + c->borrowed_pct;
}

uint64_t opportunistic_shortfall_pct(const struct opportunistic_card *c)
{
	return c->use ? less(c->borrowed_pct,
			     less(c->total_pct, c->use->now_pct) + OPPORTUNISTIC_SLACK_PCT)
		      : 0;
}

bool opportunistic_is_due(struct use_card *use, uint64_t shortfall_pct, uint64_t now_ns,
			  uint64_t after_ns)
{
	if (!shortfall_pct)
		use->starved_since_ns = 0;
	else if (!use->starved_since_ns)
		use->starved_since_ns = now_ns;
	return use->starved_since_ns && now_ns - use->starved_since_ns >= after_ns;
}

void opportunistic_cooldown(struct use_card *use, uint64_t now_ns)
{
	uint64_t cooldown_ns = OPPORTUNISTIC_COOLDOWN_NS;
	if (!use->cooldown_ns || now_ns >= use->cooldown_ns + OPPORTUNISTIC_FORGIVE_NS)
		use->rounds = 0;
	for (unsigned i = 0; i < use->rounds && cooldown_ns < OPPORTUNISTIC_COOLDOWN_MOST_NS; i++)
		cooldown_ns *= 2;
	use->cooldown_ns = now_ns + min_u64(cooldown_ns, OPPORTUNISTIC_COOLDOWN_MOST_NS);
	use->rounds += use->rounds < UINT8_MAX;
	use->starved_since_ns = 0;
}

uint64_t opportunistic_cooldown_for_ns(const struct use_card *use, uint64_t now_ns)
{
	return use ? less(use->cooldown_ns, now_ns) : 0;
}

static int compare(const void *a, const void *b)
{
	const struct opportunistic *x = a, *y = b;
	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	return (x->since_s < y->since_s) - (x->since_s > y->since_s);
}

void opportunistic_sort(struct opportunistic *list, size_t count)
{
	qsort(list, count, sizeof(*list), compare);
}

size_t opportunistic_choose(struct opportunistic *list, size_t count, uint64_t shortfall_pct)
{
	uint64_t got = 0;
	size_t chosen = 0;
	opportunistic_sort(list, count);
	for (size_t i = 0; i < count; i++) {
		list[i].is_victim = got < shortfall_pct;
		got += list[i].is_victim ? list[i].borrowed_pct : 0;
	}
	/* Spares pods whose compute is not needed, the highest priority first. */
	for (size_t i = count; i-- > 0;) {
		if (list[i].is_victim && got >= shortfall_pct + list[i].borrowed_pct) {
			list[i].is_victim = false;
			got -= list[i].borrowed_pct;
		}
		chosen += list[i].is_victim;
	}
	return chosen;
}
