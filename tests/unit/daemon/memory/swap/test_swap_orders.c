/* Swappable tenants: their terms, their arena, orders and figures. */
#include "../../fixture.h"

#include <string.h>

#include "daemon/api/condition.h"
#include "daemon/memory/swap/arena.h"
#include "daemon/memory/swap/swap_orders.h"

#define CREATE(more) "{\"version\":1,\"op\":\"create\"," more "}"
#define OF_64_MIB "\"devices\":[{\"index\":0,\"memory_bytes\":67108864}]"

static void ok(struct fixture *f, const char *line)
{
	json_decref(fixture_ok(f, line));
}

static struct tenant *make(struct fixture *f, const char *name)
{
	char line[256];
	snprintf(line, sizeof(line), CREATE("\"name\":\"%s\",\"on_full\":\"swap\"," OF_64_MIB),
		 name);
	ok(f, line);
	return node_find_tenant(f->node, name);
}

static void test_the_arena_is_backed_and_goes_to_processes(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make(f, "a");
	assert_int_equal(t->terms.swap_arena_bytes, 64 * MIB);
	assert_int_equal(t->region.control->arena_bytes, 64 * MIB);
	/* Not before a process needs it: any user can make tenants. But the daemon promises it to no other tenant. */
	fixture_turn(f, 100);
	assert_int_equal(t->region.control->arena_ready_bytes, 0);
	assert_int_equal(arena_pending_bytes(t->arena), 64 * MIB);
	struct client c;
	client_register(f, client_connect(t), 0, &c);
	fixture_until(f, t->region.control->arena_ready_bytes == 64 * MIB);
	assert_int_equal(arena_pending_bytes(t->arena), 0);
	assert_int_equal(swap_order_of(t->region.control->swap), SWAP_ORDER_IN);
	ok(f, CREATE("\"name\":\"b\",\"on_full\":\"swap\",\"swap_arena_bytes\":3145728," OF_64_MIB));
	t = node_find_tenant(f->node, "b");
	assert_int_equal(t->region.control->arena_bytes, 4 * MIB); /* whole pages of 2 MiB */
	/* A tenant that is not swappable has none. */
	ok(f, CREATE("\"name\":\"c\"," OF_64_MIB));
	t = node_find_tenant(f->node, "c");
	assert_null(t->arena);
	assert_int_equal(t->region.control->arena_bytes, 0);
}

static void test_arenas_keep_to_the_budget(void **state)
{
	struct fixture *f = *state;
	f->node->config.swap_arena_bytes = 100 * MIB;
	make(f, "a");
	fixture_refused(f, CREATE("\"name\":\"b\",\"on_full\":\"swap\"," OF_64_MIB), ENOSPC,
			"use --swap-arena 36MiB or less");
	ok(f,
	   CREATE("\"name\":\"b\",\"on_full\":\"swap\",\"swap_arena_bytes\":37748736," OF_64_MIB));
	ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a\"}");
	make(f, "a");
	struct error err = { 0 };
	assert_int_equal(arena_check_memory(UINT64_C(1) << 50, 0, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "needs 1024 TiB of host memory"));
	assert_int_equal(arena_check_memory(4096, UINT64_MAX, &err), -ENOSPC);
	assert_int_equal(arena_check_memory(4096, 0, &err), 0);
}

static enum swap_order order_of(const struct tenant *t)
{
	return swap_order_of(t->region.control->swap);
}

static void test_pause_and_resume(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make(f, "a");
	uint32_t word = t->region.control->swap;
	ok(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\"}");
	assert_int_equal(order_of(t), SWAP_ORDER_IN);
	ok(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\",\"swap_out\":true}");
	assert_int_equal(order_of(t), SWAP_ORDER_OUT);
	assert_int_not_equal(t->region.control->swap, word);
	fixture_until(f, lease_state_of(t->region.control->device[0].lease) == LEASE_STOP);
	/* A restarted daemon reports the same, and makes no arena: the previous one has the data. */
	fixture_stop(f);
	fixture_start(f);
	t = node_find_tenant(f->node, "a");
	assert_int_equal(order_of(t), SWAP_ORDER_OUT);
	assert_int_equal(t->terms.swap_arena_bytes, 64 * MIB);
	assert_null(t->arena);
	ok(f, "{\"version\":1,\"op\":\"resume\",\"name\":\"a\"}");
	assert_int_equal(order_of(t), SWAP_ORDER_IN);
	ok(f, CREATE("\"name\":\"b\"," OF_64_MIB));
	fixture_refused(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"b\",\"swap_out\":true}",
			ESRCH, "has no process with GPU memory");
}

