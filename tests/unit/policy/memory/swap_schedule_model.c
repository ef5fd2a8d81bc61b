#include "swap_schedule_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

struct model m;

uint64_t model_random(uint64_t n)
{
	m.random ^= m.random << 13;
	m.random ^= m.random >> 7;
	m.random ^= m.random << 17;
	return n ? m.random % n : 0;
}

void model_start(uint64_t capacity, double rate, uint64_t seed)
{
	struct swap_schedule_config config = swap_schedule_default_config();

	memset(&m, 0, sizeof(m));
	swap_schedule_init(&m.r, &config);
	for (unsigned card = 0; card < CARDS; card++)
		m.capacity[card] = capacity;
	m.rate = rate;
	m.random = seed;
	m.now = S;
}

int model_add(unsigned cards, uint64_t movable, uint64_t work_ns, uint64_t rest_ns, bool is_in)
{
	int i = swap_schedule_add(&m.r, is_in, m.now);

	assert_in_range(i, 0, TENANTS - 1);
	m.t[i] = (struct model_tenant){
		.is_there = true,
		.cards = cards,
		.fixed = GIB / 2,
		.work_ns = work_ns,
		.rest_ns = rest_ns,
		.work_until = m.now + work_ns,
		.place = is_in ? SWAP_SCHEDULE_IN : SWAP_SCHEDULE_OUT,
	};
	for (unsigned card = 0; card < CARDS; card++)
		m.t[i].movable[card] = cards & 1U << card ? movable : 0;
	return i;
}

static bool works(const struct model_tenant *t)
{
	return m.now >= t->rest_until && m.now < t->work_until;
}

static bool wants(const struct model_tenant *t)
{
	for (unsigned card = 0; card < CARDS; card++)
		if (t->wanted[card])
			return true;
	return false;
}

static bool is_in_need(const struct model_tenant *t)
{
	return (t->place != SWAP_SCHEDULE_IN && works(t)) || wants(t);
}

static void live(struct model_tenant *t)
{
	if (m.now >= t->work_until && m.now >= t->rest_until) {
		/* Work that waits for its memory is not done. */
		t->rest_until = m.now + (t->rest_ns ? model_random(2 * t->rest_ns) : 0);
		t->work_until = t->rest_until + 1 + model_random(2 * t->work_ns);
	}
	if (t->place != SWAP_SCHEDULE_IN && t->work_until <= m.now + TICK && m.now >= t->rest_until)
		t->work_until = m.now + 2 * TICK;
	if (t->place == SWAP_SCHEDULE_IN)
		t->served_ns += TICK;
}

static uint64_t move_ns(const struct model_tenant *t)
{
	uint64_t sum = 0;
	for (unsigned card = 0; card < CARDS; card++)
		sum += t->movable[card];
	return 1 + (uint64_t)((double)sum / m.rate * 1e9);
}

static void obey(int i)
{
	struct model_tenant *t = &m.t[i];
	bool should_be_in = m.r.tenant[i].should_be_in;

	t->has_refused = false;
	if (t->place == SWAP_SCHEDULE_LEAVING && m.now >= t->move_ends) {
		t->has_refused = t->refuses;
		t->place = t->refuses ? SWAP_SCHEDULE_IN : SWAP_SCHEDULE_OUT;
		t->moved_ns = t->refuses ? t->moved_ns : move_ns(t) + model_random(1000);
	}
	if (t->place == SWAP_SCHEDULE_RETURNING && m.now >= t->move_ends) {
		t->place = SWAP_SCHEDULE_IN;
		t->moved_ns = move_ns(t) + model_random(1000);
	}
	if (t->place == SWAP_SCHEDULE_IN && !should_be_in && !t->has_refused) {
		t->place = SWAP_SCHEDULE_LEAVING;
		t->refuses = m.refuse_in && model_random(m.refuse_in) == 0;
		t->move_ends = m.now + move_ns(t);
	}
	if (t->place == SWAP_SCHEDULE_OUT && should_be_in) {
		t->place = SWAP_SCHEDULE_RETURNING;
		t->move_ends = m.now + move_ns(t);
	}
}

