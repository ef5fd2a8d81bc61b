/* Leases over real regions and threads: words, wakes, shares; and the observer's distrust. */
#include "../fixture.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/arbitrate/arbitration.h"
#include "daemon/arbitrate/arbitration_inside.h"
#include "daemon/arbitrate/observe.h"
#include "daemon/util/procfs.h"

static struct tenant *make_tenant(struct fixture *f, const char *name, const char *terms)
{
	char line[256];
	snprintf(line, sizeof(line),
		 "{\"version\":1,\"op\":\"create\",\"name\":\"%s\",\"devices\":[{\"index\":0%s}]}",
		 name, terms);
	json_decref(fixture_ok(f, line));
	return node_find_tenant(f->node, name);
}

static enum lease_state state_of(struct tenant *t)
{
	return lease_state_of(t->region.control->device[0].lease);
}

/* A process in this process: the tenant's slot is played by the test. */
static struct region_slot_device *join(struct fixture *f, struct tenant *t, struct client *c)
{
	client_register(f, client_connect(t), 0, c);
	assert_int_equal(c->reply.status, 0);
	return &c->report->slot[c->reply.slot].device[0];
}

static void test_two_take_turns(void **state)
{
	struct fixture *f = *state;
	struct tenant *a = make_tenant(f, "a", ""), *b = make_tenant(f, "b", "");
	struct client ca, cb;
	struct region_slot_device *da = join(f, a, &ca), *db = join(f, b, &cb);
	unsigned together = 0, turns = 0, looks = 0;
	enum lease_state before = LEASE_STOP;
	fixture_until(f, state_of(a) == LEASE_FREE && state_of(b) == LEASE_FREE);
	uint64_t end_ns = clock_now_ns() + NSEC_PER_SEC;
	while (clock_now_ns() < end_ns) {
		enum lease_state sa = state_of(a), sb = state_of(b);
		/* Each works while it may, and waits while it may not. */
		da->busy = sa == LEASE_GO || sa == LEASE_FREE;
		da->waiting = !da->busy;
		db->busy = sb == LEASE_GO || sb == LEASE_FREE;
		db->waiting = !db->busy;
		looks++;
		together += sa == LEASE_GO && sb == LEASE_GO;
		turns += sa == LEASE_GO && before != LEASE_GO;
		before = sa;
		usleep(100);
	}
	assert_int_equal(together, 0);
	assert_true(looks > 100 && turns >= 5);
	struct lessee_figures fa = lessee_figures(a->device[0].lessee);
	struct lessee_figures fb = lessee_figures(b->device[0].lessee);
	assert_true(fa.got_1s_pct > 25 && fb.got_1s_pct > 25);
	/* Each wanted all of the time: what it did not get it waited for. */
	assert_true(fa.wanted_60s_pct > 70 && fb.wanted_60s_pct > 70);
	assert_true(fa.got_1s_pct + fb.got_1s_pct < 130);
	assert_true(arbitration_figures(f->node->card[0].arbitration).busy_pct > 60);
	client_close(&ca);
	client_close(&cb);
}

