/*
 * Replicas and a server on virtual time. Requests and answers take their time or get lost, watches are late, replicas
 * stand still, die, and come again; each has a clock of its own, which may go a little wrong. At no moment may two act.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "scheduler/cluster/election.h"

#define REPLICAS_MAX 3
#define TICK_NS (20 * NSEC_PER_MSEC)
#define NEVER UINT64_MAX

/* One request that is on its way, or its answer. */
struct flight {
	enum election_step step;
	struct lease lease; /* what is written, then what stands there */
	uint64_t began_ns;  /* by the replica's clock */
	uint64_t arrives_ns, answered_ns;
	bool is_done, is_good, is_conflict; /* at the server */
	bool is_there;
};

struct replica {
	struct election election;
	char identity[16];
	bool is_alive;
	uint64_t still_until_ns;
	int64_t offset_ns; /* of its clock */
	double rate;
	bool has_flight;
	struct flight flight;
	bool has_news; /* what its watch will show, and when */
	struct lease news;
	bool news_is_there;
	uint64_t news_ns;
	uint64_t looks_ns;
	unsigned led; /* times that it began to lead */
	bool was_leader;
};

struct world {
	uint64_t now_ns;
	bool is_there;
	struct lease lease;
	unsigned version;
	size_t replicas;
	struct replica replica[REPLICAS_MAX];
	unsigned loss_pct, latency_ms;
	bool is_away; /* the server answers nobody */
	uint64_t seed;
	uint64_t led_ns; /* how long somebody led */
};

static uint32_t draw(struct world *w, uint32_t below)
{
	w->seed = w->seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
	return below ? (uint32_t)(w->seed >> 33) % below : 0;
}

static uint64_t clock_of(const struct world *w, const struct replica *r)
{
	return (uint64_t)((double)w->now_ns * r->rate + (double)r->offset_ns);
}

static void birth(struct world *w, size_t i)
{
	static unsigned births;
	struct replica *r = &w->replica[i];
	bool is_first = !r->rate;
	struct replica fresh = { .is_alive = true,
				 .offset_ns = (int64_t)draw(w, 1000000) * 1000000,
				 .rate = is_first ? 0.99 + draw(w, 21) / 1000.0 : r->rate };
	*r = fresh;
	snprintf(r->identity, sizeof(r->identity), "r%zu-%u", i, ++births);
	election_init(&r->election, &(struct election_terms){ .identity = r->identity });
}

static struct world *new_world(size_t replicas, uint64_t seed, unsigned latency_ms,
			       unsigned loss_pct)
{
	struct world *w = calloc(1, sizeof(*w));
	assert_non_null(w);
	w->seed = seed;
	w->now_ns = 1000 * NSEC_PER_SEC;
	w->replicas = replicas;
	w->latency_ms = latency_ms;
	w->loss_pct = loss_pct;
	for (size_t i = 0; i < replicas; i++)
		birth(w, i);
	return w;
}

/* ---- the server ---- */

static void publish(struct world *w)
{
	for (size_t i = 0; i < w->replicas; i++) {
		struct replica *r = &w->replica[i];
		if (draw(w, 100) < w->loss_pct)
			continue; /* its watch is broken; another event will come */
		r->has_news = true;
		r->news = w->lease;
		r->news_is_there = w->is_there;
		r->news_ns = w->now_ns + draw(w, w->latency_ms + 1) * NSEC_PER_MSEC;
	}
}

static void serve(struct world *w, struct flight *f)
{
	bool is_create = f->step == ELECTION_CREATE;
	f->is_done = true;
	f->is_good = f->step == ELECTION_READ || (is_create ? !w->is_there : w->is_there);
	if (f->is_good && f->step != ELECTION_READ && !is_create)
		f->is_good = !strcmp(f->lease.version, w->lease.version);
	f->is_conflict = !f->is_good;
	if (f->is_good && f->step != ELECTION_READ) {
		w->lease = f->lease;
		w->is_there = true;
		snprintf(w->lease.version, sizeof(w->lease.version), "%u", ++w->version);
		publish(w);
	}
	f->lease = w->lease;
	f->is_there = w->is_there;
}

/* ---- a replica ---- */

static void begin(struct world *w, struct replica *r, enum election_step step)
{
	struct flight *f = &r->flight;
	uint64_t there_ns = draw(w, w->latency_ms + 1) * NSEC_PER_MSEC;
	uint64_t back_ns = draw(w, w->latency_ms + 1) * NSEC_PER_MSEC;
	*f = (struct flight){ .step = step, .began_ns = clock_of(w, r) };
	if (step != ELECTION_READ)
		election_make_lease(&r->election, step, w->now_ns, &f->lease);
	f->arrives_ns = draw(w, 100) < w->loss_pct ? NEVER : w->now_ns + there_ns;
	f->answered_ns = f->arrives_ns == NEVER || draw(w, 100) < w->loss_pct
				 ? NEVER
				 : f->arrives_ns + back_ns;
	r->has_flight = true;
}

