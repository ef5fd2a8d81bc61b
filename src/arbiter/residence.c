#include "arbiter/residence.h"

#include <stddef.h>
#include <string.h>

#define NS_PER_S 1e9
#define ANSWER_MOVES 4
#define IDLE_STAYS 2    /* an idle tenant stays so many times the move's length */
#define RATE_WEIGHT 0.5 /* of the last move in what moves are thought to cost */
#define RATE_LEAST 1e6  /* bytes a second: whatever is said of a move, turns end */
#define RATE_BYTES_LEAST (UINT64_C(1) << 20) /* a move of less says nothing */

struct residence_config residence_default_config(void)
{
	return (struct residence_config){ .turn_min_ns = UINT64_C(1000000000),
					  .idle_ns = UINT64_C(500000000),
					  .retry_ns = UINT64_C(10000000000),
					  .answer_ns = UINT64_C(10000000000),
					  .move_part = 0.1,
					  .bytes_per_s = 20e9 };
}

void residence_init(struct residence *r, const struct residence_config *config)
{
	*r = (struct residence){ .config = *config, .bytes_per_s = config->bytes_per_s };
}

int residence_add(struct residence *r, bool is_in, uint64_t now_ns)
{
	for (unsigned i = 0; i < RESIDENCE_MOST; i++) {
		if (r->tenant[i].is_used)
			continue;
		r->tenant[i] = (struct residence_tenant){
			.is_used = true,
			.is_to_be_in = is_in,
			.in_since_ns = now_ns,
			.work_ns = now_ns,
			.seen.place = is_in ? RESIDENCE_IN : RESIDENCE_OUT,
		};
		if (r->end <= i)
			r->end = i + 1;
		return (int)i;
	}
	return -1;
}

void residence_remove(struct residence *r, int tenant)
{
	r->tenant[tenant] = (struct residence_tenant){ 0 };
	while (r->end && !r->tenant[r->end - 1].is_used)
		r->end--;
}

static bool is_on_card(const struct residence_tenant *t)
{
	return t->seen.place == RESIDENCE_IN || t->seen.place == RESIDENCE_LEAVING;
}

/* With what is reserved for one that returns; but not for one that found no room. */
static uint64_t taken_by(const struct residence_tenant *t)
{
	bool is_reserved = t->is_to_be_in && !t->seen.is_short;
	return t->seen.fixed_bytes + (is_on_card(t) || is_reserved ? t->seen.movable_bytes : 0);
}

uint64_t residence_taken_bytes(const struct residence *r)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < r->end; i++)
		if (r->tenant[i].is_used)
			sum += taken_by(&r->tenant[i]);
	return sum;
}

static uint64_t free_bytes(const struct residence *r)
{
	uint64_t taken = residence_taken_bytes(r) + r->granted_bytes;
	return taken < r->capacity_bytes ? r->capacity_bytes - taken : 0;
}

/* Its bytes are reserved, and not there yet. */
static bool is_awaited(const struct residence_tenant *t)
{
	return t->is_used && t->is_to_be_in && t->seen.place != RESIDENCE_IN && !t->seen.is_short;
}

uint64_t residence_may_take(const struct residence *r, int tenant)
{
	for (unsigned i = 0; i < r->end; i++)
		if ((int)i != tenant && is_awaited(&r->tenant[i]))
			return r->tenant[tenant].granted_bytes;
	return UINT64_MAX;
}

static uint64_t move_ns(const struct residence *r, uint64_t bytes)
{
	return (uint64_t)((double)bytes / r->bytes_per_s * NS_PER_S);
}

/* So long that moving so much is a small part of the time. */
static uint64_t turn_ns(const struct residence *r, uint64_t moved_bytes)
{
	uint64_t ns = (uint64_t)((double)move_ns(r, moved_bytes) * (1 - r->config.move_part) /
				 r->config.move_part);
	return ns > r->config.turn_min_ns ? ns : r->config.turn_min_ns;
}

uint64_t residence_turn_ns(const struct residence *r, int tenant, uint64_t need_bytes)
{
	/* One out, one in. */
	return turn_ns(r, r->tenant[tenant].seen.movable_bytes + need_bytes);
}

static void learn_rate(struct residence *r, const struct residence_seen *seen)
{
	double rate = (double)seen->movable_bytes / ((double)seen->moved_ns / NS_PER_S);
	if (seen->movable_bytes < RATE_BYTES_LEAST)
		return;
	/* Of what a byte costs, not of the rate: one slow move weighs as much as it took. */
	if (!(rate > RATE_LEAST))
		rate = RATE_LEAST;
	r->bytes_per_s = 1 / ((1 - RATE_WEIGHT) / r->bytes_per_s + RATE_WEIGHT / rate);
}