static void ring(struct client *c)
{
	_Atomic uint32_t *bell = &c->report->bell[0].ring_count;
	atomic_fetch_add(bell, 1);
	syscall(SYS_futex, bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Works while it may, waits while it may not; rings, if it does, as the library would. */
static void play(struct tenant *t, struct client *c, struct region_slot_device *d, bool rings)
{
	enum lease_state state = state_of(t);
	bool was_busy = d->busy;
	d->busy = state == LEASE_GO || state == LEASE_FREE;
	d->waiting = !d->busy;
	if (rings && was_busy != d->busy)
		ring(c);
}

/*
 * Beside a tenant that rings, one that rang once and never again (for example with another library) gets its turns and ends
 * them as usual. Neither has little of the GPU because of it. (The bound is low because of machines with other work, where it
 * was 23 of 50 %; a tenant that is not polled would have nearly nothing.)
 */
static void test_a_silent_tenant_is_polled(void **state)
{
	struct fixture *f = *state;
	struct tenant *a = make_tenant(f, "a", ""), *b = make_tenant(f, "b", "");
	struct client ca, cb;
	struct region_slot_device *da = join(f, a, &ca), *db = join(f, b, &cb);
	ring(&ca);
	ring(&cb);
	uint64_t end_ns = clock_now_ns() + 2 * NSEC_PER_SEC;
	while (clock_now_ns() < end_ns) {
		play(a, &ca, da, true);
		play(b, &cb, db, false);
		usleep(100);
	}
	struct lessee_figures fa = lessee_figures(a->device[0].lessee);
	struct lessee_figures fb = lessee_figures(b->device[0].lessee);
	if (fa.got_1s_pct < 15 || fb.got_1s_pct < 15)
		fail_msg("rings: %.1f %%, never rings: %.1f %%", fa.got_1s_pct, fb.got_1s_pct);
	assert_true(fa.account.leases > 10 && fb.account.leases > 10);
	client_close(&ca);
	client_close(&cb);
}

/* Works while its lease is GO and the turn is everyone's or its own; waits while it is not. */
static void play_process(struct tenant *t, unsigned slot)
{
	struct region_slot_device *d = &t->region.report->slot[slot].device[0];
	uint32_t turn = t->region.control->device[0].turn;
	enum lease_state state = state_of(t);

	d->busy = state == LEASE_FREE || (state == LEASE_GO && (!turn || turn == slot + 1));
	d->waiting = !d->busy;
	d->launches += d->busy;
}

/* Of a tenant's two processes one works at a time within its leases, by turns; without turns both do. */
static void play_turns(struct fixture *f, bool has_turns)
{
	struct tenant *a = make_tenant(f, "a", ""), *b = make_tenant(f, "b", "");
	struct region_slot_device *d[2];
	unsigned both = 0, each[2] = { 0 }, second;
	struct client first, other;

	join(f, a, &first);
	join(f, b, &other);
	/* This process has a slot already: the daemon itself is to register another process. */
	second = first.reply.slot + 1;
	assert_int_equal(lessee_add_process(a->device[0].lessee, second, getpid()), 0);
	d[0] = &a->region.report->slot[first.reply.slot].device[0];
	d[1] = &a->region.report->slot[second].device[0];
	arbitration_set_turns(f->node->card[0].arbitration, has_turns);
	uint64_t end_ns = clock_now_ns() + NSEC_PER_SEC;
	while (clock_now_ns() < end_ns) {
		play_process(a, first.reply.slot);
		play_process(a, second);
		play_process(b, other.reply.slot);
		both += state_of(a) == LEASE_GO && d[0]->busy && d[1]->busy;
		each[0] += state_of(a) == LEASE_GO && d[0]->busy && !d[1]->busy;
		each[1] += state_of(a) == LEASE_GO && !d[0]->busy && d[1]->busy;
		usleep(100);
	}
	struct lessee_figures figures = lessee_figures(a->device[0].lessee);
	print_message("looks that saw both work: %u, one: %u and %u; %u turns, given up %u times, %u "
		      "leases\n",
		      both, each[0], each[1], (unsigned)figures.turns,
		      (unsigned)figures.turns_given_up, (unsigned)figures.account.leases);
	assert_true(figures.account.leases >= 3);
	if (has_turns) {
		assert_true(figures.turns >= 3 && each[0] && each[1]);
		assert_true(figures.turns_given_up || both < each[0] + each[1]);
	} else {
		assert_int_equal(figures.turns, 0);
		assert_true(both > each[0] + each[1]);
	}
	lessee_remove_process(a->device[0].lessee, second);
	client_close(&first);
	client_close(&other);
}

static void test_processes_take_turns(void **state)
{
	play_turns(*state, true);
}

static void test_without_turns_processes_work_at_once(void **state)
{
	play_turns(*state, false);
}

/* If each ring caused a poll, this much ringing would cost a lot; it costs no more than polling. */
static void test_flood_of_rings(void **state)
{
	struct fixture *f = *state;
	struct tenant *a = make_tenant(f, "a", "");
	struct client c;
	join(f, a, &c);
	uint64_t before_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t own_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t end_ns = clock_now_ns() + NSEC_PER_SEC;
	while (clock_now_ns() < end_ns)
		ring(&c);
	own_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - own_ns;
	uint64_t used_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns - own_ns;
	if (used_ns > NSEC_PER_SEC / 10)
		fail_msg("a flood took %.1f %% of a core", (double)used_ns / 1e7);
	client_close(&c);
}

static _Atomic bool woken;

static void *sleep_on_lease(void *data)
{
	const struct region_control *control = data;
	uint32_t word = control->device[0].lease;
	while (lease_state_of(word) == LEASE_STOP) {
		syscall(SYS_futex, &control->device[0].lease, FUTEX_WAIT, word, NULL, NULL, 0);
		word = control->device[0].lease;
	}
	woken = true;
	return NULL;
}

static void test_waiters_are_woken(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f, "a", "");
	struct client c;
	pthread_t thread;
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\"}"));
	join(f, t, &c);
	fixture_until(f, state_of(t) == LEASE_STOP);
	uint32_t before = t->region.control->device[0].lease;
	/* On the read-only map, as the library does it. */
	pthread_create(&thread, NULL, sleep_on_lease, (void *)(uintptr_t)c.control);
	fixture_turn(f, 50);
	assert_false(woken);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"resume\",\"name\":\"a\"}"));
	fixture_until(f, woken);
	pthread_join(thread, NULL);
	assert_true((t->region.control->device[0].lease & ~LEASE_STATE_MASK) !=
		    (before & ~LEASE_STATE_MASK));
	client_close(&c);
}

