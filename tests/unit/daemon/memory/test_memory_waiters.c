/* Waiting for memory, in the daemon: which request is granted, and when. The test writes the processes' requests. */
#include "../fixture.h"

#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/gpu/census.h"
#include "daemon/state/use.h"

static struct tenant *make(struct fixture *f, const char *name, unsigned gib, const char *more)
{
	char line[512];

	snprintf(line, sizeof(line),
		 "{\"version\":1,\"op\":\"create\",\"name\":\"%s\",\"on_full\":\"wait\",\"devices\":"
		 "[{\"index\":0,\"memory_bytes\":%llu%s}]}",
		 name, (unsigned long long)(gib * GIB), more);
	json_decref(fixture_ok(f, line));
	return node_find_tenant(f->node, name);
}

/* As the library does. */
static void ask(struct tenant *t, uint64_t bytes)
{
	struct region_want *w = &t->region.report->want[0][0];
	_Atomic uint32_t *ring_count = &t->region.report->bell[0].ring_count;

	atomic_store(&w->bytes, bytes);
	atomic_fetch_add(&w->ask, 1);
	atomic_fetch_add(ring_count, 1);
	syscall(SYS_futex, ring_count, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static bool is_answered(const struct tenant *t)
{
	const struct region_want *w = &t->region.report->want[0][0];

	return atomic_load(&w->ask) == atomic_load(&w->answered);
}

static uint64_t granted(const struct tenant *t)
{
	return atomic_load(&t->region.control->device[0].memory_granted_bytes);
}

static void hold(struct tenant *t, uint64_t bytes)
{
	atomic_store(&t->region.report->slot[0].device[0].used_bytes, bytes);
}

/* A tenant with a process that has requested its first bytes. */
static int ask_first(struct fixture *f, struct tenant *t)
{
	int pid = client_spawn(f, t, 0, NULL);

	ask(t, 100 * MIB);
	return pid;
}

static void test_what_is_declared_is_granted(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make(f, "a", 5, "");
	assert_int_equal(t->region.control->memory_waits, 1);
	assert_int_equal(granted(t), 0);
	int pid = ask_first(f, t);
	fixture_until(f, granted(t) == 5 * GIB);
	assert_true(is_answered(t));
	assert_int_equal(t->region.control->device[0].memory_grant_change, 1);
	/* It ends with its last process, when that held nothing that drains. */
	client_kill(pid);
	fixture_until(f, granted(t) == 0);
	assert_int_equal(t->memory_wait.state, MEMORY_WAIT_NONE);
}

static void test_the_next_waits_until_it_fits(void **state)
{
	struct fixture *f = *state;
	struct tenant *a = make(f, "a", 5, ""), *b = make(f, "b", 5, ""), *c = make(f, "c", 3, "");
	int a_pid = ask_first(f, a);
	fixture_until(f, granted(a) == 5 * GIB);
	int b_pid = ask_first(f, b);
	fixture_until(f, b->memory_wait.state == MEMORY_WAIT_QUEUED);
	/* A small one passes. */
	int c_pid = ask_first(f, c);
	fixture_until(f, granted(c) == 3 * GIB);
	assert_int_equal(b->memory_wait.passes, 1);
	json_t *list = fixture_ok(f, "{\"version\":1,\"op\":\"list\"}");
	json_t *tenant = json_array_get(json_object_get(list, "tenants"), 1);
	assert_string_equal(json_string_value(json_object_get(tenant, "state")), "queued");
	json_t *wait = json_object_get(tenant, "memory_wait");
	assert_int_equal(json_integer_value(json_object_get(wait, "place")), 1);
	assert_int_equal(json_integer_value(json_object_get(wait, "passed")), 1);
	json_decref(list);
	client_kill(a_pid);
	fixture_until(f, granted(b) == 5 * GIB);
	client_kill(b_pid);
	client_kill(c_pid);
}

/* Memory of the dead counts until NVML confirms. */
static void test_what_drains_is_not_granted(void **state)
{
	struct fixture *f = *state;
	struct tenant *a = make(f, "a", 5, ""), *b = make(f, "b", 5, "");
	int a_pid = ask_first(f, a);
	fixture_until(f, granted(a) == 5 * GIB);
	hold(a, 4 * GIB);
	fake_gpu.used_bytes = fake_gpu.pid_bytes = 4 * GIB;
	fake_gpu.pid = a_pid;
	int b_pid = ask_first(f, b);
	fixture_until(f, f->node->card[0].memory_used_bytes == 4 * GIB);
	client_kill(a_pid);
	fixture_turn(f, 200);
	assert_int_equal(granted(a), 0);
	assert_int_equal(granted(b), 0);
	fake_gpu.pid = 0;
	fake_gpu.used_bytes = fake_gpu.pid_bytes = 0;
	fixture_until(f, granted(b) == 5 * GIB);
	client_kill(b_pid);
}

static void test_what_strangers_hold_is_not_granted(void **state)
{
	struct fixture *f = *state;
	fake_gpu.pid = 1;
	fake_gpu.used_bytes = fake_gpu.pid_bytes = 4 * GIB;
	struct tenant *t = make(f, "a", 5, "");
	int pid = ask_first(f, t);
	fixture_until(f, t->memory_wait.state == MEMORY_WAIT_QUEUED);
	fixture_turn(f, 100);
	assert_int_equal(granted(t), 0);
	assert_int_equal(f->node->card[0].foreign_bytes, 4 * GIB);
	fake_gpu.pid = 0;
	fake_gpu.used_bytes = fake_gpu.pid_bytes = 0;
	fixture_until(f, granted(t) == 5 * GIB);
	client_kill(pid);
}

static void hold_some(struct client *c)
{
	c->report->slot[c->reply.slot].device[0].used_bytes = 2 * GIB;
}

/* NVML's pids may be of another namespace, or the list lacks some: then the figure counts, less the ledgers. */
static void test_a_list_of_other_pids_is_not_taken_for_strangers(void **state)
{
	struct fixture *f = *state;
	struct card *card = &f->node->card[0];
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\",\"devices\":"
				  "[{\"index\":0,\"memory_bytes\":3221225472}]}"));
	int pid = client_spawn(f, node_find_tenant(f->node, "a"), 0, hold_some);
	fake_gpu.pid = 1; /* it is known by another pid there */
	fake_gpu.pid_bytes = 2 * GIB;
	fake_gpu.used_bytes = 3 * GIB;
	fixture_until(f, card->memory_used_bytes == 3 * GIB && card->foreign_bytes == GIB);
	fixture_turn(f, 150);
	assert_int_equal(card->foreign_bytes, GIB);
	fake_gpu.pid = pid;
	fixture_until(f, card->foreign_bytes == 0);
	client_kill(pid);
}

