#include "policy/memory/swap_schedule_room.h"

#define NS_PER_S 1e9
#define IDLE_STAYS 2 /* an idle tenant stays for this many times the length of its move */

bool swap_schedule_is_on_card(const struct swap_schedule_tenant *t)
{
	return t->seen.place == SWAP_SCHEDULE_IN || t->seen.place == SWAP_SCHEDULE_LEAVING;
}

bool swap_schedule_is_awaited(const struct swap_schedule_tenant *t)
{
	return t->is_used && t->should_be_in && t->seen.place != SWAP_SCHEDULE_IN &&
	       !t->seen.is_short;
}

uint64_t swap_schedule_movable_bytes(const struct swap_schedule_tenant *t)
{
	uint64_t sum = 0;
	for (unsigned k = 0; k < t->seen.part_count; k++)
		sum += t->seen.part[k].movable_bytes;
	return sum;
}

static uint64_t swap_schedule_need_bytes(const struct swap_schedule_tenant *t, unsigned part)
{
	const struct swap_schedule_part *p = &t->seen.part[part];
	if (t->seen.is_out_by_user)
		return 0;
	if (!t->should_be_in)
		return t->seen.has_work || t->is_recalled ? p->movable_bytes + p->wanted_bytes : 0;
	return swap_schedule_is_on_card(t) ? p->wanted_bytes : 0;
}

bool swap_schedule_is_in_need(const struct swap_schedule_tenant *t)
{
	for (unsigned k = 0; k < t->seen.part_count; k++)
		if (swap_schedule_need_bytes(t, k))
			return true;
	return !t->should_be_in && (t->seen.has_work || t->is_recalled) && !t->seen.is_out_by_user;
}

uint64_t swap_schedule_move_ns(const struct swap_schedule *r, uint64_t bytes)
{
	return (uint64_t)((double)bytes / r->bytes_per_s * NS_PER_S);
}

uint64_t swap_schedule_stay_ns(const struct swap_schedule *r, uint64_t moved_bytes)
{
	uint64_t ns = (uint64_t)((double)swap_schedule_move_ns(r, moved_bytes) *
				 (1 - r->config.move_part) / r->config.move_part);
	return ns > r->config.turn_min_ns ? ns : r->config.turn_min_ns;
}

/* The tenant's bytes on the GPU, or reserved there for its return. Nothing is reserved if it found no room (is_short). */
static uint64_t taken_by(const struct swap_schedule_tenant *t, unsigned part)
{
	const struct swap_schedule_part *p = &t->seen.part[part];
	bool is_reserved = t->should_be_in && !t->seen.is_short;
	return p->fixed_bytes + (swap_schedule_is_on_card(t) || is_reserved ? p->movable_bytes : 0);
}

uint64_t room_taken_bytes(const struct swap_schedule *r, unsigned card)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < r->end; i++)
		for (unsigned k = 0; k < r->tenant[i].seen.part_count; k++)
			if (r->tenant[i].seen.part[k].card == card)
				sum += taken_by(&r->tenant[i], k);
	return sum;
}

static void subtract(struct room *room, unsigned card, uint64_t bytes)
{
	room->bytes[card] -= bytes < room->bytes[card] ? bytes : room->bytes[card];
}

void room_free(const struct swap_schedule *r, struct room *ret)
{
	for (unsigned card = 0; card < r->card_count; card++)
		ret->bytes[card] = r->capacity_bytes[card];
	for (unsigned i = 0; i < r->end; i++) {
		const struct swap_schedule_tenant *t = &r->tenant[i];
		for (unsigned k = 0; k < t->seen.part_count; k++) {
			subtract(ret, t->seen.part[k].card, taken_by(t, k));
			if (t->is_granted)
				subtract(ret, t->seen.part[k].card, t->seen.part[k].wanted_bytes);
		}
	}
}

static uint64_t lacking(const struct room *room, const struct swap_schedule_tenant *t, unsigned part)
{
	uint64_t need = swap_schedule_need_bytes(t, part),
		 have = room->bytes[t->seen.part[part].card];
	return need > have ? need - have : 0;
}

bool room_fits(const struct room *room, const struct swap_schedule_tenant *t)
{
	for (unsigned k = 0; k < t->seen.part_count; k++)
		if (lacking(room, t, k))
			return false;
	return true;
}

/* The room if all other tenants left. Tenants that ignored an order to leave stay, unless is_by_stubborn is set. */
static void room_without_others(const struct swap_schedule *r, const struct swap_schedule_tenant *t,
				bool is_by_stubborn, struct room *ret)
{
	room_free(r, ret);
	for (unsigned i = 0; i < r->end; i++) {
		const struct swap_schedule_tenant *other = &r->tenant[i];
		if (other == t || !(swap_schedule_is_on_card(other) || other->should_be_in) ||
		    (other->ignored_order && !is_by_stubborn))
			continue;
		for (unsigned k = 0; k < other->seen.part_count; k++)
			ret->bytes[other->seen.part[k].card] += other->seen.part[k].movable_bytes;
	}
}

