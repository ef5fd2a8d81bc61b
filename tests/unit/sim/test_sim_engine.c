/* The simulated card's time model, on virtual time: every number here is exact. */
#include "engine_fixture.h"

static void alone_nothing_is_lost(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *s = tenant(f, &p);

	for (int i = 0; i < 100; i++)
		noticed_work(&f->engine, s, MS, 1, i == 99, 7);
	engine_advance(&f->engine, 100 * MS - 1);
	assert_int_equal(p->completed, 99);
	assert_int_equal(f->seen.n, 0);
	engine_advance(&f->engine, 100 * MS);
	assert_int_equal(p->completed, 100);
	assert_int_equal(f->seen.n, 1);
	assert_int_equal(f->seen.at_ns[0], 100 * MS);
}

static void late_wakeup_stretches_nothing(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p, *q;
	struct engine_stream *s = tenant(f, &p), *t = tenant(f, &q);
	struct engine *e = &f->engine;

	for (int i = 0; i < 50; i++) {
		noticed_work(e, s, 300 * US, 1, true, (uint64_t)i);
		noticed_work(e, t, 700 * US, 1, false, 0);
	}
	/* One leap, long after all is done: each notice carries the time at which it was due. */
	engine_advance(e, 10000 * MS);
	assert_int_equal(p->completed, 50);
	assert_int_equal(q->completed, 50);
	assert_int_equal(f->seen.at_ns[0], 300 * US);
	assert_int_equal(f->seen.at_ns[5], 1800 * US);
	/* The seventh needs 10 us of the second slice: 2090 + gap + 2090 + gap + 10. */
	assert_int_equal(f->seen.at_ns[6], SLICE + GAP + SLICE + GAP + 10 * US);
	assert_int_equal(f->card->busy_ns, 50 * MS);
}

static void steps_make_no_difference(void **state)
{
	struct fixture *f = *state, *g;
	void *other;

	setup(&other);
	g = other;
	for (int i = 0; i < 3; i++) {
		struct engine_stream *s = tenant(f, NULL), *t = tenant(g, NULL);

		for (int k = 0; k < 20; k++) {
			noticed_work(&f->engine, s, (uint64_t)(k * 331 + 17 * i) * US, 1,
				     k % 5 == 0, (uint64_t)k);
			noticed_work(&g->engine, t, (uint64_t)(k * 331 + 17 * i) * US, 1,
				     k % 5 == 0, (uint64_t)k);
		}
	}
	for (uint64_t t = 0; t < 500 * MS; t += 12347)
		engine_advance(&f->engine, t);
	engine_advance(&f->engine, 500 * MS);
	engine_advance(&g->engine, 500 * MS);
	assert_int_equal(f->seen.n, 12);
	assert_int_equal(g->seen.n, 12);
	for (int i = 0; i < f->seen.n; i++) {
		assert_int_equal(f->seen.at_ns[i], g->seen.at_ns[i]);
		assert_int_equal(f->seen.cookies[i], g->seen.cookies[i]);
	}
	teardown(&other);
}

static void five_share_as_measured(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *procs[5];
	uint64_t sum = 0;

	for (int i = 0; i < 5; i++) {
		struct engine_stream *s = tenant(f, &procs[i]);

		for (int k = 0; k < 10000; k++)
			noticed_work(&f->engine, s, MS, 1, false, 0);
	}
	engine_advance(&f->engine, 10000 * MS);
	for (int i = 0; i < 5; i++) {
		/* 18.2 to 18.5 % each on the real card (facts/gpu.md) */
		assert_in_range(procs[i]->busy_ns / (10000 * MS / 10000), 1820, 1850);
		sum += procs[i]->busy_ns;
	}
	assert_in_range(sum / (10000 * MS / 10000), 9150, 9180);
	assert_int_equal(sum, f->card->busy_ns);
}

static void another_process_costs_a_switch(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p, *q;
	struct engine_stream *s = tenant(f, &p), *t = tenant(f, &q);
	struct engine *e = &f->engine;
	uint64_t at = 0;

	/* Who ran last goes on at once, after a pause too: 1 ms each 2. */
	for (int i = 0; i < 5; i++, at += 2 * MS) {
		engine_advance(e, at);
		noticed_work(e, s, MS, 1, true, 1);
	}
	engine_advance(e, at);
	assert_int_equal(f->seen.n, 5);
	assert_int_equal(f->seen.at_ns[4], 9 * MS);
	/* By turns, nobody waiting: a switch each, however long the card stood idle. */
	for (int i = 0; i < 6; i++, at += 2 * MS) {
		engine_advance(e, at);
		noticed_work(e, i % 2 ? s : t, MS, 1, true, 2);
		engine_advance(e, at + MS + SWITCH);
		assert_int_equal(f->seen.n, 6 + i);
		assert_int_equal(f->seen.at_ns[5 + i], at + MS + SWITCH);
	}
	/* It is nobody's time. */
	assert_int_equal(p->busy_ns, 8 * MS);
	assert_int_equal(q->busy_ns, 3 * MS);
	assert_int_equal(f->card->busy_ns, 11 * MS);
}