static void test_promises_and_grants_know_of_each_other(void **state)
{
	struct fixture *f = *state;
	struct tenant *rest, *t = make(f, "a", 5, "");
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"rest\",\"devices\":"
				  "[{\"index\":0}]}"));
	rest = node_find_tenant(f->node, "rest");
	assert_int_equal(rest->terms.device[0].promise.quota_bytes, 8 * GIB);
	int pid = ask_first(f, t);
	fixture_until(f, granted(t) == 5 * GIB);
	assert_int_equal(rest->terms.device[0].promise.quota_bytes, 3 * GIB);
	fixture_refused(f,
			"{\"version\":1,\"op\":\"create\",\"name\":\"b\",\"devices\":"
			"[{\"index\":0,\"memory_bytes\":4294967296}]}",
			ENOSPC, "5 GiB are granted to tenants with on_full");
	/* A promise is not granted to others. */
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"b\",\"devices\":"
				  "[{\"index\":0,\"memory_bytes\":3221225472}]}"));
	client_kill(pid);
	fixture_until(f, granted(t) == 0);
	struct tenant *c = make(f, "c", 6, "");
	pid = ask_first(f, c);
	fixture_until(f, c->memory_wait.state == MEMORY_WAIT_QUEUED);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"b\"}"));
	fixture_until(f, granted(c) == 6 * GIB);
	client_kill(pid);
}

/* For a request that has waited long enough, bytes are reserved from grants and from promises, but not for ever. */
static void test_what_is_kept_is_not_promised(void **state)
{
	struct fixture *f = *state;
	struct card *card = &f->node->card[0];
	f->node->config.wait_patience_ns = 50 * NSEC_PER_MSEC;
	struct tenant *a = make(f, "a", 5, ""), *b = make(f, "b", 6, ""), *c = make(f, "c", 1, "");
	int a_pid = ask_first(f, a);
	fixture_until(f, granted(a) == 5 * GIB);
	int b_pid = ask_first(f, b);
	fixture_until(f, b->memory_wait.state == MEMORY_WAIT_QUEUED);
	fixture_turn(f, 60);
	int c_pid = ask_first(f, c);
	fixture_until(f, c->memory_wait.state == MEMORY_WAIT_QUEUED);
	assert_int_equal(card->kept_bytes, 3 * GIB);
	fixture_refused(f,
			"{\"version\":1,\"op\":\"create\",\"name\":\"d\",\"devices\":"
			"[{\"index\":0,\"memory_bytes\":1073741824}]}",
			ENOSPC, "at most 0");
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"c\"}"));
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"b\"}"));
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a\"}"));
	fixture_until(f, card->kept_bytes == 0);
	client_kill(a_pid);
	client_kill(b_pid);
	client_kill(c_pid);
}

