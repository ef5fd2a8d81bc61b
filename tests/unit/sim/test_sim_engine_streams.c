/* Streams of one process on the simulated card, which run side by side: every number here is exact. */
#include "engine_fixture.h"

static struct engine_stream *another(struct engine_proc *p)
{
	return engine_stream_new(p, 1, SIM_STREAM_NONBLOCKING);
}

/* Work of that part of the card, and a notice when it is done. */
static void work(struct fixture *f, struct engine_stream *s, uint64_t ns, uint32_t part,
		 uint64_t cookie)
{
	assert_true(engine_work_on(&f->engine, s, ns, 1, part));
	assert_true(engine_mark(&f->engine, s, cookie));
}

static uint64_t end_of(const struct fixture *f, uint64_t cookie)
{
	for (int i = 0; i < f->seen.n; i++)
		if (f->seen.cookies[i] == cookie)
			return f->seen.at_ns[i];
	return ENGINE_NEVER;
}

static void those_that_leave_room_run_at_once(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *s = tenant(f, &p), *t = another(p);

	work(f, s, MS, ENGINE_ALL / 4, 1);
	work(f, t, 3 * MS, ENGINE_ALL * 3 / 4, 2);
	work(f, s, MS, ENGINE_ALL / 4, 3);
	engine_advance(&f->engine, 10 * MS);
	assert_int_equal(end_of(f, 1), MS);
	assert_int_equal(end_of(f, 3), 2 * MS);
	assert_int_equal(end_of(f, 2), 3 * MS);
	/* However many of them: a moment is counted once. */
	assert_int_equal(p->busy_ns, 3 * MS);
	assert_int_equal(f->card->busy_ns, 3 * MS);
}

static void all_are_slowed_alike(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *s[8];

	s[0] = tenant(f, &p);
	for (int i = 1; i < 8; i++)
		s[i] = another(p);
	/* 0.57 each: eight do 1.75 times the work of one. */
	for (int i = 0; i < 8; i++)
		work(f, s[i], MS, 570000, (uint64_t)i);
	engine_advance(&f->engine, 10 * MS);
	for (int i = 0; i < 8; i++)
		assert_int_equal(end_of(f, (uint64_t)i), 4560 * US);
	/* Two, of which one comes when half of the other is done, and is left alone with what it still has to do. */
	work(f, s[0], MS, ENGINE_ALL, 10);
	engine_advance(&f->engine, 10 * MS + 500 * US);
	work(f, s[1], MS, ENGINE_ALL, 11);
	engine_advance(&f->engine, 20 * MS);
	assert_int_equal(end_of(f, 10), 11 * MS + 500 * US);
	assert_int_equal(end_of(f, 11), 12 * MS);
}

static void parts_of_nanoseconds_add_up(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *s[3] = { tenant(f, &p), another(p), another(p) };

	for (int i = 0; i < 3; i++)
		noticed_work(&f->engine, s[i], MS, 1, true, (uint64_t)i);
	/* Thirds, looked at each nanosecond: none is lost, and none is there too early. */
	for (uint64_t t = 0; t < 3000; t++)
		engine_advance(&f->engine, t);
	engine_advance(&f->engine, 3 * MS - 1);
	assert_int_equal(f->seen.n, 0);
	engine_advance(&f->engine, 3 * MS);
	assert_int_equal(f->seen.n, 3);
	for (int i = 0; i < 3; i++)
		work(f, s[i], 1, ENGINE_ALL, 10);
	engine_advance(&f->engine, 3 * MS + 2);
	assert_int_equal(f->seen.n, 3);
	engine_advance(&f->engine, 3 * MS + 3);
	assert_int_equal(f->seen.n, 6);
}

static void what_lasts_for_ever_leaves_the_others_their_part(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *s = tenant(f, &p), *t = another(p);

	engine_work_on(&f->engine, s, UINT64_MAX / 4, 1, ENGINE_ALL);
	for (int i = 0; i < 100; i++)
		work(f, t, MS, ENGINE_ALL, (uint64_t)i);
	engine_advance(&f->engine, 1000 * MS);
	assert_int_equal(end_of(f, 0), 2 * MS);
	assert_int_equal(end_of(f, 99), 200 * MS);
}

