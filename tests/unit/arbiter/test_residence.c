/*
 * Whose memory is on a card, on virtual time: the rules in simple scenes, and what holds in thousands of
 * random ones (seeds printed), with tenants that work and rest, grow, refuse to move, come and go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "arbiter/residence.h"

#define GIB (UINT64_C(1) << 30)
#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define TICK (50 * MS)
#define TENANTS 8

struct model_tenant {
	bool is_there;
	uint64_t fixed, movable, wanted;
	uint64_t work_until, rest_until; /* it works, then rests, and so on */
	uint64_t work_ns, rest_ns;       /* means; rest 0: always works */
	enum residence_place place;
	uint64_t move_ends;
	uint64_t moved_ns, progress;
	bool refuses, has_refused;
	uint64_t needs_since, longest_wait, served_ns;
};

static struct {
	struct residence r;
	uint64_t now, capacity, random;
	double rate;
	struct model_tenant t[TENANTS];
	unsigned refuse_in; /* one of so many moves is refused; 0: none */
	uint64_t moving_ns; /* time in which anybody moves */
	uint64_t most_held;
} m;

static uint64_t random_below(uint64_t n)
{
	m.random ^= m.random << 13;
	m.random ^= m.random >> 7;
	m.random ^= m.random << 17;
	return n ? m.random % n : 0;
}

static void start(uint64_t capacity, double rate, uint64_t seed)
{
	struct residence_config config = residence_default_config();

	memset(&m, 0, sizeof(m));
	residence_init(&m.r, &config);
	m.capacity = capacity;
	m.rate = rate;
	m.random = seed;
	m.now = S;
}

static int add(uint64_t movable, uint64_t work_ns, uint64_t rest_ns, bool is_in)
{
	int i = residence_add(&m.r, is_in, m.now);

	assert_in_range(i, 0, TENANTS - 1);
	m.t[i] = (struct model_tenant){
		.is_there = true,
		.fixed = GIB / 2,
		.movable = movable,
		.work_ns = work_ns,
		.rest_ns = rest_ns,
		.work_until = m.now + work_ns,
		.place = is_in ? RESIDENCE_IN : RESIDENCE_OUT,
	};
	return i;
}

static bool works(const struct model_tenant *t)
{
	return m.now >= t->rest_until && m.now < t->work_until;
}

static bool is_in_need(const struct model_tenant *t)
{
	return (t->place != RESIDENCE_IN && works(t)) || t->wanted;
}

static void live(struct model_tenant *t)
{
	if (m.now >= t->work_until && m.now >= t->rest_until) {
		/* Work that waits for its memory is not done. */
		t->rest_until = m.now + (t->rest_ns ? random_below(2 * t->rest_ns) : 0);
		t->work_until = t->rest_until + 1 + random_below(2 * t->work_ns);
	}
	if (t->place != RESIDENCE_IN && t->work_until <= m.now + TICK && m.now >= t->rest_until)
		t->work_until = m.now + 2 * TICK;
	if (t->place == RESIDENCE_IN)
		t->served_ns += TICK;
}

static uint64_t move_ns(const struct model_tenant *t)
{
	return 1 + (uint64_t)((double)t->movable / m.rate * 1e9);
}

static void obey(int i)
{
	struct model_tenant *t = &m.t[i];
	bool is_to_be_in = m.r.tenant[i].is_to_be_in;

	t->has_refused = false;
	if (t->place == RESIDENCE_LEAVING && m.now >= t->move_ends) {
		t->has_refused = t->refuses;
		t->place = t->refuses ? RESIDENCE_IN : RESIDENCE_OUT;
		t->moved_ns = t->refuses ? t->moved_ns : move_ns(t) + random_below(1000);
	}
	if (t->place == RESIDENCE_RETURNING && m.now >= t->move_ends) {
		t->place = RESIDENCE_IN;
		t->moved_ns = move_ns(t) + random_below(1000);
	}
	if (t->place == RESIDENCE_IN && !is_to_be_in && !t->has_refused) {
		t->place = RESIDENCE_LEAVING;
		t->refuses = m.refuse_in && random_below(m.refuse_in) == 0;
		t->move_ends = m.now + move_ns(t);
	}
	if (t->place == RESIDENCE_OUT && is_to_be_in) {
		t->place = RESIDENCE_RETURNING;
		t->move_ends = m.now + move_ns(t);
	}
}