static void test_growth_is_answered_at_once(void **state)
{
	struct fixture *f = *state;
	struct tenant *a = make(f, "a", 6, ",\"reserve_bytes\":1073741824"),
		      *b = make(f, "b", 4, "");
	int a_pid = ask_first(f, a);
	fixture_until(f, granted(a) == GIB);
	hold(a, GIB);
	ask(a, GIB);
	fixture_until(f, is_answered(a));
	assert_int_equal(granted(a), 2 * GIB);
	int b_pid = ask_first(f, b);
	fixture_until(f, granted(b) == 4 * GIB);
	hold(a, 2 * GIB);
	ask(a, 3 * GIB);
	fixture_until(f, is_answered(a));
	assert_int_equal(granted(a), 2 * GIB);
	ask(a, GIB);
	fixture_until(f, is_answered(a));
	assert_true(granted(a) >= 3 * GIB && granted(a) <= 4 * GIB);
	client_kill(a_pid);
	client_kill(b_pid);
}

static void test_an_ask_that_is_taken_back(void **state)
{
	struct fixture *f = *state;
	struct tenant *a = make(f, "a", 8, ""), *b = make(f, "b", 8, "");
	int a_pid = ask_first(f, a);
	fixture_until(f, granted(a) == 8 * GIB);
	int b_pid = ask_first(f, b);
	fixture_until(f, b->memory_wait.state == MEMORY_WAIT_QUEUED);
	ask(b, 0);
	fixture_until(f, b->memory_wait.state == MEMORY_WAIT_NONE);
	/* And a request that an outside caller refuses. */
	ask(b, GIB);
	fixture_until(f, b->memory_wait.state == MEMORY_WAIT_QUEUED);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"unqueue\",\"name\":\"b\"}"));
	assert_true(is_answered(b));
	assert_int_equal(granted(b), 0);
	client_kill(a_pid);
	client_kill(b_pid);
}

static void test_a_restart_keeps_grants(void **state)
{
	struct fixture *f = *state;
	struct tenant *a = make(f, "a", 5, "");
	int pid = ask_first(f, a);
	fixture_until(f, granted(a) == 5 * GIB);
	use_restore(a, 3e9);
	fixture_stop(f);
	fixture_start(f);
	a = node_find_tenant(f->node, "a");
	assert_non_null(a);
	assert_int_equal(granted(a), 5 * GIB);
	assert_int_equal(a->memory_wait.state, MEMORY_WAIT_HOLDING);
	assert_true(fabs(use_ns(a, clock_now_ns()) - 3e9) < 1e8);
	/* As long as a process of it may come back. */
	struct tenant *b = make(f, "b", 5, "");
	fixture_turn(f, 20);
	assert_int_equal(granted(a), 5 * GIB);
	client_kill(pid);
	fixture_until(f, granted(a) == 0);
	pid = ask_first(f, b);
	fixture_until(f, granted(b) == 5 * GIB);
	client_kill(pid);
}