static void legacy_work_has_the_card_to_itself(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *apart = tenant(f, &p);
	struct engine_stream *one = engine_stream_new(p, 1, 0), *two = engine_stream_new(p, 1, 0);
	struct engine_stream *legacy = engine_stream_new(p, 1, SIM_STREAM_LEGACY);
	struct engine_stream *elsewhere = engine_stream_new(p, 2, 0);

	work(f, one, 2 * MS, ENGINE_ALL / 8, 1);
	work(f, two, MS, ENGINE_ALL / 8, 2);
	work(f, legacy, MS, ENGINE_ALL / 8, 3);
	work(f, two, MS, ENGINE_ALL / 8, 4);
	work(f, one, MS, ENGINE_ALL / 8, 5);
	/* Neither those that don't block nor those of another context are any of its business. */
	work(f, apart, 4 * MS, ENGINE_ALL / 8, 6);
	work(f, elsewhere, 4 * MS, ENGINE_ALL / 8, 7);
	engine_advance(&f->engine, 20 * MS);
	assert_int_equal(end_of(f, 2), MS);
	assert_int_equal(end_of(f, 1), 2 * MS);
	assert_int_equal(end_of(f, 3), 3 * MS);
	assert_int_equal(end_of(f, 4), 4 * MS);
	assert_int_equal(end_of(f, 5), 4 * MS);
	assert_int_equal(end_of(f, 6), 4 * MS);
	assert_int_equal(end_of(f, 7), 4 * MS);
}

static void events_order_streams_of_a_process(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *s = tenant(f, &p), *t = another(p);
	struct engine_event ev = { 0 };

	work(f, s, 2 * MS, ENGINE_ALL, 1);
	engine_record(&f->engine, s, &ev);
	work(f, s, 2 * MS, ENGINE_ALL, 2);
	engine_await(&f->engine, t, &ev);
	work(f, t, MS, ENGINE_ALL, 3);
	assert_int_equal(engine_event_bound(&f->engine, &ev), 2 * MS);
	engine_advance(&f->engine, 20 * MS);
	assert_int_equal(ev.completed_at_ns, 2 * MS);
	assert_int_equal(end_of(f, 3), 4 * MS);
	assert_int_equal(end_of(f, 2), 5 * MS);
	assert_true(engine_event_drop(&f->engine, &ev));
}

static void so_many_at_once_the_oldest(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *waits = tenant(f, &p), *s[ENGINE_AT_ONCE + 2];

	engine_host(&f->engine, waits, ENGINE_HOST, 1000);
	work(f, waits, MS, 1, 1001);
	/* From the last to the first: it is no matter of who is looked at first. */
	for (int i = 0; i < ENGINE_AT_ONCE + 2; i++)
		s[i] = another(p);
	for (int i = ENGINE_AT_ONCE + 1; i >= 0; i--)
		work(f, s[i], MS, 1, (uint64_t)i);
	engine_advance(&f->engine, MS / 2);
	/* It is older than all of them, but they have begun. */
	engine_release(&f->engine, p, 1000);
	engine_advance(&f->engine, 10 * MS);
	for (int i = 2; i < ENGINE_AT_ONCE + 2; i++)
		assert_int_equal(end_of(f, (uint64_t)i), MS);
	assert_int_equal(end_of(f, 0), 2 * MS);
	assert_int_equal(end_of(f, 1), 2 * MS);
	assert_int_equal(end_of(f, 1001), 2 * MS);
	/* With one more there is room for one of three: the oldest. */
	engine_host(&f->engine, waits, ENGINE_HOST, 1000);
	work(f, waits, MS, 1, 3001);
	for (int i = 0; i < ENGINE_AT_ONCE + 2; i++)
		work(f, s[i], i ? 3 * MS : MS, 1, (uint64_t)(2000 + i));
	engine_release(&f->engine, p, 1000);
	engine_advance(&f->engine, 100 * MS);
	assert_int_equal(end_of(f, 2000), 11 * MS);
	assert_int_equal(end_of(f, 3001), 12 * MS);
	assert_int_equal(end_of(f, 2000 + ENGINE_AT_ONCE - 1), 13 * MS);
	assert_int_equal(end_of(f, 2000 + ENGINE_AT_ONCE), 15 * MS);
	assert_int_equal(end_of(f, 2000 + ENGINE_AT_ONCE + 1), 16 * MS);
}