static void a_change_is_paid_once(void **state)
{
	struct fixture *f = *state;
	struct engine_stream *s = tenant(f, NULL), *t = tenant(f, NULL);
	struct engine *e = &f->engine;

	/* Its slice ends: a gap. What waited has no slice to end: a switch back. */
	noticed_work(e, s, 2 * SLICE, 1, true, 1);
	noticed_work(e, t, MS, 1, true, 2);
	engine_advance(e, 20 * MS);
	assert_int_equal(f->seen.at_ns[0], SLICE + GAP + MS);
	assert_int_equal(f->seen.at_ns[1], SLICE + GAP + MS + SWITCH + SLICE);
	/* What comes during a switch waits for its end, and then for the slice's. */
	noticed_work(e, t, 2 * SLICE, 1, true, 3);
	engine_advance(e, 20 * MS + SWITCH / 2);
	noticed_work(e, s, MS, 1, true, 4);
	engine_advance(e, 40 * MS);
	assert_int_equal(f->seen.at_ns[2], 20 * MS + SWITCH + SLICE + GAP + MS);
	assert_int_equal(f->seen.at_ns[3], 20 * MS + SWITCH + SLICE + GAP + MS + SWITCH + SLICE);
}

static void one_stream_is_in_order(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *s = tenant(f, &p);
	struct engine_stream *t = engine_stream_new(p, 1, SIM_STREAM_NONBLOCKING);

	noticed_work(&f->engine, s, 3 * MS, 1, true, 1);
	noticed_work(&f->engine, t, MS, 1, true, 2);
	noticed_work(&f->engine, s, MS, 1, true, 3);
	engine_mark(&f->engine, t, 4);
	engine_advance(&f->engine, 20 * MS);
	/* Streams of one process run at once, each at half the speed: there is one card. */
	assert_int_equal(f->seen.n, 4);
	assert_int_equal(f->seen.cookies[0], 2);
	assert_int_equal(f->seen.cookies[1], 4);
	assert_int_equal(f->seen.cookies[2], 1);
	assert_int_equal(f->seen.cookies[3], 3);
	assert_int_equal(f->seen.at_ns[1], 2 * MS);
	assert_int_equal(f->seen.at_ns[2], 4 * MS);
	assert_int_equal(f->seen.at_ns[3], 5 * MS);
}

static void events_order_streams(void **state)
{
	struct fixture *f = *state;
	struct engine_stream *s = tenant(f, NULL), *t = tenant(f, NULL);
	struct engine_event ev = { 0 };

	noticed_work(&f->engine, s, 2 * MS, 1, false, 0);
	engine_record(&f->engine, s, &ev);
	ev.watched = true;
	engine_await(&f->engine, t, &ev);
	noticed_work(&f->engine, t, MS, 1, true, 9);
	assert_false(engine_event_is_done(&ev));
	assert_int_equal(engine_event_bound(&f->engine, &ev), 2 * MS);
	engine_advance(&f->engine, 2 * MS);
	assert_true(engine_event_is_done(&ev));
	assert_int_equal(ev.completed_at_ns, 2 * MS);
	assert_int_equal(f->seen.events, 1);
	engine_advance(&f->engine, 10 * MS);
	/* Another process, and the first has no work left. */
	assert_int_equal(f->seen.at_ns[0], 3 * MS + SWITCH);
	assert_true(engine_event_drop(&f->engine, &ev));
}

static void waiting_occupies_nothing(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p, *q;
	struct engine_stream *s = tenant(f, &p), *t = tenant(f, &q);

	engine_host(&f->engine, s, ENGINE_HOST, 5);
	noticed_work(&f->engine, s, MS, 1, true, 6);
	noticed_work(&f->engine, t, 10 * MS, 1, true, 7);
	assert_int_equal(f->seen.n, 1); /* reached at once */
	assert_int_equal(engine_next_notice(&f->engine), 10 * MS);
	engine_advance(&f->engine, 10 * MS);
	assert_int_equal(f->seen.cookies[1], 7);
	assert_int_equal(f->seen.at_ns[1], 10 * MS); /* as if alone */
	assert_int_equal(p->busy_ns, 0);
	assert_int_equal(engine_next_notice(&f->engine), ENGINE_NEVER);
	engine_advance(&f->engine, 12 * MS);
	assert_false(engine_release(&f->engine, p, 99));
	assert_true(engine_release(&f->engine, p, 5));
	engine_advance(&f->engine, 20 * MS);
	assert_int_equal(f->seen.at_ns[2], 13 * MS + SWITCH);
}

