#include "scene.h"

#include <stdbool.h>
#include <string.h>

#include "policy/memory/grant.h"
#include "policy/memory/fade.h"
#include "random.h"

#define MOST_CARDS 3
#define MOST_TENANTS 8
#define MOST_COMES 3

enum phase { AWAY, WAITS, HOLDS, GONE };

struct tenant {
	enum phase phase;
	unsigned comes_left;
	uint64_t next_ns; /* when it starts or ends */
	uint64_t hold_ns;
	struct order_key key;
	struct fade use;
	unsigned need_count;
	struct grant_need need[MOST_CARDS]; /* granted memory, while it holds some */
	unsigned ahead;                     /* that waited when it came */
	uint64_t grows_at_ns;               /* 0: does not */
	bool grew;
};

struct scene {
	uint64_t random;
	uint64_t now_ns;
	uint64_t arrivals;
	uint64_t most_hold_ns, half_life_ns;
	struct order_bounds bounds;
	unsigned card_count, tenant_count;
	struct grant_card card[MOST_CARDS]; /* taken_bytes: memory that no tenant of the scene ever uses */
	struct tenant tenant[MOST_TENANTS];
	struct scene_tally *tally;
};

static void draw_need(struct scene *s, struct tenant *t)
{
	bool is_small = random_between(&s->random, 0, 2) != 0;

	t->need_count = 0;
	for (unsigned c = 0; c < s->card_count; c++) {
		uint64_t room = s->card[c].size_bytes - s->card[c].taken_bytes;
		if (t->need_count && random_between(&s->random, 0, 1))
			continue;
		/* All can be met, but for one in fifty. */
		t->need[t->need_count++] = (struct grant_need){
			.card = c,
			.bytes = random_between(&s->random, 1, is_small ? room / 3 + 1 : room),
		};
	}
	if (!random_between(&s->random, 0, 49))
		t->need[0].bytes = s->card[t->need[0].card].size_bytes + 1;
}

static void draw(struct scene *s)
{
	uint64_t *r = &s->random;

	s->card_count = (unsigned)random_between(r, 1, MOST_CARDS);
	s->tenant_count = (unsigned)random_between(r, 2, MOST_TENANTS);
	s->most_hold_ns = random_between(r, 5, 100);
	s->half_life_ns = random_between(r, 0, 200);
	s->bounds = (struct order_bounds){ .patience_ns = random_between(r, 0, 300),
					   .passes_most = (uint32_t)random_between(r, 0, 9) };
	for (unsigned c = 0; c < s->card_count; c++) {
		s->card[c].size_bytes = random_between(r, 10, 100);
		s->card[c].taken_bytes = random_between(r, 0, s->card[c].size_bytes / 3);
	}
	for (unsigned i = 0; i < s->tenant_count; i++) {
		struct tenant *t = &s->tenant[i];
		t->comes_left = (unsigned)random_between(r, 1, MOST_COMES);
		t->next_ns = random_between(r, 1, 100);
		t->key.id = i;
		if (!random_between(r, 0, 2))
			fade_add(&t->use, 1, random_between(r, 0, 50), s->half_life_ns);
	}
}

static void come(struct scene *s, struct tenant *t)
{
	draw_need(s, t);
	t->phase = WAITS;
	t->ahead = 0;
	for (unsigned i = 0; i < s->tenant_count; i++)
		t->ahead += s->tenant[i].phase == WAITS && &s->tenant[i] != t;
	t->key.arrival = s->arrivals++;
	t->key.since_ns = s->now_ns;
	t->key.passes = 0;
}

static void leave(struct scene *s, struct tenant *t)
{
	t->comes_left--;
	t->phase = t->comes_left ? AWAY : GONE;
	t->next_ns = s->now_ns + random_between(&s->random, 1, 40);
}