static void land(struct world *w, struct replica *r)
{
	struct flight *f = &r->flight;
	uint64_t now_ns = clock_of(w, r);
	bool is_over = now_ns - f->began_ns > r->election.terms.deadline_ns / 3;
	bool is_answered = f->is_done && w->now_ns >= f->answered_ns;
	if (!is_answered && !is_over)
		return;
	r->has_flight = false;
	if (!is_answered)
		election_write_failed(&r->election, false, now_ns);
	else if (f->step == ELECTION_READ)
		election_observe(&r->election, f->is_there ? &f->lease : NULL, now_ns);
	else if (f->is_good)
		election_write_succeeded(&r->election, f->step, &f->lease, f->began_ns, now_ns);
	else
		election_write_failed(&r->election, f->is_conflict, now_ns);
}

static void live(struct world *w, struct replica *r)
{
	uint64_t when_ns;
	/* What was sent arrives, whatever becomes of the sender. */
	if (r->has_flight && !r->flight.is_done && w->now_ns >= r->flight.arrives_ns && !w->is_away)
		serve(w, &r->flight);
	if (!r->is_alive || w->now_ns < r->still_until_ns)
		return;
	if (r->has_flight)
		land(w, r);
	if (r->has_news && w->now_ns >= r->news_ns && !r->has_flight) {
		r->has_news = false;
		election_observe(&r->election, r->news_is_there ? &r->news : NULL, clock_of(w, r));
	}
	if (r->has_flight)
		return;
	enum election_step step = election_next(&r->election, clock_of(w, r), &when_ns);
	if (step != ELECTION_WAIT && step != ELECTION_OVER)
		begin(w, r, step);
}

/* Who may act now. One that stands still does not act, but would if it went on: it counts. */
static struct replica *leader_of(struct world *w)
{
	struct replica *leader = NULL;
	for (size_t i = 0; i < w->replicas; i++) {
		struct replica *r = &w->replica[i];
		bool is_leader = r->is_alive && election_may_act(&r->election, clock_of(w, r));
		r->led += is_leader && !r->was_leader;
		r->was_leader = is_leader;
		if (is_leader && leader)
			fail_msg("%s and %s lead at %llu ms", leader->identity, r->identity,
				 (unsigned long long)(w->now_ns / NSEC_PER_MSEC));
		leader = is_leader ? r : leader;
	}
	return leader;
}

static struct replica *step_world(struct world *w)
{
	w->now_ns += TICK_NS;
	for (size_t i = 0; i < w->replicas; i++)
		live(w, &w->replica[i]);
	struct replica *leader = leader_of(w);
	w->led_ns += leader ? TICK_NS : 0;
	return leader;
}

/* How long until somebody leads; fails after two minutes. */
static uint64_t wait_for_leader(struct world *w, struct replica **ret)
{
	uint64_t since_ns = w->now_ns;
	while (!(*ret = step_world(w)))
		if (w->now_ns - since_ns > 120 * NSEC_PER_SEC)
			fail_msg("nobody leads for two minutes");
	return w->now_ns - since_ns;
}

static void run(struct world *w, uint64_t for_ns)
{
	for (uint64_t end_ns = w->now_ns + for_ns; w->now_ns < end_ns;)
		step_world(w);
}

/* ---- tests ---- */

static void test_first(void **state)
{
	struct world *w = new_world(2, 1, 20, 0);
	struct replica *leader;
	assert_true(wait_for_leader(w, &leader) < NSEC_PER_SEC);
	assert_int_equal(w->lease.transitions, 0);
	assert_int_equal(w->lease.duration_s, 14);
	run(w, 600 * NSEC_PER_SEC);
	assert_ptr_equal(leader_of(w), leader);
	assert_int_equal(leader->led, 1);
	free(w);
}

static void test_killed(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct world *w = new_world(3, seed, 20, 0);
		struct replica *first, *second;
		wait_for_leader(w, &first);
		run(w, (20000 + draw(w, 5000)) * NSEC_PER_MSEC);
		first->is_alive = false;
		uint64_t took_ns = wait_for_leader(w, &second);
		/* By the slowest clock: 1 % more than the duration; and what a renewal was before. */
		assert_in_range(took_ns / NSEC_PER_MSEC, 11500, 14999);
		assert_ptr_not_equal(first, second);
		assert_int_equal(w->lease.transitions, 1);
		free(w);
	}
}

static void test_released(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct world *w = new_world(2, seed, 50, 0);
		struct replica *first, *second;
		wait_for_leader(w, &first);
		run(w, (3000 + draw(w, 5000)) * NSEC_PER_MSEC);
		election_stop(&first->election);
		assert_false(election_may_act(&first->election, clock_of(w, first)));
		assert_true(wait_for_leader(w, &second) < 500 * NSEC_PER_MSEC);
		assert_ptr_not_equal(first, second);
		run(w, NSEC_PER_SEC);
		uint64_t when_ns;
		assert_int_equal(election_next(&first->election, clock_of(w, first), &when_ns),
				 ELECTION_OVER);
		free(w);
	}
}

