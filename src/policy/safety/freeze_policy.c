#include "policy/safety/freeze_policy.h"

bool freeze_is_held(const struct freeze_item *item)
{
	return item->phase == FREEZE_ASKING || item->phase == FREEZE_WAITING;
}

void freeze_note_memory(struct freeze_item *item, uint64_t held_bytes, uint64_t now_ns)
{
	if (item->held_bytes == held_bytes)
		return;
	item->held_bytes = held_bytes;
	item->changed_ns = now_ns;
}

void freeze_end(struct freeze_item *item)
{
	item->phase = FREEZE_NONE;
	item->held_bytes = 0;
}

void freeze_resume(struct freeze_item *item, uint64_t now_ns)
{
	item->phase = FREEZE_STARTING;
	item->changed_ns = now_ns;
}

static void settle(const struct freeze_config *config, struct freeze_item *item, uint64_t now_ns)
{
	uint64_t still_ns = now_ns - item->changed_ns;
	uint64_t settles = 1;
	if (item->phase != FREEZE_STARTING)
		return;
	if (!item->held_bytes)
		settles = FREEZE_EMPTY_SETTLES;
	else if (item->held_bytes < config->threshold_bytes / 2)
		settles = FREEZE_SHORT_SETTLES;
	if (still_ns >= config->settle_ns * settles)
		item->phase = FREEZE_SETTLED;
}

static uint64_t lacks(const struct freeze_config *config, const struct freeze_item *item)
{
	return item->held_bytes < config->threshold_bytes
		       ? config->threshold_bytes - item->held_bytes
		       : 0;
}

uint64_t freeze_starting_bytes(const struct freeze_config *config, unsigned card,
			       struct freeze_item *const *items, size_t count)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < count; i++)
		if (items[i]->phase == FREEZE_STARTING && items[i]->cards >> card & 1)
			bytes += lacks(config, items[i]);
	return bytes;
}

/*
 * True if the GPU has the bytes that the item lacks to reach threshold_bytes, besides those that STARTING items may still take.
 * Also true if the GPU has no work that might end and free memory (freeze_policy.h: Room).
 */
static bool has_room(const struct freeze_config *config, const struct freeze_card *cards,
		     unsigned card, struct freeze_item *const *items, size_t count,
		     const struct freeze_item *item)
{
	/* the item itself is not STARTING, so only others count */
	uint64_t wanted = lacks(config, item) + freeze_starting_bytes(config, card, items, count);
	bool others = false;
	for (size_t i = 0; i < count; i++) {
		const struct freeze_item *x = items[i];
		if (x->cards >> card & 1)
			others |= x->phase == FREEZE_STARTING || x->phase == FREEZE_SETTLED;
	}
	return cards[card].free_bytes >= wanted || (cards[card].is_empty && !others);
}

static uint64_t roomy(const struct freeze_config *config, const struct freeze_card *cards,
		      unsigned card_count, struct freeze_item *const *items, size_t count,
		      const struct freeze_item *item, uint64_t mask)
{
	uint64_t found = 0;
	for (unsigned c = 0; c < card_count; c++)
		if (mask >> c & 1 && has_room(config, cards, c, items, count, item))
			found |= UINT64_C(1) << c;
	return found;
}

static uint64_t cards_of(struct freeze_item *const *items, size_t count, enum freeze_phase phase)
{
	uint64_t cards = 0;
	for (size_t i = 0; i < count; i++)
		if (items[i]->phase == phase && !items[i]->by_hand)
			cards |= items[i]->cards;
	return cards;
}

void freeze_start(const struct freeze_config *config, const struct freeze_card *cards,
		  unsigned card_count, struct freeze_item *const *items, size_t count,
		  struct freeze_item *item, bool fresh, uint64_t now_ns)
{
	if (item->phase != FREEZE_NONE && item->phase != FREEZE_ASKING)
		return;
	if (!fresh) {
		item->phase = FREEZE_ASKING;
		return;
	}
	/* The item was noticed late, and holds the memory that it needs. If frozen, it would keep that memory from others. */
	if (lacks(config, item) == 0) {
		freeze_resume(item, now_ns);
		return;
	}
	uint64_t mask = item->cards & ~cards_of(items, count, FREEZE_WAITING);
	if (roomy(config, cards, card_count, items, count, item, mask))
		freeze_resume(item, now_ns);
	else
		item->phase = FREEZE_WAITING;
}

/* Returns the waiting item that follows `last` in the order, or the first item if `last` is NULL. NULL: there is none. */
static struct freeze_item *next_in_order(const struct freeze_config *config,
					 struct freeze_item *const *items, size_t count,
					 const struct freeze_item *last, uint64_t now_ns)
{
	struct freeze_item *best = NULL;
	for (size_t i = 0; i < count; i++) {
		struct freeze_item *x = items[i];
		if (x->phase != FREEZE_WAITING || x->by_hand)
			continue;
		if (last && order_compare(&x->key, &last->key, now_ns, &config->bounds) <= 0)
			continue;
		if (!best || order_compare(&x->key, &best->key, now_ns, &config->bounds) < 0)
			best = x;
	}
	return best;
}

/* Counts an overtaking for waiting items that arrived before `winner` and wait for one of its GPUs. */
static void count_passes(const struct freeze_config *config, struct freeze_item *const *items,
			 size_t count, const struct freeze_item *winner, uint64_t now_ns)
{
	for (size_t i = 0; i < count; i++)
		if (items[i]->phase == FREEZE_WAITING && !items[i]->by_hand &&
		    (items[i]->cards & winner->cards) && items[i]->key.arrival < winner->key.arrival)
			items[i]->key.passes++;
}

struct freeze_item *freeze_next(const struct freeze_config *config, const struct freeze_card *cards,
				unsigned card_count, struct freeze_item *const *items, size_t count,
				uint64_t now_ns)
{
	for (size_t i = 0; i < count; i++)
		settle(config, items[i], now_ns);
	uint64_t taken = cards_of(items, count, FREEZE_STARTING);
	struct freeze_item *x = NULL;
	while ((x = next_in_order(config, items, count, x, now_ns))) {
		/* Only one item starts per GPU at a time, because a starting item may use any of its GPUs. */
		bool may = !(x->cards & taken) &&
			   roomy(config, cards, card_count, items, count, x, x->cards);
		if (may) {
			freeze_resume(x, now_ns);
			count_passes(config, items, count, x, now_ns);
			return x;
		}
		if (order_is_overdue(&x->key, now_ns, &config->bounds))
			taken |= x->cards;
	}
	return NULL;
}