static void copies_share_their_way(void **state)
{
	struct fixture *f = *state;
	struct engine *e = &f->engine;
	struct engine_proc *p;
	struct engine_stream *s[4] = { tenant(f, &p), another(p), another(p), another(p) };
	const uint32_t part = ENGINE_ALL / 100;

	work(f, s[0], 10 * MS, ENGINE_ALL / 2, 1);
	for (int i = 1; i < 4; i++) {
		assert_true(engine_work(e, s[i], 2 * MS, 0, part, i < 3 ? SIM_WAY_IN : SIM_WAY_OUT));
		engine_mark(e, s[i], (uint64_t)(10 * i));
	}
	engine_advance(e, 100 * MS);
	assert_int_equal(end_of(f, 10), 2 * MS);
	assert_int_equal(end_of(f, 20), 4 * MS);
	assert_int_equal(end_of(f, 30), 2 * MS);
	assert_int_equal(end_of(f, 1), 10 * MS);
}

static void a_limit_is_of_all_of_a_process(void **state)
{
	struct fixture *f = *state;
	struct engine *e = &f->engine;
	struct engine_proc *p, *q;
	struct engine_stream *s[4] = { tenant(f, &p), another(p), another(p), another(p) };
	struct engine_stream *other = tenant(f, &q);

	engine_proc_set_group(p, 3);
	engine_proc_set_group(q, 3);
	engine_proc_set_limit(p, ENGINE_ALL / 2);
	/* Twice what it may have, beside one that wants the rest. */
	for (int i = 0; i < 4; i++)
		work(f, s[i], MS, ENGINE_ALL / 4, (uint64_t)i);
	work(f, other, MS, ENGINE_ALL / 2, 10);
	engine_advance(e, 10 * MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(end_of(f, (uint64_t)i), 2 * MS);
	assert_int_equal(end_of(f, 10), MS);
	/* Beside one that wants all there is for one and a half: so much slower still. */
	for (int i = 0; i < 4; i++)
		work(f, s[i], MS, ENGINE_ALL / 4, (uint64_t)(20 + i));
	work(f, other, 2 * MS, ENGINE_ALL, 30);
	engine_advance(e, 20 * MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(end_of(f, (uint64_t)(20 + i)), 13 * MS);
	assert_int_equal(end_of(f, 30), 13 * MS);
}

static void a_group_counts_all_streams(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p[2];

	for (int i = 0; i < 2; i++) {
		struct engine_stream *s = tenant(f, &p[i]), *t = another(p[i]);

		engine_proc_set_group(p[i], 7);
		work(f, s, MS, ENGINE_ALL / 2, (uint64_t)(2 * i));
		work(f, t, 2 * MS, ENGINE_ALL / 2, (uint64_t)(2 * i + 1));
	}
	engine_advance(&f->engine, 20 * MS);
	/* Four halves, and then two, which have room. */
	assert_int_equal(end_of(f, 0), 2 * MS);
	assert_int_equal(end_of(f, 2), 2 * MS);
	assert_int_equal(end_of(f, 1), 3 * MS);
	assert_int_equal(end_of(f, 3), 3 * MS);
	assert_int_equal(p[0]->busy_ns, 3 * MS);
}

static void killed_in_the_middle(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *s = tenant(f, &p), *t = another(p);

	work(f, s, 2 * MS, ENGINE_ALL, 1);
	work(f, t, 2 * MS, ENGINE_ALL, 2);
	engine_advance(&f->engine, MS);
	engine_stream_kill(&f->engine, s);
	assert_int_equal(f->seen.n, 1);
	assert_true(f->seen.failed[0]);
	assert_int_equal(f->seen.at_ns[0], MS);
	/* It has the card for what it has left. */
	engine_advance(&f->engine, 20 * MS);
	assert_int_equal(end_of(f, 2), 2 * MS + 500 * US);
	assert_false(f->seen.failed[1]);
	assert_false(p->runnable);
	assert_int_equal(p->completed, 2);
}

static void a_spin_leaves_room_to_all(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *s = tenant(f, &p), *t = another(p), *u = another(p);

	engine_host(&f->engine, s, ENGINE_SPIN, 1);
	work(f, t, MS, ENGINE_ALL / 2, 2);
	work(f, u, 2 * MS, ENGINE_ALL / 2, 3);
	engine_advance(&f->engine, 5 * MS);
	assert_int_equal(end_of(f, 2), MS);
	assert_int_equal(end_of(f, 3), 2 * MS);
	assert_int_equal(p->busy_ns, 5 * MS);
	engine_release(&f->engine, p, 1);
	assert_false(p->runnable);
}

static void a_slice_is_all_streams(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p, *q;
	struct engine_stream *s = tenant(f, &p), *t = another(p), *other = tenant(f, &q);

	work(f, s, 2 * SLICE, ENGINE_ALL / 2, 1);
	work(f, t, SLICE + MS, ENGINE_ALL / 2, 2);
	work(f, other, 2 * SLICE, ENGINE_ALL, 3);
	engine_advance(&f->engine, 50 * MS);
	assert_int_equal(end_of(f, 2), 2 * SLICE + 2 * GAP + MS);
	assert_int_equal(end_of(f, 1), 3 * SLICE + 2 * GAP);
	assert_int_equal(end_of(f, 3), 4 * SLICE + 2 * GAP + SWITCH);
	assert_int_equal(p->busy_ns, 2 * SLICE);
	assert_int_equal(q->busy_ns, 2 * SLICE);
}

static void bounds_are_never_late(void **state)
{
	struct fixture *f = *state;
	struct engine *e = &f->engine;
	struct engine_proc *p;
	struct engine_stream *s = tenant(f, &p), *t = another(p);
	struct engine_event ev = { 0 };
	int asked = 0;

	work(f, s, 2 * MS, ENGINE_ALL, 1);
	engine_record(e, s, &ev);
	engine_work_on(e, t, 9 * MS, 1, ENGINE_ALL);
	/* As if it were alone: not late, and a little early. */
	assert_int_equal(engine_next_notice(e), 4 * MS);
	assert_int_equal(engine_next_event(e, &ev), 4 * MS);
	assert_int_equal(engine_next_completion(e, p), 4 * MS);
	assert_int_equal(engine_event_bound(e, &ev), 2 * MS);
	assert_int_equal(engine_stream_bound(e, t), 9 * MS);
	/* More that contends comes: whoever asks again at the bound hears of it in time. */
	engine_advance(e, MS);
	engine_work_on(e, another(p), 20 * MS, 1, ENGINE_ALL);
	while (!f->seen.n) {
		engine_advance(e, engine_next_notice(e));
		assert_true(++asked < 10);
	}
	assert_int_equal(f->seen.at_ns[0], MS + 4500 * US);
	assert_int_equal(ev.completed_at_ns, MS + 4500 * US);
	assert_int_equal(e->now_ns, MS + 4500 * US);
	assert_true(engine_event_drop(e, &ev));
}

static void work_behind_an_event_of_another_is_heard_of(void **state)
{
	struct fixture *f = *state;
	struct engine *e = &f->engine;
	struct engine_proc *p, *q;
	struct engine_stream *s = tenant(f, &p), *t = another(p), *other = tenant(f, &q);
	struct engine_event ev = { 0 };

	engine_proc_set_group(p, 3);
	engine_proc_set_group(q, 3);
	engine_work_on(e, other, MS, 1, ENGINE_ALL / 4);
	engine_record(e, other, &ev);
	engine_work_on(e, s, 10 * MS, 1, ENGINE_ALL / 4);
	engine_await(e, t, &ev);
	engine_work_on(e, t, MS, 1, ENGINE_ALL / 4);
	for (int asked = 0; !p->completed; asked++) {
		assert_true(asked < 5);
		engine_advance(e, engine_next_completion(e, p));
	}
	assert_int_equal(e->now_ns, 2 * MS);
	assert_true(engine_event_drop(e, &ev));
}

/* The same numbers each time. */
static uint32_t draw(uint64_t *seed, uint32_t below)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*seed >> 33) % below;
}