static void ask_and_stay(struct client *c)
{
	struct region_want *w = &c->report->want[c->reply.slot][0];
	atomic_store(&w->bytes, 100 * MIB);
	atomic_fetch_add(&w->ask, 1);
	atomic_fetch_add(&c->report->bell[0].ring_count, 1);
	syscall(SYS_futex, &c->report->bell[0].ring_count, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* After a restart the order is by waiting time, whichever request is repeated first. */
static void test_a_restart_keeps_the_order_of_waiting(void **state)
{
	struct fixture *f = *state;
	struct tenant *a = make(f, "a", 8, ""), *b = make(f, "b", 5, ""), *c = make(f, "c", 5, "");
	int a_pid = client_spawn(f, a, 0, ask_and_stay);
	fixture_until(f, granted(a) == 8 * GIB);
	int b_pid = client_spawn(f, b, 0, ask_and_stay);
	fixture_until(f, b->memory_wait.state == MEMORY_WAIT_QUEUED);
	int c_pid = client_spawn(f, c, 0, ask_and_stay);
	fixture_until(f, c->memory_wait.state == MEMORY_WAIT_QUEUED);
	uint64_t epoch = f->node->epoch;
	fixture_turn(f, 50); /* the state files */
	fixture_stop(f);
	fixture_start(f);
	a = node_find_tenant(f->node, "a");
	b = node_find_tenant(f->node, "b");
	c = node_find_tenant(f->node, "c");
	client_kill(a_pid);
	/* The two come back, as other processes here, and the later one asks first. */
	int c_again = client_spawn(f, c, epoch, ask_and_stay);
	int b_again = client_spawn(f, b, epoch, ask_and_stay);
	client_kill(b_pid);
	client_kill(c_pid);
	fixture_until(f, granted(b) == 5 * GIB);
	assert_int_equal(c->memory_wait.state, MEMORY_WAIT_QUEUED);
	assert_int_equal(c->memory_wait.arrival, 3);
	client_kill(b_again);
	fixture_until(f, granted(c) == 5 * GIB);
	client_kill(c_again);
}

static void test_use_is_remembered_by_name(void **state)
{
	struct fixture *f = *state;
	struct tenant *a = make(f, "a", 5, "");
	use_restore(a, 2e9);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a\"}"));
	struct tenant *b = make(f, "b", 5, "");
	assert_true(use_ns(b, clock_now_ns()) < 1e-9);
	a = make(f, "a", 5, "");
	assert_true(fabs(use_ns(a, clock_now_ns()) - 2e9) < 1e8);
}

static void test_nonsense_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make(f, "a", 5, ",\"reserve_bytes\":1073741824");
	int pid = client_spawn(f, t, 0, NULL);
	ask(t, UINT64_MAX);
	fixture_until(f, is_answered(t));
	assert_int_equal(granted(t), 5 * GIB);
	client_kill(pid);
}

static void test_refusals(void **state)
{
	struct fixture *f = *state;
#define CREATE(more) "{\"version\":1,\"op\":\"create\",\"name\":\"a\"," more "}"
#define WAIT "\"on_full\":\"wait\","
	static const struct {
		const char *line;
		int code;
		const char *word;
	} rows[] = {
		{ CREATE("\"on_full\":\"wait\""), EINVAL, "memory_bytes (--memory): missing" },
		{ CREATE(WAIT "\"devices\":[{\"memory_bytes\":9663676416}]"), ENOSPC,
		  "more than the GPU has" },
		{ CREATE(WAIT "\"devices\":[{\"memory_bytes\":4096,\"reserve_bytes\":4097}]"),
		  EINVAL, "reserve_bytes (--reserve) 4097" },
		{ CREATE(WAIT "\"devices\":[{\"memory_bytes\":4096,\"reserve_bytes\":0}]"), EINVAL,
		  "reserve_bytes (--reserve) 0" },
		{ CREATE("\"devices\":[{\"memory_bytes\":4096,\"reserve_bytes\":4096}]"), EINVAL,
		  "only with on_full 'wait'" },
		{ CREATE("\"wait_timeout_s\":1"), EINVAL, "wait_timeout_s: possible only with" },
		{ CREATE(WAIT "\"devices\":[{\"memory_bytes\":4096}],\"wait_timeout_s\":-1"),
		  EINVAL, "wait_timeout_s: -1" },
		{ CREATE(WAIT "\"devices\":[{\"memory_bytes\":4096}],\"wait_timeout_s\":\"x\""),
		  EINVAL, "wait_timeout_s" },
		{ "{\"version\":1,\"op\":\"unqueue\",\"name\":\"nobody\"}", ENOENT, "nobody" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		fixture_refused(f, rows[i].line, rows[i].code, rows[i].word);
}

static int start(void **state)
{
	fake_gpu.used_bytes = fake_gpu.pid_bytes = 0;
	fake_gpu.pid = 0;
	return fixture_setup(state);
}

int main(void)
{
#define test(function) cmocka_unit_test_setup_teardown(function, start, fixture_teardown)
	const struct CMUnitTest tests[] = {
		test(test_what_is_declared_is_granted),
		test(test_the_next_waits_until_it_fits),
		test(test_what_drains_is_not_granted),
		test(test_what_strangers_hold_is_not_granted),
		test(test_a_list_of_other_pids_is_not_taken_for_strangers),
		test(test_promises_and_grants_know_of_each_other),
		test(test_what_is_kept_is_not_promised),
		test(test_growth_is_answered_at_once),
		test(test_an_ask_that_is_taken_back),
		test(test_a_restart_keeps_grants),
		test(test_a_restart_keeps_the_order_of_waiting),
		test(test_use_is_remembered_by_name),
		test(test_nonsense_is_bounded),
		test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