static uint64_t held(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < TENANTS; i++)
		if (m.t[i].is_there)
			sum += m.t[i].fixed + (m.t[i].place == RESIDENCE_OUT ? 0 : m.t[i].movable);
	return sum;
}

/* An allocation that waits is made when there is room on the card for it, not at once. */
static void allocate(struct model_tenant *t)
{
	if (!t->wanted || t->place != RESIDENCE_IN || held() + t->wanted > m.capacity ||
	    residence_may_take(&m.r, (int)(t - m.t)) < t->wanted || random_below(3))
		return;
	t->movable += t->wanted;
	t->wanted = 0;
}

static void tick(void)
{
	bool is_anyone_moving = false;

	for (int i = 0; i < TENANTS; i++) {
		struct model_tenant *t = &m.t[i];
		if (!t->is_there)
			continue;
		live(t);
		allocate(t);
		struct residence_seen seen = {
			.place = t->place,
			.fixed_bytes = t->fixed,
			.movable_bytes = t->movable,
			.wanted_bytes = t->wanted,
			.has_work = works(t) || t->wanted,
			.has_refused = t->has_refused,
			.moved_ns = t->moved_ns,
			.progress = t->progress,
		};
		residence_see(&m.r, i, &seen, m.now);
		if (!is_in_need(t))
			t->needs_since = 0;
		else if (!t->needs_since)
			t->needs_since = m.now;
		else if (m.now - t->needs_since > t->longest_wait)
			t->longest_wait = m.now - t->needs_since;
		is_anyone_moving |= t->place == RESIDENCE_LEAVING || t->place == RESIDENCE_RETURNING;
	}
	residence_step(&m.r, m.capacity, m.now);
	for (int i = 0; i < TENANTS; i++)
		if (m.t[i].is_there)
			obey(i);
	if (held() > m.most_held)
		m.most_held = held();
	if (is_anyone_moving)
		m.moving_ns += TICK;
	m.now += TICK;
}

static void run(uint64_t ns)
{
	for (uint64_t end = m.now + ns; m.now < end;)
		tick();
}

/* One turn of each, and the moves, for each that may be before it. */
static uint64_t bound_ns(void)
{
	uint64_t sum = 0;
	unsigned count = 0;

	for (int i = 0; i < TENANTS; i++) {
		if (!m.t[i].is_there)
			continue;
		sum += residence_turn_ns(&m.r, i, m.capacity) + 2 * move_ns(&m.t[i]) + S;
		count++;
	}
	return sum * count;
}

static void test_what_fits_together_stays(void **state)
{
	start(100 * GIB, 40e9, 1);
	add(40 * GIB, S, 0, true);
	add(40 * GIB, S, 100 * MS, true);
	add(10 * GIB, S, 10 * S, true);
	run(600 * S);
	assert_int_equal(m.r.orders, 0);
}

static void test_two_that_do_not_fit_take_turns(void **state)
{
	start(100 * GIB, 40e9, 1);
	int a = add(60 * GIB, S, 0, true), b = add(60 * GIB, S, 0, false);
	run(1200 * S);
	double part = (double)m.moving_ns / (double)(1200 * S);
	printf("served %.0f and %.0f s of 1200, moving %.1f %%\n", (double)m.t[a].served_ns / 1e9,
	       (double)m.t[b].served_ns / 1e9, part * 100);
	assert_true(m.most_held <= m.capacity);
	assert_true(m.t[a].served_ns > 500 * S && m.t[b].served_ns > 500 * S);
	assert_true(part < 0.115);
}

/* Moves ten times as slow as was thought make turns ten times as long. */
static void test_slow_moves_make_long_turns(void **state)
{
	uint64_t orders[2];

	for (int slow = 0; slow < 2; slow++) {
		start(100 * GIB, slow ? 2e9 : 20e9, 1);
		add(60 * GIB, S, 0, true);
		add(60 * GIB, S, 0, false);
		run(6000 * S);
		orders[slow] = m.r.orders;
		printf("%s moves: %u orders in 6000 s, moving %.1f %%\n", slow ? "slow" : "fast",
		       (unsigned)orders[slow], (double)m.moving_ns / (double)(6000 * S) * 100);
		assert_true((double)m.moving_ns / (double)(6000 * S) < 0.13);
	}
	assert_true(orders[0] > 6 * orders[1]);
}