/* Ordered to leave for somebody's sake, and does not: it is stopped, or ends, or its work does not. */
static bool is_deaf(const struct residence *r, const struct residence_tenant *t, uint64_t now_ns)
{
	uint64_t limit_ns = ANSWER_MOVES * move_ns(r, t->seen.movable_bytes);
	if (limit_ns < r->config.answer_ns)
		limit_ns = r->config.answer_ns;
	return !t->is_to_be_in && t->seen.place == RESIDENCE_LEAVING &&
	       now_ns - t->leaves_since_ns > limit_ns;
}

/* What it lacks; 0: nothing. */
static uint64_t need_of(const struct residence_tenant *t)
{
	if (t->seen.is_put_out)
		return 0;
	if (!t->is_to_be_in)
		return t->seen.has_work || t->is_recalled
			       ? t->seen.movable_bytes + t->seen.wanted_bytes
			       : 0;
	return is_on_card(t) ? t->seen.wanted_bytes : 0;
}

/* One that is out with nothing to move back needs to be let in, though it needs no bytes. */
static bool is_in_need(const struct residence_tenant *t)
{
	return need_of(t) ||
	       (!t->is_to_be_in && (t->seen.has_work || t->is_recalled) && !t->seen.is_put_out);
}

void residence_see(struct residence *r, int tenant, const struct residence_seen *seen,
		   uint64_t now_ns)
{
	struct residence_tenant *t = &r->tenant[tenant];
	bool was_in = t->seen.place == RESIDENCE_IN;
	bool has_moved = seen->moved_ns && seen->moved_ns != t->seen.moved_ns;
	if (t->seen.is_put_out && !seen->is_put_out)
		t->is_recalled = true;
	if (seen->progress != t->seen.progress)
		t->leaves_since_ns = now_ns;
	t->seen = *seen;
	t->is_recalled = t->is_recalled && !t->is_to_be_in;
	if (has_moved)
		learn_rate(r, seen);
	if (!was_in && seen->place == RESIDENCE_IN)
		t->in_since_ns = now_ns;
	if (seen->has_work)
		t->work_ns = now_ns;
	if (!t->is_to_be_in && !seen->is_put_out && (seen->has_refused || is_deaf(r, t, now_ns))) {
		t->is_to_be_in = true;
		t->spared_until_ns = now_ns + r->config.retry_ns;
	}
	if (!is_in_need(t))
		t->needs_since_ns = 0;
	else if (!t->needs_since_ns)
		t->needs_since_ns = now_ns;
}