/* A server that is away ends the leader before its lease, and nobody follows; then one does. */
static void test_server_away(void **state)
{
	struct world *w = new_world(2, 5, 20, 0);
	struct replica *leader;
	wait_for_leader(w, &leader);
	run(w, 10 * NSEC_PER_SEC);
	w->is_away = true;
	run(w, 9 * NSEC_PER_SEC / 2);
	assert_non_null(leader_of(w));
	run(w, 6 * NSEC_PER_SEC);
	assert_null(leader_of(w));
	w->is_away = false;
	assert_true(wait_for_leader(w, &leader) < 20 * NSEC_PER_SEC);
	free(w);
}

/* It stood still for longer than its lease: when it goes on, it does not lead for one moment. */
static void test_stands_still(void **state)
{
	struct world *w = new_world(2, 7, 20, 0);
	struct replica *first, *second;
	wait_for_leader(w, &first);
	run(w, 10 * NSEC_PER_SEC);
	first->still_until_ns = w->now_ns + 60 * NSEC_PER_SEC;
	run(w, 20 * NSEC_PER_SEC);
	second = leader_of(w);
	assert_non_null(second);
	assert_ptr_not_equal(first, second);
	run(w, 120 * NSEC_PER_SEC);
	assert_ptr_equal(leader_of(w), second);
	free(w);
}

/* Somebody takes the lease away: whoever led makes it anew, and the others leave it the time. */
static void test_lease_deleted(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct world *w = new_world(3, seed, 200, 0);
		struct replica *leader, *next;
		wait_for_leader(w, &leader);
		run(w, (10000 + draw(w, 4000)) * NSEC_PER_MSEC);
		w->is_there = false;
		publish(w);
		run(w, 3 * NSEC_PER_SEC);
		assert_ptr_equal(leader_of(w), leader);
		w->is_there = false;
		leader->is_alive = false;
		publish(w);
		assert_in_range(wait_for_leader(w, &next) / NSEC_PER_SEC, 14, 16);
		free(w);
	}
}

/* What stands there says how long it holds; what says nothing holds for as long as ours. */
static void test_duration_of_others(void **state)
{
	static const struct {
		unsigned said_s, meant_s;
	} row[] = { { 60, 60 }, { 5, 5 }, { 0, 14 } };
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct election e;
		struct lease lease = { .holder = "other",
				       .duration_s = row[i].said_s,
				       .version = "1" };
		uint64_t when_ns = 0;
		election_init(&e, &(struct election_terms){ .identity = "me" });
		assert_int_equal(election_next(&e, 1000, &when_ns), ELECTION_READ);
		election_observe(&e, &lease, 1000);
		assert_int_equal(election_next(&e, 2000, &when_ns), ELECTION_WAIT);
		assert_int_equal(when_ns, 1000 + row[i].meant_s * NSEC_PER_SEC);
		/* Seen again it is no younger. */
		election_observe(&e, &lease, 5000);
		assert_int_equal(election_next(&e, when_ns - 1, &when_ns), ELECTION_WAIT);
		assert_int_equal(election_next(&e, when_ns, &when_ns), ELECTION_TAKE);
		/* Renewed it is. */
		strcpy(lease.renewed, "2026-08-21T10:00:00.000000Z");
		election_observe(&e, &lease, when_ns);
		assert_int_equal(election_next(&e, when_ns, &when_ns), ELECTION_WAIT);
	}
}

/* Random faults, for hours: two never lead, and mostly one does. */
static void test_random(void **state)
{
	for (uint64_t seed = 1; seed <= 120; seed++) {
		struct world *w = new_world(2 + seed % 2, seed, seed % 5 ? 100 : 2000, seed % 7 * 5);
		uint64_t began_ns = w->now_ns;
		while (w->now_ns - began_ns < 1200 * NSEC_PER_SEC) {
			struct replica *r = &w->replica[draw(w, (uint32_t)w->replicas)];
			switch (draw(w, 8)) {
			case 0: r->is_alive = false; break;
			case 1:
				r->still_until_ns = w->now_ns + draw(w, 30000) * NSEC_PER_MSEC;
				break;
			case 2: w->is_away = true; break;
			case 3: w->is_away = false; break;
			case 4:
				if (!r->is_alive)
					birth(w, (size_t)(r - w->replica));
				break;
			case 5: election_stop(&r->election); break;
			default: break;
			}
			run(w, draw(w, 20000) * NSEC_PER_MSEC);
		}
		/* In the end all are well, and one leads. */
		w->is_away = false;
		w->loss_pct = 0;
		w->latency_ms = 50;
		for (size_t i = 0; i < w->replicas; i++)
			birth(w, i);
		struct replica *leader;
		assert_true(wait_for_leader(w, &leader) < 40 * NSEC_PER_SEC);
		run(w, 60 * NSEC_PER_SEC);
		assert_ptr_equal(leader_of(w), leader);
		free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_released),
		cmocka_unit_test(test_server_away),
		cmocka_unit_test(test_stands_still),
		cmocka_unit_test(test_lease_deleted),
		cmocka_unit_test(test_duration_of_others),
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests_name("scheduler/election", tests, NULL, NULL);
}