static void test_the_idle_leave_first(void **state)
{
	start(100 * GIB, 40e9, 1);
	int worker = add(40 * GIB, S, 0, true), idle = add(40 * GIB, 1, UINT64_MAX / 4, true);
	run(20 * S);
	int comes = add(30 * GIB, S, 0, false);
	run(20 * S);
	assert_int_equal(m.t[worker].place, RESIDENCE_IN);
	assert_int_equal(m.t[idle].place, RESIDENCE_OUT);
	assert_int_equal(m.t[comes].place, RESIDENCE_IN);
	assert_true(m.t[comes].longest_wait < 5 * S);
	/* When there is room for all again, it comes back though it has no work. */
	residence_remove(&m.r, comes);
	m.t[comes].is_there = false;
	run(60 * S);
	assert_int_equal(m.t[idle].place, RESIDENCE_IN);
	assert_int_equal(m.r.orders, 1);
}

/* Between the allocations of one that grows there is room for an idle one: it is not moved there and back. */
static void test_the_idle_stay_out_while_another_grows(void **state)
{
	start(100 * GIB, 40e9, 1);
	int idle = add(60 * GIB, 1, UINT64_MAX / 4, true);
	run(20 * S);
	int grows = add(20 * GIB, S, 0, true);
	m.t[grows].wanted = 20 * GIB;
	run(30 * S);
	assert_int_equal(m.t[idle].place, RESIDENCE_OUT);
	/* It frees what it had, and takes it again. */
	for (int i = 0; i < 20; i++) {
		m.t[grows].movable = 10 * GIB;
		run(2 * S);
		m.t[grows].wanted = 30 * GIB;
		run(2 * S);
		assert_int_equal(m.t[grows].wanted, 0);
	}
	assert_int_equal(m.r.orders, 1);
	assert_int_equal(m.t[idle].place, RESIDENCE_OUT);
	assert_true(m.most_held <= m.capacity);
	m.t[grows].movable = 10 * GIB;
	run(60 * S);
	assert_int_equal(m.t[idle].place, RESIDENCE_IN);
}

/* What one left for is not taken back by him before it was used. */
static void test_room_is_kept_for_whom_it_was_made(void **state)
{
	start(100 * GIB, 40e9, 1);
	int idle = add(60 * GIB, 1, UINT64_MAX / 4, true);
	run(20 * S);
	int grows = add(10 * GIB, S, 0, true);
	m.t[grows].wanted = 40 * GIB;
	while (m.t[grows].wanted)
		run(TICK);
	run(10 * S);
	assert_int_equal(m.r.orders, 1);
	assert_int_equal(m.t[idle].place, RESIDENCE_OUT);
	assert_true(m.most_held <= m.capacity);
}

static void test_who_refuses_is_passed_over(void **state)
{
	start(100 * GIB, 40e9, 1);
	int first = add(40 * GIB, S, 0, true);
	run(S);
	int second = add(40 * GIB, S, 0, true);
	m.refuse_in = 1; /* every one, at first */
	int comes = add(40 * GIB, S, 0, false);
	while (!m.t[first].has_refused)
		run(TICK);
	m.refuse_in = 0;
	while (m.t[comes].place != RESIDENCE_IN)
		run(TICK);
	assert_int_equal(m.t[first].place, RESIDENCE_IN);
	assert_int_equal(m.t[second].place, RESIDENCE_OUT);
}

/* One that is stopped does not keep the others from each other's room. */
static void test_who_does_not_answer_is_passed_over(void **state)
{
	start(100 * GIB, 40e9, 1);
	int deaf = add(40 * GIB, S, 0, true);
	run(S);
	add(40 * GIB, S, 0, true);
	int comes = add(40 * GIB, S, 0, false);
	while (m.t[deaf].place != RESIDENCE_LEAVING)
		run(TICK);
	m.t[deaf].move_ends = UINT64_MAX;
	uint64_t begin = m.now;
	while (m.t[comes].place != RESIDENCE_IN)
		run(TICK);
	printf("%.1f s\n", (double)(m.now - begin) / 1e9);
	assert_true(m.now - begin < 30 * S);
}

/* However long it takes: what goes on is awaited. */
static void test_a_slow_move_is_awaited(void **state)
{
	start(100 * GIB, 40e9, 1);
	int slow = add(40 * GIB, S, 0, true);
	run(S);
	add(40 * GIB, S, 0, true);
	int comes = add(40 * GIB, S, 0, false);
	while (m.t[slow].place != RESIDENCE_LEAVING)
		run(TICK);
	m.t[slow].move_ends = m.now + 60 * S;
	while (m.t[slow].place == RESIDENCE_LEAVING) {
		m.t[slow].progress += random_below(20) == 0;
		run(TICK);
		assert_false(m.r.tenant[slow].is_to_be_in);
	}
	assert_int_equal(m.t[slow].place, RESIDENCE_OUT);
	while (m.t[comes].place != RESIDENCE_IN)
		run(TICK);
}