static void spinning_occupies_but_leaves_room(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p, *q;
	struct engine_stream *s = tenant(f, &p), *t = tenant(f, &q);
	struct engine_stream *s2 = engine_stream_new(p, 1, SIM_STREAM_NONBLOCKING);

	engine_host(&f->engine, s, ENGINE_SPIN, 1);
	noticed_work(&f->engine, s2, MS, 1, true, 2);
	engine_advance(&f->engine, 5 * MS);
	/* Its own process's other stream is not held up. */
	assert_int_equal(f->seen.n, 2);
	assert_int_equal(f->seen.at_ns[1], MS);
	assert_int_equal(p->busy_ns, 5 * MS);
	/* Another process gets its slices, and pays the gaps. */
	noticed_work(&f->engine, t, 3 * MS, 1, true, 3);
	engine_advance(&f->engine, 50 * MS);
	assert_int_equal(f->seen.cookies[2], 3);
	assert_int_equal(f->seen.at_ns[2],
			 5 * MS + SLICE + GAP + SLICE + GAP + SLICE + GAP + (3 * MS - SLICE));
	assert_true(engine_release(&f->engine, p, 1));
	assert_int_equal(p->completed, 2);
	assert_false(p->runnable);
}

static void legacy_stream_waits_for_both_sides(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *free_stream = tenant(f, &p);
	struct engine_stream *blocking = engine_stream_new(p, 1, 0);
	struct engine_stream *legacy = engine_stream_new(p, 1, SIM_STREAM_LEGACY);

	engine_host(&f->engine, blocking, ENGINE_HOST, 1);
	noticed_work(&f->engine, legacy, MS, 1, true, 2);
	noticed_work(&f->engine, blocking, MS, 1, true, 3);
	noticed_work(&f->engine, free_stream, MS, 1, true, 4);
	engine_advance(&f->engine, 5 * MS);
	assert_int_equal(f->seen.n, 2); /* the host op reached, and the free stream's work */
	assert_int_equal(f->seen.cookies[1], 4);
	engine_release(&f->engine, p, 1);
	engine_advance(&f->engine, 20 * MS);
	assert_int_equal(f->seen.cookies[2], 2);
	assert_int_equal(f->seen.at_ns[2], 6 * MS);
	assert_int_equal(f->seen.cookies[3], 3);
	assert_int_equal(f->seen.at_ns[3], 7 * MS);
}

static void the_dead_leave_the_card(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p, *q;
	struct engine_stream *s = tenant(f, &p), *t = tenant(f, &q);
	struct engine_event ev = { 0 };

	noticed_work(&f->engine, s, 1000 * MS, 1, true, 1);
	engine_record(&f->engine, s, &ev);
	engine_await(&f->engine, t, &ev);
	noticed_work(&f->engine, t, MS, 1, true, 2);
	engine_advance(&f->engine, 3 * MS);
	engine_proc_free(&f->engine, p);
	assert_int_equal(f->seen.n, 0); /* no notices of the dead */
	engine_advance(&f->engine, 10 * MS);
	assert_int_equal(f->seen.n, 1);
	assert_int_equal(f->seen.at_ns[0], 4 * MS);
	assert_true(engine_event_drop(&f->engine, &ev));
}

static void a_lost_card_fails_what_waits(void **state)
{
	struct fixture *f = *state;
	struct engine_stream *s = tenant(f, NULL);

	noticed_work(&f->engine, s, 1000 * MS, 1, false, 0);
	engine_mark(&f->engine, s, 1);
	engine_advance(&f->engine, MS);
	engine_card_fail(&f->engine, f->card);
	assert_int_equal(f->seen.n, 1);
	assert_true(f->seen.failed[0]);
	assert_true(engine_stream_is_idle(s));
	noticed_work(&f->engine, s, MS, 1, true, 2);
	engine_advance(&f->engine, 2 * MS);
	assert_int_equal(f->seen.at_ns[1], 2 * MS);
}

static void closed_streams_finish_their_work(void **state)
{
	struct fixture *f = *state;
	struct engine_proc *p;
	struct engine_stream *s = tenant(f, &p);

	noticed_work(&f->engine, s, MS, 1, true, 1);
	engine_stream_close(&f->engine, s);
	engine_advance(&f->engine, 5 * MS);
	assert_int_equal(f->seen.n, 1);
	assert_null(p->streams);
}