/* The one that is in need for longest behind `after` (0: the first), the lower number of two; or -1. */
static int next_in_queue(const struct residence *r, int after)
{
	int next = -1;
	for (unsigned i = 0; i < r->end; i++) {
		const struct residence_tenant *t = &r->tenant[i], *a, *n;
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

static bool is_idle(const struct residence *r, const struct residence_tenant *t, uint64_t now_ns)
{
	return !t->seen.has_work && now_ns - t->work_ns >= r->config.idle_ns;
}

static bool could_leave(const struct residence_tenant *t, uint64_t now_ns)
{
	return t->is_used && t->is_to_be_in && t->seen.place == RESIDENCE_IN &&
	       t->seen.movable_bytes && t->spared_until_ns <= now_ns;
}

static bool may_leave(const struct residence *r, unsigned i, uint64_t need, uint64_t now_ns)
{
	const struct residence_tenant *t = &r->tenant[i];
	uint64_t stayed_ns = now_ns - t->in_since_ns;
	if (!could_leave(t, now_ns))
		return false;
	if (is_idle(r, t, now_ns))
		return stayed_ns >= IDLE_STAYS * move_ns(r, t->seen.movable_bytes);
	return stayed_ns >= residence_turn_ns(r, (int)i, need);
}

/* a before b: the idle first, those longest; then who came first. */
static bool goes_before(const struct residence *r, const struct residence_tenant *a,
			const struct residence_tenant *b, uint64_t now_ns)
{
	bool a_idle = is_idle(r, a, now_ns), b_idle = is_idle(r, b, now_ns);
	if (a_idle != b_idle)
		return a_idle;
	return a_idle ? a->work_ns < b->work_ns : a->in_since_ns < b->in_since_ns;
}

static int next_victim(const struct residence *r, int for_whom, const bool *is_chosen,
		       uint64_t need, uint64_t now_ns)
{
	int best = -1;
	for (unsigned i = 0; i < r->end; i++)
		if ((int)i != for_whom && !is_chosen[i] && may_leave(r, i, need, now_ns) &&
		    (best < 0 || goes_before(r, &r->tenant[i], &r->tenant[best], now_ns)))
			best = (int)i;
	return best;
}

/* Could there be room for it if all others left that can, now or later? */
static bool can_ever(const struct residence *r, int tenant, uint64_t need)
{
	uint64_t room = free_bytes(r);
	for (unsigned i = 0; i < r->end; i++) {
		const struct residence_tenant *t = &r->tenant[i];
		if (t->is_used && (int)i != tenant && (is_on_card(t) || t->is_to_be_in))
			room += t->seen.movable_bytes;
	}
	return need <= room;
}

/* Sends away as many as it takes, or nobody. */
static void make_room(struct residence *r, int tenant, uint64_t need, uint64_t now_ns)
{
	bool is_chosen[RESIDENCE_MOST] = { false };
	uint64_t room = free_bytes(r);
	int victim;
	while (room < need && (victim = next_victim(r, tenant, is_chosen, need, now_ns)) >= 0) {
		is_chosen[victim] = true;
		room += r->tenant[victim].seen.movable_bytes;
	}
	for (unsigned i = 0; i < r->end && room >= need; i++)
		if (is_chosen[i]) {
			r->tenant[i].is_to_be_in = false;
			r->tenant[i].leaves_since_ns = now_ns;
			r->orders++;
		}
}

static bool is_anyone_leaving(const struct residence *r)
{
	for (unsigned i = 0; i < r->end; i++)
		if (r->tenant[i].is_used && !r->tenant[i].is_to_be_in &&
		    is_on_card(&r->tenant[i]) && r->tenant[i].seen.movable_bytes)
			return true;
	return false;
}

/* Serves the queue from its head on, up to the first that has to wait. */
static void serve_queue(struct residence *r, uint64_t now_ns)
{
	bool may_make_room = !is_anyone_leaving(r);
	for (int i = next_in_queue(r, -1); i >= 0; i = next_in_queue(r, i)) {
		struct residence_tenant *t = &r->tenant[i];
		uint64_t need = need_of(t);
		if (need <= free_bytes(r)) {
			t->is_to_be_in = true;
			t->never_since_ns = 0;
			t->granted_bytes = t->seen.wanted_bytes;
			r->granted_bytes += t->granted_bytes;
			if (t->granted_bytes)
				t->in_since_ns =
					now_ns; /* others left for this: it is to have a turn of it */
			continue;
		}
		/*
		 * It would wait for ever: it is let in, to be told that there is no room. But not by what is
		 * seen for a moment, while somebody's figures change.
		 */
		if (!can_ever(r, i, need)) {
			if (!t->never_since_ns)
				t->never_since_ns = now_ns;
			t->is_to_be_in |= now_ns - t->never_since_ns >= r->config.turn_min_ns;
			continue;
		}
		t->never_since_ns = 0;
		if (may_make_room)
			make_room(r, i, need, now_ns);
		return;
	}
}

static bool is_out_without_need(const struct residence_tenant *t)
{
	return t->is_used && !t->is_to_be_in && !t->seen.is_put_out;
}

/* Who needs nothing now comes back as well, where there is room for all who are out, and stays to be. */
static void return_without_need(struct residence *r, bool is_quiet, uint64_t now_ns)
{
	uint64_t out = 0;
	unsigned count = 0;
	for (unsigned i = 0; i < r->end; i++)
		if (is_out_without_need(&r->tenant[i])) {
			out += is_on_card(&r->tenant[i]) ? 0 : r->tenant[i].seen.movable_bytes;
			count++;
		}
	if (!is_quiet || !count || out > free_bytes(r)) {
		r->room_since_ns = 0;
		return;
	}
	if (!r->room_since_ns)
		r->room_since_ns = now_ns;
	if (now_ns - r->room_since_ns < turn_ns(r, out))
		return;
	for (unsigned i = 0; i < r->end; i++)
		if (is_out_without_need(&r->tenant[i]))
			r->tenant[i].is_to_be_in = true;
	r->room_since_ns = 0;
}

void residence_step(struct residence *r, uint64_t capacity_bytes, uint64_t now_ns)
{
	r->capacity_bytes = capacity_bytes;
	r->granted_bytes = 0;
	for (unsigned i = 0; i < r->end; i++) {
		struct residence_tenant *t = &r->tenant[i];
		t->granted_bytes = 0;
		/* One for whom others can make room queues again. */
		bool is_again = t->is_used && t->seen.is_short && t->is_to_be_in &&
				can_ever(r, (int)i, t->seen.movable_bytes);
		if (t->is_used && t->is_to_be_in && (t->seen.is_put_out || is_again)) {
			t->is_to_be_in = false;
			t->leaves_since_ns = now_ns;
		}
		if (is_again && !t->needs_since_ns)
			t->needs_since_ns = now_ns;
	}
	bool is_quiet = next_in_queue(r, -1) < 0;
	serve_queue(r, now_ns);
	return_without_need(r, is_quiet, now_ns);
}