/* Others left for what it waited for: it is not sent away before it had a turn of it. */
static void test_who_is_served_has_a_turn(void **state)
{
	start(100 * GIB, 40e9, 1);
	int grows = add(40 * GIB, S, 0, true), leaves = add(50 * GIB, S, 0, true);
	run(60 * S);
	m.t[grows].wanted = 20 * GIB;
	while (m.t[grows].wanted)
		run(TICK);
	assert_int_equal(m.t[leaves].place, RESIDENCE_OUT);
	uint64_t begin = m.now, turn = residence_turn_ns(&m.r, grows, 50 * GIB);
	while (m.t[grows].place == RESIDENCE_IN)
		run(TICK);
	printf("%.1f s of %.1f\n", (double)(m.now - begin) / 1e9, (double)turn / 1e9);
	assert_true(m.now - begin + 2 * TICK >= turn);
}

/* While one is to return, whose bytes are reserved, others have what they were granted and no more. */
static void test_what_is_reserved_is_nobody_elses(void **state)
{
	struct residence_seen in = { .place = RESIDENCE_IN,
				     .movable_bytes = 10 * GIB,
				     .has_work = true };
	struct residence_seen out = { .place = RESIDENCE_OUT, .movable_bytes = 30 * GIB };

	start(100 * GIB, 40e9, 1);
	int a = residence_add(&m.r, true, m.now), b = residence_add(&m.r, false, m.now);
	residence_see(&m.r, a, &in, m.now);
	residence_see(&m.r, b, &out, m.now);
	residence_step(&m.r, m.capacity, m.now);
	assert_true(residence_may_take(&m.r, a) == UINT64_MAX);
	out.has_work = true;
	residence_see(&m.r, b, &out, m.now + S);
	residence_step(&m.r, m.capacity, m.now + S);
	assert_true(m.r.tenant[b].is_to_be_in);
	assert_true(residence_may_take(&m.r, a) == 0);
	in.wanted_bytes = 60 * GIB;
	residence_see(&m.r, a, &in, m.now + S);
	residence_step(&m.r, m.capacity, m.now + S);
	assert_true(residence_may_take(&m.r, a) == 60 * GIB);
	in.wanted_bytes = 61 * GIB; /* beyond what is reserved */
	residence_see(&m.r, a, &in, m.now + S);
	residence_step(&m.r, m.capacity, m.now + S);
	assert_true(residence_may_take(&m.r, a) == 0);
	out.place = RESIDENCE_IN;
	in.wanted_bytes = 0;
	residence_see(&m.r, b, &out, m.now + 2 * S);
	residence_see(&m.r, a, &in, m.now + 2 * S);
	residence_step(&m.r, m.capacity, m.now + 2 * S);
	assert_true(residence_may_take(&m.r, a) == UINT64_MAX);
}

static void test_who_is_put_out_by_hand_stays_out(void **state)
{
	start(100 * GIB, 40e9, 1);
	int a = residence_add(&m.r, true, m.now);
	struct residence_seen seen = {
		.place = RESIDENCE_IN, .movable_bytes = GIB, .has_work = true, .is_put_out = true
	};
	residence_see(&m.r, a, &seen, m.now);
	residence_step(&m.r, m.capacity, m.now);
	assert_false(m.r.tenant[a].is_to_be_in);
	seen.place = RESIDENCE_OUT;
	residence_see(&m.r, a, &seen, m.now + S);
	residence_step(&m.r, m.capacity, m.now + S);
	assert_false(m.r.tenant[a].is_to_be_in);
	/* Called back it comes at once, also when it has nothing to do. */
	seen.is_put_out = seen.has_work = false;
	residence_see(&m.r, a, &seen, m.now + 2 * S);
	residence_step(&m.r, m.capacity, m.now + 2 * S);
	assert_true(m.r.tenant[a].is_to_be_in);
}