static void busy_time_is_metered(void **state)
{
	struct fixture *f = *state;
	struct engine_stream *s = tenant(f, NULL);

	engine_advance(&f->engine, 300 * MS);
	noticed_work(&f->engine, s, 400 * MS, 1, false, 0);
	engine_advance(&f->engine, 60000 * MS);
	assert_int_equal(meter_pct(&f->card->meter, 0), 0);
	assert_int_equal(meter_pct(&f->card->meter, 1), 50);
	assert_int_equal(meter_pct(&f->card->meter, 2), 100);
	assert_int_equal(meter_pct(&f->card->meter, 3), 50);
	assert_int_equal(meter_pct(&f->card->meter, 4), 0);
	/* Long after, the old buckets are forgotten, not mixed up. */
	noticed_work(&f->engine, s, MS, 1, false, 0);
	engine_advance(&f->engine, 61000 * MS);
	assert_int_equal(meter_pct(&f->card->meter, 2), 0);
	assert_int_equal(meter_pct(&f->card->meter, 300), 1);
}

/* Three of one group, of parts that leave room or do not; `n` pieces of 1 ms each. Returns the time of the last end. */
static uint64_t run_group(struct fixture *f, const uint32_t *parts, int count, int n)
{
	struct engine_proc *p[4];

	for (int i = 0; i < count; i++) {
		struct engine_stream *s;

		p[i] = engine_proc_new(&f->engine, f->card, NULL);
		engine_proc_set_group(p[i], 9);
		s = engine_stream_new(p[i], 1, SIM_STREAM_NONBLOCKING);
		for (int k = 0; k < n; k++)
			engine_work_on(&f->engine, s, MS, 1, parts[i]);
	}
	for (uint64_t t = f->engine.now_ns;; t += 10 * US) {
		uint32_t done = 0;

		engine_advance(&f->engine, t);
		for (int i = 0; i < count; i++)
			done += p[i]->completed == (uint64_t)n;
		if (done == (uint32_t)count)
			return t;
		assert_true(t < 1000 * MS);
	}
}

static void a_group_runs_at_once(void **state)
{
	static const uint32_t small[] = { ENGINE_ALL / 4, ENGINE_ALL / 4, ENGINE_ALL / 2 };
	static const uint32_t whole[] = { ENGINE_ALL, ENGINE_ALL, ENGINE_ALL };
	struct fixture *f = *state;
	uint64_t began = f->engine.now_ns;

	assert_in_range(run_group(f, small, 3, 20) - began, 20 * MS, 20 * MS + 10 * US);
	began = f->engine.now_ns;
	/* Contending they take as long as one after the other, but lose nothing in changing. */
	assert_in_range(run_group(f, whole, 3, 20) - began, 60 * MS - 1 * US, 60 * MS + 20 * US);
}

static void a_group_takes_turns_with_others(void **state)
{
	struct fixture *f = *state;
	struct engine *e = &f->engine;
	struct engine_proc *p, *member[2];
	struct engine_stream *s = tenant(f, &p);

	for (int i = 0; i < 2; i++) {
		struct engine_stream *t;

		member[i] = engine_proc_new(e, f->card, NULL);
		engine_proc_set_group(member[i], 5);
		t = engine_stream_new(member[i], 1, SIM_STREAM_NONBLOCKING);
		for (int k = 0; k < 1000; k++)
			engine_work_on(e, t, 100 * US, 1, ENGINE_ALL / 2);
	}
	for (int k = 0; k < 1000; k++)
		noticed_work(e, s, 100 * US, 1, false, 0);
	engine_advance(e, 80 * (SLICE + GAP));
	/* A slice each, and in the group's both run: twice the work. */
	assert_in_range(p->busy_ns, 39 * SLICE, 41 * SLICE);
	assert_in_range(member[0]->busy_ns, 39 * SLICE, 41 * SLICE);
	assert_in_range(member[1]->busy_ns, 39 * SLICE, 41 * SLICE);
	/* One ends: the other goes on in the same slice, and the third has its turns. */
	engine_proc_free(e, member[0]);
	engine_advance(e, 1000 * MS);
	assert_int_equal(member[1]->completed, 1000);
	assert_int_equal(p->completed, 1000);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(alone_nothing_is_lost),
		TEST(late_wakeup_stretches_nothing),
		TEST(steps_make_no_difference),
		TEST(five_share_as_measured),
		TEST(another_process_costs_a_switch),
		TEST(a_change_is_paid_once),
		TEST(one_stream_is_in_order),
		TEST(events_order_streams),
		TEST(waiting_occupies_nothing),
		TEST(spinning_occupies_but_leaves_room),
		TEST(legacy_stream_waits_for_both_sides),
		TEST(the_dead_leave_the_card),
		TEST(a_lost_card_fails_what_waits),
		TEST(closed_streams_finish_their_work),
		TEST(busy_time_is_metered),
		TEST(a_group_runs_at_once),
		TEST(a_group_takes_turns_with_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