static void say_out(struct client *c)
{
	struct region_slot *slot = &c->report->slot[c->reply.slot];
	slot->swap_state = SWAP_OUT;
	slot->swap_word = c->control->swap;
	slot->swap[0].movable_bytes = 48 * MIB;
	slot->swap[0].out_bytes = 48 * MIB;
	slot->swap_failed = 2;
	slot->swap_moved_ns = UINT64_MAX;
}

/* Impossible values, which a tenant may write. */
static void say_nonsense(struct client *c)
{
	struct region_slot *slot = &c->report->slot[c->reply.slot];
	slot->swap_state = SWAP_SHORT;
	slot->swap[0].movable_bytes = UINT64_MAX;
	slot->swap[0].out_bytes = UINT64_MAX - 1;
}

static void test_figures_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make(f, "a");
	assert_null(swap_state_text(t));
	ok(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\",\"swap_out\":true}");
	int first = client_spawn(f, t, 0, say_out);
	struct swap_figures figures = swap_figures(t);
	assert_int_equal(figures.out, 1);
	assert_int_equal(figures.behind, 0);
	assert_int_equal(figures.device[0].out_bytes, 48 * MIB);
	assert_int_equal(figures.failed, 2);
	assert_int_equal(figures.moved_ns, UINT64_C(3600000000000));
	assert_string_equal(swap_state_text(t), "out");
	int second = client_spawn(f, t, 0, say_nonsense);
	figures = swap_figures(t);
	assert_int_equal(figures.out, 2);
	assert_int_equal(figures.is_short, 1);
	assert_int_equal(figures.behind, 1);
	assert_int_equal(figures.device[0].movable_bytes, FAKE_CARD_BYTES);
	assert_int_equal(figures.device[0].out_bytes, FAKE_CARD_BYTES);
	assert_string_equal(swap_state_text(t), "short");
	client_kill(first);
	client_kill(second);
	fixture_until(f, t->process_count == 0);
	assert_null(swap_state_text(t));
}

static void do_nothing(struct client *c)
{
}

/* The report of a process of the tenant, through the daemon's own mapping. */
static struct region_slot *say(struct tenant *t, enum swap_state state, uint64_t bytes, bool works)
{
	struct region_slot *slot = &t->region.report->slot[0];
	slot->swap[0].movable_bytes = bytes;
	slot->swap[0].out_bytes = state == SWAP_OUT ? bytes : 0;
	slot->device[0].used_bytes = bytes;
	slot->device[0].waiting = works;
	slot->swap_word = t->region.control->swap;
	slot->swap_state = state;
	return slot;
}

static enum tenant_condition condition_of(const struct tenant *t)
{
	struct lessee_figures figures[REGION_MAX_DEVICES] = { 0 };
	return tenant_condition(t, figures);
}