uint64_t model_held(unsigned card)
{
	uint64_t sum = 0;

	for (int i = 0; i < TENANTS; i++)
		if (m.t[i].is_there && m.t[i].cards & 1U << card)
			sum += m.t[i].fixed +
			       (m.t[i].place == SWAP_SCHEDULE_OUT ? 0 : m.t[i].movable[card]);
	return sum;
}

/* An allocation that waits is made when there is room on the card for it, not at once. */
static void allocate(struct model_tenant *t)
{
	for (unsigned card = 0, part = 0; card < CARDS; part += t->cards >> card & 1, card++) {
		if (!t->wanted[card] || t->place != SWAP_SCHEDULE_IN ||
		    model_held(card) + t->wanted[card] > m.capacity[card] ||
		    swap_schedule_may_take(&m.r, (int)(t - m.t), part) < t->wanted[card] ||
		    model_random(3))
			continue;
		t->movable[card] += t->wanted[card];
		t->wanted[card] = 0;
	}
}

static void look(int i)
{
	struct model_tenant *t = &m.t[i];
	struct swap_schedule_observation seen = {
		.place = t->place,
		.weight = t->weight,
		.has_work = works(t) || wants(t),
		.has_refused = t->has_refused,
		.moved_ns = t->moved_ns,
		.progress = t->progress,
	};

	for (unsigned card = 0; card < CARDS; card++)
		if (t->cards & 1U << card)
			seen.part[seen.part_count++] = (struct swap_schedule_part){
				card, t->fixed, t->movable[card], t->wanted[card]
			};
	swap_schedule_observe(&m.r, i, &seen, m.now);
}

/* How long a tenant may wait: one turn of each, and the moves, for each that may be before it. */
static uint64_t bound_ns(void)
{
	uint64_t sum = 0;
	uint64_t all = 0;
	unsigned count = 0, used = 0;

	for (int i = 0; i < TENANTS; i++)
		used |= m.t[i].is_there ? m.t[i].cards : 0;
	for (unsigned card = 0; card < CARDS; card++)
		all += used & 1U << card ? m.capacity[card] : 0;
	for (int i = 0; i < TENANTS; i++) {
		if (!m.t[i].is_there)
			continue;
		sum += swap_schedule_turn_ns(&m.r, i, all) + 2 * move_ns(&m.t[i]) + S;
		count++;
	}
	return sum * count;
}

void model_tick(void)
{
	bool is_anyone_moving = false;

	for (int i = 0; i < TENANTS; i++) {
		struct model_tenant *t = &m.t[i];
		if (!t->is_there)
			continue;
		live(t);
		allocate(t);
		look(i);
		if (!is_in_need(t))
			t->needs_since = 0;
		else if (!t->needs_since)
			t->needs_since = m.now;
		else if (m.now - t->needs_since > t->longest_wait)
			t->longest_wait = m.now - t->needs_since;
		is_anyone_moving |= t->place == SWAP_SCHEDULE_LEAVING ||
				    t->place == SWAP_SCHEDULE_RETURNING;
	}
	swap_schedule_step(&m.r, m.capacity, CARDS, m.now);
	for (int i = 0; i < TENANTS; i++)
		if (m.t[i].is_there)
			obey(i);
	for (unsigned card = 0; card < CARDS; card++)
		if (model_held(card) > m.most_held[card])
			m.most_held[card] = model_held(card);
	if (is_anyone_moving)
		m.moving_ns += TICK;
	/* Changes which tenants work, and so how long turns are. */
	if (m.now % S < TICK && bound_ns() > m.bound_ns)
		m.bound_ns = bound_ns();
	m.now += TICK;
}

void model_run(uint64_t ns)
{
	for (uint64_t end = m.now + ns; m.now < end;)
		model_tick();
}

bool model_was_within(void)
{
	for (unsigned card = 0; card < CARDS; card++)
		if (m.most_held[card] > m.capacity[card])
			return false;
	return true;
}