static void hold(struct scene *s, struct tenant *t)
{
	t->phase = HOLDS;
	t->hold_ns = random_between(&s->random, 1, s->most_hold_ns);
	t->next_ns = s->now_ns + t->hold_ns;
	t->grew = false;
	t->grows_at_ns = random_between(&s->random, 0, 3)
				 ? 0
				 : s->now_ns + random_between(&s->random, 0, t->hold_ns - 1);
}

/* The invariant for holders: together never more than the card has. */
static bool is_over(const struct scene *s)
{
	for (unsigned c = 0; c < s->card_count; c++) {
		uint64_t sum = s->card[c].taken_bytes;
		for (unsigned i = 0; i < s->tenant_count; i++)
			for (unsigned n = 0; n < s->tenant[i].need_count; n++)
				if (s->tenant[i].phase == HOLDS && s->tenant[i].need[n].card == c)
					sum += s->tenant[i].need[n].bytes;
		if (sum > s->card[c].size_bytes)
			return true;
	}
	return false;
}

static size_t make_requests(struct scene *s, struct grant_card *cards, struct grant_request *list)
{
	size_t count = 0;

	memcpy(cards, s->card, sizeof(s->card));
	for (unsigned i = 0; i < s->tenant_count; i++) {
		struct tenant *t = &s->tenant[i];
		struct grant_request *r = &list[count];
		for (unsigned n = 0; t->phase == HOLDS && n < t->need_count; n++)
			cards[t->need[n].card].taken_bytes += t->need[n].bytes;
		t->key.use_ns = fade_use_ns(&t->use, s->now_ns, s->half_life_ns);
		r->key = t->key;
		r->owner = t;
		r->is_growth = false;
		if (t->phase == WAITS) {
			r->need_count = t->need_count;
			memcpy(r->need, t->need, sizeof(t->need));
			count++;
		} else if (t->phase == HOLDS && t->grows_at_ns && s->now_ns >= t->grows_at_ns &&
			   !t->grew) {
			r->is_growth = true;
			r->need_count = 1;
			r->need[0] = (struct grant_need){
				.card = t->need[0].card,
				.bytes = random_between(&s->random, 1, 30),
			};
			count++;
		}
	}
	return count;
}

/*
 * The specified order, in other words. Go through the waiting requests in the order of their grants: none is left waiting that
 * would fit. A request may have the free memory, less the earlier grants, less what the earlier overdue requests lack on each card.
 * And no request is granted memory that an earlier overdue request lacks.
 */
static const char *check_order(const struct scene *s, const struct grant_card *before,
			       const struct grant_request *list, size_t count)
{
	uint64_t left[MOST_CARDS];

	for (unsigned c = 0; c < s->card_count; c++)
		left[c] = grant_free_bytes(&before[c]);
	/* Growth is granted after the overdue requests. */
	for (int pass = 0; pass < 3; pass++)
		for (size_t i = 0; i < count; i++) {
			const struct grant_request *r = &list[i];
			struct order_key key = ((const struct tenant *)r->owner)->key;
			bool is_overdue = order_is_overdue(&key, s->now_ns, &s->bounds);
			bool does_fit = true, can_be = true;
			if (pass != (r->is_growth ? 1 : is_overdue ? 0 : 2))
				continue;
			for (unsigned n = 0; n < r->need_count; n++) {
				unsigned c = r->need[n].card;
				can_be &= r->need[n].bytes <= s->card[c].size_bytes;
				does_fit &= r->need[n].bytes <= left[c];
			}
			if (!r->is_growth && can_be && !r->place)
				return "one that waits has no place";
			if (can_be && does_fit != (r->verdict == GRANT_GRANTED))
				return does_fit ? "one that fits was left out"
						: "one got what others were to have";
			if (!can_be && r->verdict != GRANT_REFUSED)
				return "what can't be was not refused";
			if (r->is_growth && r->verdict == GRANT_WAITS)
				return "one that holds waits";
			if (!r->is_growth && can_be && r->verdict == GRANT_REFUSED)
				return "refused, though it can be met";
			for (unsigned n = 0; n < r->need_count && can_be; n++) {
				unsigned c = r->need[n].card;
				uint64_t used = does_fit ? r->need[n].bytes : 0;
				if (!does_fit && is_overdue && !r->is_growth)
					used = r->need[n].bytes < left[c] ? r->need[n].bytes
									  : left[c];
				left[c] -= used;
			}
		}
	for (size_t i = 1; i < count; i++)
		if (!list[i].is_growth && !list[i - 1].is_growth &&
		    order_compare(&((const struct tenant *)list[i - 1].owner)->key,
				  &((const struct tenant *)list[i].owner)->key, s->now_ns,
				  &s->bounds) >= 0)
			return "not in order";
	return NULL;
}