/* By its processes' reports, not by the order. */
static void test_states(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make(f, "a");
	int process = client_spawn(f, t, 0, do_nothing);
	say(t, SWAP_IN, 48 * MIB, false);
	assert_int_equal(condition_of(t), TENANT_IDLE);
	ok(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\",\"swap_out\":true}");
	assert_int_equal(condition_of(t), TENANT_LEAVING); /* it has not heard yet */
	say(t, SWAP_LEAVING, 48 * MIB, false);
	assert_int_equal(condition_of(t), TENANT_LEAVING);
	say(t, SWAP_OUT, 48 * MIB, false);
	assert_int_equal(condition_of(t), TENANT_SWAPPED);
	/* A second process that failed keeps its memory there. */
	int other = client_spawn(f, t, 0, do_nothing);
	t->region.report->slot[1].swap_word = t->region.control->swap;
	t->region.report->slot[1].swap_state = SWAP_IN;
	assert_string_equal(swap_state_text(t), "stuck");
	assert_int_equal(condition_of(t), TENANT_PAUSED);
	client_kill(other);
	fixture_until(f, t->process_count == 1);
	ok(f, "{\"version\":1,\"op\":\"resume\",\"name\":\"a\"}");
	assert_int_equal(condition_of(t), TENANT_RETURNING);
	say(t, SWAP_RETURNING, 48 * MIB, false);
	assert_int_equal(condition_of(t), TENANT_RETURNING);
	say(t, SWAP_IN, 48 * MIB, false);
	assert_int_equal(condition_of(t), TENANT_IDLE);
	/* Given up: it is paused, with its memory on the card. */
	ok(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\",\"swap_out\":true}");
	say(t, SWAP_IN, 48 * MIB, false);
	assert_int_equal(condition_of(t), TENANT_PAUSED);
	client_kill(process);
}

static bool has_no_lease(const struct tenant *t)
{
	return lease_state_of(t->region.control->device[0].lease) == LEASE_STOP;
}

#define OF_5_GIB "\"devices\":[{\"index\":0,\"memory_bytes\":5368709120}]"
#define SWAPPABLE "\"on_full\":\"swap\",\"swap_arena_bytes\":2097152,"

/* Two of 5 GiB on a card of 8: in turns, with orders and leases as they should be. */
static void test_turns(void **state)
{
	struct fixture *f = *state;
	ok(f, CREATE("\"name\":\"a\"," SWAPPABLE OF_5_GIB));
	ok(f, CREATE("\"name\":\"b\"," SWAPPABLE OF_5_GIB));
	fixture_refused(f, CREATE("\"name\":\"c\"," OF_5_GIB), ENOSPC, "does not fit");
	struct tenant *a = node_find_tenant(f->node, "a"), *b = node_find_tenant(f->node, "b");
	int first = client_spawn(f, a, 0, do_nothing), second = client_spawn(f, b, 0, do_nothing);
	say(a, SWAP_IN, 5 * GIB, false);
	struct region_slot *slot = say(b, SWAP_IN, GIB, true);
	fixture_turn(f, 100);
	assert_int_equal(order_of(a), SWAP_ORDER_IN);
	/* An allocation of 4 GiB more waits: a, which has no work, goes for it. */
	slot->swap[0].wanted_bytes = 4 * GIB;
	fixture_until(f, order_of(a) == SWAP_ORDER_OUT);
	fixture_until(f, has_no_lease(a));
	assert_int_equal(order_of(b), SWAP_ORDER_IN);
	say(a, SWAP_OUT, 5 * GIB, true);
	slot->swap[0].wanted_bytes = 0;
	say(b, SWAP_IN, 5 * GIB, true);
	fixture_turn(f, 200);
	assert_int_equal(order_of(a), SWAP_ORDER_OUT); /* b's turn is not over */
	/* b is idle: a is next. */
	say(b, SWAP_IN, 5 * GIB, false);
	fixture_until(f, order_of(b) == SWAP_ORDER_OUT);
	say(b, SWAP_OUT, 5 * GIB, false);
	fixture_until(f, order_of(a) == SWAP_ORDER_IN);
	assert_true(has_no_lease(a));
	say(a, SWAP_IN, 5 * GIB, true);
	fixture_until(f, !has_no_lease(a));
	/* A tenant that failed to leave is as before. */
	say(b, SWAP_OUT, 5 * GIB, true);
	say(a, SWAP_IN, 5 * GIB, false);
	fixture_until(f, order_of(a) == SWAP_ORDER_OUT);
	say(a, SWAP_IN, 5 * GIB, false);
	fixture_until(f, order_of(a) == SWAP_ORDER_IN);
	/* When it is killed there is room for the other. */
	client_kill(first);
	fixture_until(f, order_of(b) == SWAP_ORDER_IN);
	client_kill(second);
}

#define test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_the_arena_is_backed_and_goes_to_processes),
		test(test_arenas_keep_to_the_budget),
		test(test_pause_and_resume),
		test(test_figures_are_bounded),
		test(test_states),
		test(test_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