bool swap_schedule_can_ever_fit(const struct swap_schedule *r, int tenant)
{
	const struct swap_schedule_tenant *t = &r->tenant[tenant];
	struct room now, later;
	if (!t->needs_since_ns || t->is_granted)
		return false;
	room_free(r, &now);
	room_without_others(r, t, false, &later);
	return !room_fits(&now, t) && room_fits(&later, t);
}

bool room_can_ever(const struct swap_schedule *r, int tenant, bool is_return)
{
	const struct swap_schedule_tenant *t = &r->tenant[tenant];
	struct room room;
	room_without_others(r, t, true, &room);
	for (unsigned k = 0; k < t->seen.part_count; k++) {
		const struct swap_schedule_part *p = &t->seen.part[k];
		if ((is_return ? p->movable_bytes : swap_schedule_need_bytes(t, k)) >
		    room.bytes[p->card])
			return false;
	}
	return true;
}

static bool is_idle(const struct swap_schedule *r, const struct swap_schedule_tenant *t,
		    uint64_t now_ns)
{
	return !t->seen.has_work && now_ns - t->work_ns >= r->config.idle_ns;
}

static bool may_leave(const struct swap_schedule *r, unsigned i, uint64_t need, uint64_t now_ns)
{
	const struct swap_schedule_tenant *t = &r->tenant[i];
	uint64_t stayed_ns = now_ns - t->in_since_ns;
	if (!t->is_used || !t->should_be_in || t->seen.place != SWAP_SCHEDULE_IN ||
	    t->spared_until_ns > now_ns)
		return false;
	if (is_idle(r, t, now_ns))
		return stayed_ns >=
		       IDLE_STAYS * swap_schedule_move_ns(r, swap_schedule_movable_bytes(t));
	return stayed_ns >= swap_schedule_turn_ns(r, (int)i, need);
}

/* True if `t` has movable memory on a GPU where `whom` lacks memory. */
static bool would_help(const struct swap_schedule_tenant *t, const struct room *room,
		       const struct swap_schedule_tenant *whom)
{
	for (unsigned n = 0; n < whom->seen.part_count; n++)
		for (unsigned k = 0; k < t->seen.part_count && lacking(room, whom, n); k++)
			if (t->seen.part[k].card == whom->seen.part[n].card &&
			    t->seen.part[k].movable_bytes)
				return true;
	return false;
}

/* Idle tenants leave before busy ones; of idle tenants, the longest idle; of busy tenants, the longest in. */
static bool goes_before(const struct swap_schedule *r, const struct swap_schedule_tenant *a,
			const struct swap_schedule_tenant *b, uint64_t now_ns)
{
	bool a_idle = is_idle(r, a, now_ns), b_idle = is_idle(r, b, now_ns);
	if (a_idle != b_idle)
		return a_idle;
	return a_idle ? a->work_ns < b->work_ns : a->in_since_ns < b->in_since_ns;
}

static int next_victim(const struct swap_schedule *r, int for_whom, const bool *is_chosen,
		       const struct room *room, uint64_t need, uint64_t now_ns)
{
	int best = -1;
	for (unsigned i = 0; i < r->end; i++)
		if ((int)i != for_whom && !is_chosen[i] && may_leave(r, i, need, now_ns) &&
		    would_help(&r->tenant[i], room, &r->tenant[for_whom]) &&
		    (best < 0 || goes_before(r, &r->tenant[i], &r->tenant[best], now_ns)))
			best = (int)i;
	return best;
}

/* A tenant is already leaving a GPU where `t` lacks bytes; `t` then waits for that tenant. */
static bool is_leaving_for(const struct swap_schedule *r, const struct room *room,
			   const struct swap_schedule_tenant *t)
{
	for (unsigned i = 0; i < r->end; i++)
		if (!r->tenant[i].should_be_in && swap_schedule_is_on_card(&r->tenant[i]) &&
		    would_help(&r->tenant[i], room, t))
			return true;
	return false;
}

void room_make(struct swap_schedule *r, int tenant, uint64_t now_ns)
{
	bool is_chosen[SWAP_SCHEDULE_MOST] = { false };
	const struct swap_schedule_tenant *t = &r->tenant[tenant];
	struct room room;
	uint64_t need = 0;
	int victim;
	room_free(r, &room);
	if (is_leaving_for(r, &room, t))
		return;
	for (unsigned k = 0; k < t->seen.part_count; k++)
		need += swap_schedule_need_bytes(t, k);
	while (!room_fits(&room, t) &&
	       (victim = next_victim(r, tenant, is_chosen, &room, need, now_ns)) >= 0) {
		const struct swap_schedule_observation *seen = &r->tenant[victim].seen;
		is_chosen[victim] = true;
		for (unsigned k = 0; k < seen->part_count; k++)
			room.bytes[seen->part[k].card] += seen->part[k].movable_bytes;
	}
	if (!room_fits(&room, t))
		return;
	for (unsigned i = 0; i < r->end; i++)
		if (is_chosen[i]) {
			r->tenant[i].should_be_in = false;
			r->tenant[i].leaves_since_ns = now_ns;
			r->orders++;
		}
}