/* More than the card has without anybody else: let in, to be told; others are served meanwhile. */
static void test_who_can_never_fit_is_let_in_to_be_told(void **state)
{
	start(100 * GIB, 40e9, 1);
	int a = residence_add(&m.r, false, m.now), b = residence_add(&m.r, false, m.now);
	struct residence_seen large = { .place = RESIDENCE_OUT,
					.movable_bytes = 101 * GIB,
					.has_work = true };
	struct residence_seen small = { .place = RESIDENCE_OUT,
					.movable_bytes = 50 * GIB,
					.has_work = true };
	for (int i = 0; i < 4; i++, m.now += 2 * S) {
		residence_see(&m.r, a, &large, m.now);
		residence_see(&m.r, b, &small, m.now);
		residence_step(&m.r, m.capacity, m.now);
		/* At first it may be so for a moment only. */
		assert_int_equal(m.r.tenant[a].is_to_be_in, i > 0);
		large.is_short = i > 0; /* it has tried */
	}
	assert_true(m.r.tenant[b].is_to_be_in);
}

/* A scene of chance: sizes, loads, speeds; tenants grow, refuse, come and go. */
static void random_scene(uint64_t seed)
{
	start(100 * GIB, 1, seed * 0x9e3779b97f4a7c15ULL | 1);
	m.rate = 1e9 * (double)(5 + random_below(60));
	m.refuse_in = random_below(2) ? 0 : 10;
	unsigned count = 2 + (unsigned)random_below(TENANTS - 1);
	for (unsigned i = 0; i < count; i++) {
		uint64_t rest = random_below(3) ? random_below(20 * S) : 0;
		uint64_t size = GIB + random_below(70 * GIB);
		bool is_in = held() + size + TENANTS * GIB / 2 <= m.capacity;
		add(size, 100 * MS + random_below(10 * S), rest, is_in);
	}
	for (int part = 0; part < 10; part++) {
		run(60 * S);
		int i = (int)random_below(TENANTS);
		if (!m.t[i].is_there)
			continue;
		/* Grows by an allocation, up to what its quota would be; or goes, and another comes. */
		if (random_below(2) && !m.t[i].wanted && m.t[i].movable < 80 * GIB) {
			m.t[i].wanted = GIB + random_below(10 * GIB);
		} else {
			residence_remove(&m.r, i);
			m.t[i].is_there = false;
			/* Its context has to fit, as for anybody. */
			for (int more = 0; more < 100 && held() + GIB > m.capacity; more++)
				tick();
			if (held() + GIB > m.capacity)
				continue;
			add(GIB + random_below(70 * GIB), 100 * MS + random_below(10 * S),
			    random_below(20 * S), false);
		}
	}
}

static void test_random_scenes(void **state)
{
	uint64_t orders = 0;
	double worst = 0;

	for (uint64_t seed = 1; seed <= 1500; seed++) {
		random_scene(seed);
		if (m.most_held > m.capacity)
			fail_msg("seed %u: %.1f GiB held of %.1f", (unsigned)seed,
				 (double)m.most_held / (double)GIB,
				 (double)m.capacity / (double)GIB);
		for (int i = 0; i < TENANTS; i++) {
			double part = (double)m.t[i].longest_wait / (double)bound_ns();
			if (m.t[i].is_there && part > 1)
				fail_msg("seed %u: tenant %d waited %.1f s, bound %.1f",
					 (unsigned)seed, i, (double)m.t[i].longest_wait / 1e9,
					 (double)bound_ns() / 1e9);
			worst = m.t[i].is_there && part > worst ? part : worst;
		}
		orders += m.r.orders;
	}
	printf("1500 scenes of 600 s: %u orders to leave, the longest wait %.2f of its bound\n",
	       (unsigned)orders, worst);
	assert_true(orders > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_fits_together_stays),
		cmocka_unit_test(test_two_that_do_not_fit_take_turns),
		cmocka_unit_test(test_slow_moves_make_long_turns),
		cmocka_unit_test(test_the_idle_leave_first),
		cmocka_unit_test(test_the_idle_stay_out_while_another_grows),
		cmocka_unit_test(test_room_is_kept_for_whom_it_was_made),
		cmocka_unit_test(test_who_refuses_is_passed_over),
		cmocka_unit_test(test_who_does_not_answer_is_passed_over),
		cmocka_unit_test(test_a_slow_move_is_awaited),
		cmocka_unit_test(test_who_is_served_has_a_turn),
		cmocka_unit_test(test_what_is_reserved_is_nobody_elses),
		cmocka_unit_test(test_who_is_put_out_by_hand_stays_out),
		cmocka_unit_test(test_who_can_never_fit_is_let_in_to_be_told),
		cmocka_unit_test(test_random_scenes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