#define STORM_PROCS 3
#define STORM_STREAMS 5
#define STORM_PIECES 400

struct piece {
	int stream;
	uint64_t ns, submitted_ns;
	uint32_t part;
};

struct storm {
	struct piece pieces[STORM_PIECES];
	uint64_t sm_ns, all_ns; /* of all pieces, of ENGINE_ALL; their lengths */
	uint64_t begun_ns;
};

/* Random work at random times; step: looked at so often in between as well. */
static void submit_storm(struct fixture *f, struct storm *storm, int procs, uint64_t seed,
			 uint64_t step)
{
	struct engine_stream *streams[STORM_PROCS * STORM_STREAMS];

	memset(storm, 0, sizeof(*storm));
	storm->begun_ns = f->engine.now_ns;
	f->seen.n = 0;
	for (int i = 0; i < procs; i++) {
		struct engine_proc *p = engine_proc_new(&f->engine, f->card, NULL);

		engine_proc_set_group(p, procs > 1 && i < 2 ? 9 : 0);
		for (int k = 0; k < STORM_STREAMS; k++)
			streams[i * STORM_STREAMS + k] = another(p);
	}
	for (uint64_t i = 0; i < STORM_PIECES; i++) {
		struct piece *piece = &storm->pieces[i];
		uint64_t until = f->engine.now_ns + (draw(&seed, 3) ? 0 : draw(&seed, 700 * US));

		for (uint64_t t = f->engine.now_ns; step && t < until; t += step)
			engine_advance(&f->engine, t);
		engine_advance(&f->engine, until);
		*piece = (struct piece){ .stream = (int)draw(&seed, (uint32_t)procs * STORM_STREAMS),
					 .ns = draw(&seed, 20) ? draw(&seed, 400 * US) : 0,
					 .submitted_ns = f->engine.now_ns,
					 .part = 1 + draw(&seed, ENGINE_ALL) };
		storm->sm_ns += piece->ns * piece->part / ENGINE_ALL;
		storm->all_ns += piece->ns;
		work(f, streams[piece->stream], piece->ns, piece->part, i);
	}
	engine_advance(&f->engine, f->engine.now_ns + 10000 * MS);
	assert_int_equal(f->seen.n, STORM_PIECES);
}

