#include "policy/memory/swap_schedule_room.h"

#include <stddef.h>
#include <string.h>

#define NS_PER_S 1e9
#define ANSWER_MOVES 4
#define RATE_WEIGHT 0.5 /* weight of the latest move in the average time per byte */
/* a move slower than this (bytes per second) counts as this fast, so that turns stay finite whatever a tenant reports */
#define RATE_LEAST 1e6
#define RATE_BYTES_LEAST (UINT64_C(1) << 20) /* a smaller move says nothing about the speed */

struct swap_schedule_config swap_schedule_default_config(void)
{
	return (struct swap_schedule_config){ .turn_min_ns = UINT64_C(1000000000),
					      .idle_ns = UINT64_C(500000000),
					      .retry_ns = UINT64_C(10000000000),
					      .answer_ns = UINT64_C(10000000000),
					      .move_part = 0.1,
					      .weight_most = 8,
					      .bytes_per_s = 20e9 };
}

void swap_schedule_init(struct swap_schedule *r, const struct swap_schedule_config *config)
{
	*r = (struct swap_schedule){ .config = *config, .bytes_per_s = config->bytes_per_s };
}

int swap_schedule_add(struct swap_schedule *r, bool is_in, uint64_t now_ns)
{
	for (unsigned i = 0; i < SWAP_SCHEDULE_MOST; i++) {
		if (r->tenant[i].is_used)
			continue;
		r->tenant[i] = (struct swap_schedule_tenant){
			.is_used = true,
			.should_be_in = is_in,
			.in_since_ns = now_ns,
			.work_ns = now_ns,
			.seen.place = is_in ? SWAP_SCHEDULE_IN : SWAP_SCHEDULE_OUT,
		};
		if (r->end <= i)
			r->end = i + 1;
		return (int)i;
	}
	return -1;
}

void swap_schedule_remove(struct swap_schedule *r, int tenant)
{
	r->tenant[tenant] = (struct swap_schedule_tenant){ 0 };
	while (r->end && !r->tenant[r->end - 1].is_used)
		r->end--;
}

uint64_t swap_schedule_may_take(const struct swap_schedule *r, int tenant, unsigned part)
{
	const struct swap_schedule_part *own = &r->tenant[tenant].seen.part[part];
	for (unsigned i = 0; i < r->end; i++) {
		const struct swap_schedule_tenant *t = &r->tenant[i];
		if ((int)i == tenant || !swap_schedule_is_awaited(t))
			continue;
		for (unsigned k = 0; k < t->seen.part_count; k++)
			if (t->seen.part[k].card == own->card)
				return r->tenant[tenant].is_granted ? own->wanted_bytes : 0;
	}
	return UINT64_MAX;
}

static double weight_of(const struct swap_schedule_tenant *t)
{
	return t->seen.weight > 0 ? t->seen.weight : 1;
}

static bool share_a_card(const struct swap_schedule_tenant *a, const struct swap_schedule_tenant *b)
{
	for (unsigned i = 0; i < a->seen.part_count; i++)
		for (unsigned k = 0; k < b->seen.part_count; k++)
			if (a->seen.part[i].card == b->seen.part[k].card)
				return true;
	return false;
}

/* The tenant's weight divided by the least weight among the tenants that work or wait on its GPUs; at most weight_most. */
static double weight_factor(const struct swap_schedule *r, const struct swap_schedule_tenant *t)
{
	double least = weight_of(t);
	for (unsigned i = 0; i < r->end; i++) {
		const struct swap_schedule_tenant *other = &r->tenant[i];
		if ((other->seen.has_work || other->needs_since_ns) && share_a_card(t, other) &&
		    weight_of(other) < least)
			least = weight_of(other);
	}
	double factor = weight_of(t) / least;
	return factor < r->config.weight_most ? factor : r->config.weight_most;
}

uint64_t swap_schedule_turn_ns(const struct swap_schedule *r, int tenant, uint64_t need_bytes)
{
	/* When the turn ends, this tenant's memory moves out, and need_bytes of the other tenant move in. */
	uint64_t ns = swap_schedule_stay_ns(r, swap_schedule_movable_bytes(&r->tenant[tenant]) +
						       need_bytes);
	return (uint64_t)((double)ns * weight_factor(r, &r->tenant[tenant]));
}

static void learn_rate(struct swap_schedule *r, const struct swap_schedule_tenant *t)
{
	uint64_t bytes = swap_schedule_movable_bytes(t);
	double rate = (double)bytes / ((double)t->seen.moved_ns / NS_PER_S);
	if (bytes < RATE_BYTES_LEAST)
		return;
	/* Average the time per byte, not the rate, so that a slow move counts by the time that it took. */
	if (!(rate > RATE_LEAST))
		rate = RATE_LEAST;
	r->bytes_per_s = 1 / ((1 - RATE_WEIGHT) / r->bytes_per_s + RATE_WEIGHT / rate);
}