static const char *apply(struct scene *s, struct grant_request *r)
{
	struct tenant *t = r->owner;
	uint64_t waited_ns = s->now_ns - t->key.since_ns;
	uint64_t bound_ns = s->bounds.patience_ns + (t->ahead + 1) * s->most_hold_ns;

	if (r->is_growth) {
		t->grew = true;
		s->tally->growths++;
		if (r->verdict == GRANT_GRANTED)
			t->need[0].bytes += r->need[0].bytes;
		return NULL;
	}
	s->tally->overdue += order_is_overdue(&t->key, s->now_ns, &s->bounds);
	t->key.passes = r->key.passes;
	if (waited_ns > bound_ns && r->verdict != GRANT_REFUSED)
		return "one waits longer than the bound";
	if (r->verdict == GRANT_WAITS) {
		s->tally->waits++;
		return NULL;
	}
	if (r->verdict == GRANT_REFUSED) {
		s->tally->refusals++;
		leave(s, t);
		return NULL;
	}
	s->tally->grants++;
	if ((double)waited_ns > s->tally->wait_of_bound * (double)bound_ns)
		s->tally->wait_of_bound = (double)waited_ns / (double)bound_ns;
	hold(s, t);
	return NULL;
}

static const char *decide(struct scene *s)
{
	struct grant_card before[MOST_CARDS], cards[MOST_CARDS];
	struct grant_request list[MOST_TENANTS];
	size_t count = make_requests(s, before, list);
	const char *wrong;

	memcpy(cards, before, sizeof(cards));
	grant_decide(cards, s->card_count, list, count, s->now_ns, &s->bounds);
	s->tally->decisions++;
	wrong = check_order(s, before, list, count);
	for (size_t i = 0; i < count && !wrong; i++)
		wrong = apply(s, &list[i]);
	return !wrong && is_over(s) ? "more is granted than the card has" : wrong;
}

/* When the next thing happens; 0: nothing does any more. */
static uint64_t next_event(const struct scene *s)
{
	uint64_t next = 0;

	for (unsigned i = 0; i < s->tenant_count; i++) {
		const struct tenant *t = &s->tenant[i];
		uint64_t at = t->next_ns;
		if (t->phase == GONE || t->phase == WAITS)
			continue;
		if (t->phase == HOLDS && t->grows_at_ns > s->now_ns && !t->grew)
			at = t->grows_at_ns;
		if (!next || at < next)
			next = at;
	}
	return next;
}

const char *scene_play(uint64_t seed, struct scene_tally *tally)
{
	struct scene s = { .random = seed, .tally = tally };

	draw(&s);
	for (uint64_t at; (at = next_event(&s));) {
		s.now_ns = at;
		for (unsigned i = 0; i < s.tenant_count; i++) {
			struct tenant *t = &s.tenant[i];
			if (t->phase == AWAY && t->next_ns <= at) {
				come(&s, t);
			} else if (t->phase == HOLDS && t->next_ns <= at) {
				fade_add(&t->use, at, t->hold_ns, s.half_life_ns);
				leave(&s, t);
			}
		}
		const char *wrong = decide(&s);
		if (wrong)
			return wrong;
	}
	for (unsigned i = 0; i < s.tenant_count; i++)
		if (s.tenant[i].phase != GONE)
			return "one waits for ever";
	return NULL;
}