static double thread_seconds(void)
{
	return (double)clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

/* Of a core, in the cheapest of up to five half seconds: on a busy machine wake-ups cost more. */
static double least_cost(double enough)
{
	double least = 1;
	for (int i = 0; i < 5 && least > enough; i++) {
		double begun = thread_seconds();
		usleep(500000);
		double cost = (thread_seconds() - begun) / 0.5;
		least = cost < least ? cost : least;
	}
	return least;
}

static void test_idle_costs_little(void **state)
{
	struct fixture *f = *state;
	struct client c;
	double none = least_cost(0.01); /* the loop is not turned */
	struct tenant *t = make_tenant(f, "a", "");
	join(f, t, &c);
	double idle = least_cost(0.02);
	if (none > 0.01 || idle > 0.02)
		fail_msg("no tenant: %.2f %%, idle tenant: %.2f %% of a core", none * 100,
			 idle * 100);
	client_close(&c);
}

static void test_a_sensor_that_misses_one(void **state)
{
	unsigned unlisted = 0;

	for (unsigned i = 1; i < ARBITRATION_UNLISTED; i++) {
		assert_false(arbitration_is_unlisted(&unlisted, true, false));
		/* Its idle time alone is no news from the sensor. */
		assert_false(arbitration_is_unlisted(&unlisted, false, false));
	}
	assert_true(arbitration_is_unlisted(&unlisted, true, false));
	assert_true(arbitration_is_unlisted(&unlisted, false, false));
	assert_false(arbitration_is_unlisted(&unlisted, true, true));
	assert_false(arbitration_is_unlisted(&unlisted, true, false));
}

static struct region_report report; /* large */

static void test_observer_distrusts(void **state)
{
	struct observer o = { .report = &report };
	struct region_slot_device *d = &report.slot[5].device[0];
	memset(&report, 0, sizeof(report));
	assert_int_equal(observer_add(&o, 5, getpid(), 1000), 0);
	d->busy_ns = UINT64_MAX;
	d->inflight_ns = UINT64_MAX;
	d->launches = 10;
	struct arbiter_observation seen = observer_read(&o, 2000, false);
	assert_int_equal(seen.busy_ns, 1000); /* no more than it exists */
	assert_true(seen.inflight_ns <= UINT64_C(3600000000000));
	assert_int_equal(seen.launches, 10);
	d->busy_ns = 5; /* backwards */
	d->launches = 3;
	seen = observer_read(&o, 3000, false);
	assert_int_equal(seen.busy_ns, 1000);
	assert_int_equal(seen.launches, 10);
	d->busy_ns = 505;
	d->launches = 4;
	seen = observer_read(&o, 4000, false);
	assert_int_equal(seen.busy_ns, 1500);
	assert_int_equal(seen.launches, 11);
	observer_remove(&o, 5);
	seen = observer_read(&o, 5000, false);
	assert_int_equal(seen.busy_ns, 1500); /* outlives the process */
	observer_free(&o);
}

/* One thread that goes from card to card is held at the gate of one, and waits for all. */
static void test_observer_of_several_cards(void **state)
{
	struct observer o = { .report = &report, .device = 1 };
	struct region_slot_device *d = &report.slot[3].device[1], *other = &report.slot[3].device[0];
	memset(&report, 0, sizeof(report));
	assert_int_equal(observer_add(&o, 3, getpid(), 0), 0);
	d->launches = 5;
	other->waiting = 1;
	/* Each card has its own turns: leases on other cards do not count. */
	assert_false(observer_read(&o, 1000, false).waiting);
	o.in_gang = true;
	assert_true(observer_read(&o, 2000, false).waiting);
	assert_true(observer_read(&o, 3000, false).waiting);
	other->waiting = 0;
	assert_false(observer_read(&o, 4000, false).waiting);
	/* It was let through, and has launched nothing here meanwhile. */
	other->waiting = 1;
	assert_false(observer_read(&o, 5000, false).waiting);
	d->launches = 6; /* another thread of it: of no matter until it is held anew */
	assert_false(observer_read(&o, 6000, false).waiting);
	other->waiting = 0;
	assert_false(observer_read(&o, 7000, false).waiting);
	other->waiting = 1;
	assert_true(observer_read(&o, 8000, false).waiting);
	/* Its own wait counts in any case, another process's not at all. */
	other->waiting = 0;
	d->waiting = 1;
	assert_true(observer_read(&o, 9000, false).waiting);
	d->waiting = 0;
	report.slot[4].device[0].waiting = 1;
	assert_false(observer_read(&o, 10000, false).waiting);
	observer_free(&o);
}

static void test_observer_migrated(void **state)
{
	struct observer o = { .report = &report };
	struct region_slot_device *d = &report.slot[0].device[0];
	memset(&report, 0, sizeof(report));
	assert_int_equal(observer_add(&o, 0, getpid(), 0), 0);
	observer_read(&o, 1000, false);
	d->busy_ns = 1000000;
	d->launches = 500;
	report.slot[0].migrated = 1;
	struct arbiter_observation seen = observer_read(&o, 2000000, false);
	assert_int_equal(seen.busy_ns, 0);
	assert_int_equal(seen.launches, 0);
	d->busy_ns = 1000700;
	seen = observer_read(&o, 3000000, false);
	assert_int_equal(seen.busy_ns, 700);
	observer_free(&o);
}

static void test_stopped(void **state)
{
	struct observer o = { .report = &report };
	memset(&report, 0, sizeof(report));
	int pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	assert_int_equal(observer_add(&o, 0, pid, 0), 0);
	report.slot[0].device[0].busy = 1;
	uint64_t ms = NSEC_PER_MSEC;
	assert_false(observer_read(&o, 1 * ms, true).stopped);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	assert_true(procfs_is_stopped(pid));
	assert_false(observer_read(&o, 10 * ms, true).stopped); /* too early to poll */
	assert_true(observer_read(&o, 40 * ms, true).stopped);
	assert_true(observer_read(&o, 50 * ms, false).stopped);
	kill(pid, SIGCONT);
	usleep(10000);
	assert_false(observer_read(&o, 80 * ms, false).stopped);
	assert_false(procfs_is_stopped(pid));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_false(procfs_is_stopped(pid));
	uint64_t start;
	assert_true(procfs_start_time(pid, &start) < 0);
	assert_int_equal(procfs_start_time(getpid(), &start), 0);
	observer_free(&o);
}

#define test(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_two_take_turns),
		test(test_a_silent_tenant_is_polled),
		test(test_processes_take_turns),
		test(test_without_turns_processes_work_at_once),
		test(test_flood_of_rings),
		test(test_waiters_are_woken),
		test(test_idle_costs_little),
		cmocka_unit_test(test_a_sensor_that_misses_one),
		cmocka_unit_test(test_observer_distrusts),
		cmocka_unit_test(test_observer_of_several_cards),
		cmocka_unit_test(test_observer_migrated),
		cmocka_unit_test(test_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