/* The tenant was ordered to leave and does not: it is stopped or exiting, or its work does not end. */
static bool ignores_orders(const struct swap_schedule *r, const struct swap_schedule_tenant *t,
			   uint64_t now_ns)
{
	uint64_t limit_ns = ANSWER_MOVES * swap_schedule_move_ns(r, swap_schedule_movable_bytes(t));
	if (limit_ns < r->config.answer_ns)
		limit_ns = r->config.answer_ns;
	return !t->should_be_in && t->seen.place == SWAP_SCHEDULE_LEAVING &&
	       now_ns - t->leaves_since_ns > limit_ns;
}

void swap_schedule_observe(struct swap_schedule *r, int tenant,
			   const struct swap_schedule_observation *seen, uint64_t now_ns)
{
	struct swap_schedule_tenant *t = &r->tenant[tenant];
	bool was_in = t->seen.place == SWAP_SCHEDULE_IN;
	bool has_moved = seen->moved_ns && seen->moved_ns != t->seen.moved_ns;
	if (t->seen.is_out_by_user && !seen->is_out_by_user)
		t->is_recalled = true;
	if (seen->progress != t->seen.progress)
		t->leaves_since_ns = now_ns;
	t->seen = *seen;
	t->is_recalled = t->is_recalled && !t->should_be_in;
	if (has_moved)
		learn_rate(r, t);
	if (!was_in && seen->place == SWAP_SCHEDULE_IN)
		t->in_since_ns = now_ns;
	if (seen->has_work)
		t->work_ns = now_ns;
	if (!t->should_be_in && !seen->is_out_by_user &&
	    (seen->has_refused || ignores_orders(r, t, now_ns))) {
		t->should_be_in = true;
		t->spared_until_ns = now_ns + r->config.retry_ns;
		t->ignored_order = true;
	}
	if (seen->place == SWAP_SCHEDULE_OUT)
		t->ignored_order = false;
	if (!swap_schedule_is_in_need(t))
		t->needs_since_ns = 0;
	else if (!t->needs_since_ns)
		t->needs_since_ns = now_ns;
}

/* The tenant after `after` (-1: the first) in the queue, or -1. Tenants that came at the same time are in order of number. */
static int next_in_queue(const struct swap_schedule *r, int after)
{
	int next = -1;
	for (unsigned i = 0; i < r->end; i++) {
		const struct swap_schedule_tenant *t = &r->tenant[i], *a, *n;
		if (!t->is_used || !t->needs_since_ns || (int)i == after)
			continue;
		a = after >= 0 ? &r->tenant[after] : NULL;
		if (a && (t->needs_since_ns < a->needs_since_ns ||
			  (t->needs_since_ns == a->needs_since_ns && (int)i < after)))
			continue;
		n = next >= 0 ? &r->tenant[next] : NULL;
		if (!n || t->needs_since_ns < n->needs_since_ns)
			next = (int)i;
	}
	return next;
}

static bool is_any_blocked(const struct swap_schedule_tenant *t, const bool *is_blocked)
{
	for (unsigned k = 0; k < t->seen.part_count; k++)
		if (is_blocked[t->seen.part[k].card])
			return true;
	return false;
}

static void mark_cards(const struct swap_schedule_tenant *t, bool *ret_is_of)
{
	for (unsigned k = 0; k < t->seen.part_count; k++)
		ret_is_of[t->seen.part[k].card] = true;
}

static void serve(struct swap_schedule_tenant *t, uint64_t now_ns)
{
	t->should_be_in = true;
	t->never_since_ns = 0;
	t->queued_ns = t->needs_since_ns;
	for (unsigned k = 0; k < t->seen.part_count; k++)
		t->is_granted |= t->seen.part[k].wanted_bytes > 0;
	if (t->is_granted)
		/* The turn begins now, because other tenants left to make room for these bytes. */
		t->in_since_ns = now_ns;
}

/* While a tenant waits for room, no tenant behind it in the queue is let in on the same GPUs. */
static void serve_queue(struct swap_schedule *r, uint64_t now_ns)
{
	bool is_blocked[SWAP_SCHEDULE_CARDS] = { false };
	for (int i = next_in_queue(r, -1); i >= 0; i = next_in_queue(r, i)) {
		struct swap_schedule_tenant *t = &r->tenant[i];
		struct room room;
		room_free(r, &room);
		if (is_any_blocked(t, is_blocked)) {
			mark_cards(t, is_blocked);
			continue;
		}
		if (room_fits(&room, t)) {
			serve(t, now_ns);
			continue;
		}
		/* Waiting can't help, so its allocation must fail. The figures may change within turn_min_ns. */
		if (!room_can_ever(r, i, false)) {
			if (!t->never_since_ns)
				t->never_since_ns = now_ns;
			if (now_ns - t->never_since_ns >= r->config.turn_min_ns)
				t->should_be_in = true;
			else
				mark_cards(t, is_blocked);
			continue;
		}
		t->never_since_ns = 0;
		room_make(r, i, now_ns);
		mark_cards(t, is_blocked);
	}
}