static void nothing_is_too_short_and_nothing_lost(void **state)
{
	struct fixture *f = *state;

	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct storm *storm = malloc(sizeof(*storm));
		uint64_t ready[STORM_PROCS * STORM_STREAMS] = { 0 };
		uint64_t before_ns = f->card->busy_ns, busy_ns;

		submit_storm(f, storm, seed % 2 ? 1 : STORM_PROCS, seed, 0);
		/* In a stream in order, and each piece as long as it is at least. */
		for (uint64_t i = 0; i < STORM_PIECES; i++) {
			const struct piece *piece = &storm->pieces[i];
			uint64_t *at = &ready[piece->stream];
			uint64_t begin = *at > piece->submitted_ns ? *at : piece->submitted_ns;

			assert_true(end_of(f, i) >= begin + piece->ns);
			*at = end_of(f, i);
		}
		/*
		 * The card has done all of it, never more at a time than there is of it (each piece's part is rounded to a
		 * nanosecond), and never stood there with less to do than one piece at its speed.
		 */
		busy_ns = f->card->busy_ns - before_ns;
		assert_true(busy_ns + STORM_PIECES >= storm->sm_ns);
		assert_true(busy_ns <= storm->all_ns + STORM_PIECES);
		free(storm);
	}
}

static void a_storm_is_the_same_in_steps(void **state)
{
	struct fixture *f = *state, *g;
	struct storm *storm = malloc(sizeof(*storm));
	void *other;

	setup(&other);
	g = other;
	submit_storm(f, storm, STORM_PROCS, 99, 0);
	submit_storm(g, storm, STORM_PROCS, 99, 1237);
	for (int i = 0; i < f->seen.n; i++) {
		assert_int_equal(f->seen.cookies[i], g->seen.cookies[i]);
		assert_int_equal(f->seen.at_ns[i], g->seen.at_ns[i]);
	}
	assert_int_equal(f->card->busy_ns, g->card->busy_ns);
	free(storm);
	teardown(&other);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(those_that_leave_room_run_at_once),
		TEST(all_are_slowed_alike),
		TEST(parts_of_nanoseconds_add_up),
		TEST(what_lasts_for_ever_leaves_the_others_their_part),
		TEST(legacy_work_has_the_card_to_itself),
		TEST(events_order_streams_of_a_process),
		TEST(so_many_at_once_the_oldest),
		TEST(copies_share_their_way),
		TEST(a_limit_is_of_all_of_a_process),
		TEST(a_group_counts_all_streams),
		TEST(killed_in_the_middle),
		TEST(a_spin_leaves_room_to_all),
		TEST(a_slice_is_all_streams),
		TEST(bounds_are_never_late),
		TEST(work_behind_an_event_of_another_is_heard_of),
		TEST(nothing_is_too_short_and_nothing_lost),
		TEST(a_storm_is_the_same_in_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