static bool is_out_without_need(const struct swap_schedule_tenant *t)
{
	return t->is_used && !t->should_be_in && !t->seen.is_out_by_user && !t->needs_since_ns;
}

/* The memory of all idle tenants, for each GPU. An idle tenant is out and not queued. */
struct idle_memory {
	struct room out;                     /* bytes to move back if all idle tenants return */
	bool is_of_any[SWAP_SCHEDULE_CARDS]; /* this GPU is one of an idle tenant's GPUs */
	bool is_needed[SWAP_SCHEDULE_CARDS]; /* this GPU is one of a queued tenant's GPUs */
};

static void find_idle_memory(const struct swap_schedule *r, struct idle_memory *ret)
{
	*ret = (struct idle_memory){ 0 };
	for (unsigned i = 0; i < r->end; i++) {
		const struct swap_schedule_tenant *t = &r->tenant[i];
		if (t->needs_since_ns)
			mark_cards(t, ret->is_needed);
		if (!is_out_without_need(t))
			continue;
		mark_cards(t, ret->is_of_any);
		for (unsigned k = 0; k < t->seen.part_count; k++)
			ret->out.bytes[t->seen.part[k].card] +=
				swap_schedule_is_on_card(t) ? 0 : t->seen.part[k].movable_bytes;
	}
}

static void update_room_since(struct swap_schedule *r, const struct idle_memory *idle,
			      uint64_t now_ns)
{
	struct room room;
	room_free(r, &room);
	for (unsigned card = 0; card < r->card_count; card++)
		if (!idle->is_of_any[card] || idle->is_needed[card] ||
		    idle->out.bytes[card] > room.bytes[card])
			r->room_since_ns[card] = 0;
		else if (!r->room_since_ns[card])
			r->room_since_ns[card] = now_ns;
}

/* Idle tenants return if there was room for all of them for long enough. */
static void return_without_need(struct swap_schedule *r, const struct idle_memory *idle,
				uint64_t now_ns)
{
	update_room_since(r, idle, now_ns);
	for (unsigned i = 0; i < r->end; i++) {
		struct swap_schedule_tenant *t = &r->tenant[i];
		bool may_return = is_out_without_need(t);
		for (unsigned k = 0; may_return && k < t->seen.part_count; k++) {
			unsigned card = t->seen.part[k].card;
			uint64_t since_ns = r->room_since_ns[card];
			may_return = since_ns &&
				     now_ns - since_ns >=
					     swap_schedule_stay_ns(r, idle->out.bytes[card]);
		}
		t->should_be_in |= may_return;
	}
}

/*
 * Other tenants took the room that is reserved for the tenant's return. True only after turn_min_ns, because the figures may
 * change, and never for a tenant that was let in to get an error.
 */
static bool has_lost_room(const struct swap_schedule *r, struct swap_schedule_tenant *t,
			  uint64_t now_ns)
{
	bool is_over = false;
	for (unsigned k = 0;
	     swap_schedule_is_awaited(t) && !t->never_since_ns && k < t->seen.part_count; k++) {
		unsigned card = t->seen.part[k].card;
		is_over |= room_taken_bytes(r, card) > r->capacity_bytes[card];
	}
	if (!is_over)
		t->lacks_since_ns = 0;
	else if (!t->lacks_since_ns)
		t->lacks_since_ns = now_ns;
	return is_over && now_ns - t->lacks_since_ns >= r->config.turn_min_ns;
}

/* If the tenant has work, it gets back its place in the queue. */
static void cancel_return(struct swap_schedule_tenant *t, uint64_t now_ns)
{
	t->should_be_in = false;
	t->leaves_since_ns = now_ns;
	t->lacks_since_ns = 0;
	if (t->seen.has_work)
		t->needs_since_ns = t->queued_ns ? t->queued_ns : now_ns;
}

void swap_schedule_step(struct swap_schedule *r, const uint64_t *capacity_bytes,
			unsigned card_count, uint64_t now_ns)
{
	struct idle_memory idle;
	r->card_count = card_count;
	memcpy(r->capacity_bytes, capacity_bytes, card_count * sizeof(*capacity_bytes));
	for (unsigned i = 0; i < r->end; i++)
		r->tenant[i].is_granted = false;
	for (unsigned i = 0; i < r->end; i++) {
		struct swap_schedule_tenant *t = &r->tenant[i];
		/* The tenant found no room, but other tenants can make room, so it must queue again. */
		bool is_again = t->is_used && t->seen.is_short && t->should_be_in &&
				room_can_ever(r, (int)i, true);
		if (t->is_used && t->should_be_in && (t->seen.is_out_by_user || is_again)) {
			t->should_be_in = false;
			t->leaves_since_ns = now_ns;
		}
		if (is_again && !t->needs_since_ns)
			t->needs_since_ns = now_ns;
		if (t->is_used && has_lost_room(r, t, now_ns))
			cancel_return(t, now_ns);
	}
	find_idle_memory(r, &idle);
	serve_queue(r, now_ns);
	return_without_need(r, &idle, now_ns);
}
