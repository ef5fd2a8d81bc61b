#include "fixture.h"

#include <string.h>

#include "base/clock.h"
#include "node/census.h"
#include "node/drain.h"

static void test_over(void **state)
{
	assert_false(census_is_over(0, 0));
	assert_false(census_is_over(512 * MIB, 0));
	assert_true(census_is_over(512 * MIB + 1, 0));
	assert_false(census_is_over(100 * MIB, 200 * MIB));
	assert_false(census_is_over(20 * GIB + 1000 * MIB, 20 * GIB));
	assert_true(census_is_over(20 * GIB + 1030 * MIB, 20 * GIB));
}

static void test_context_cost(void **state)
{
	assert_int_equal(census_context_cost(600 * MIB, 618 * MIB, 518 * MIB, 518 * MIB), 500 * MIB);
	assert_int_equal(census_context_cost(600 * MIB + 1, 618 * MIB, 518 * MIB, 518 * MIB),
			 502 * MIB);                                                  /* rounded */
	assert_int_equal(census_context_cost(600 * MIB, 618 * MIB, 0, 518 * MIB), 0); /* none */
	assert_int_equal(census_context_cost(2 * GIB, 2 * GIB, 1036 * MIB, 518 * MIB), 0); /* two */
	assert_int_equal(census_context_cost(100 * MIB, 618 * MIB, 518 * MIB, 518 * MIB), 0);
	assert_int_equal(census_context_cost(8 * GIB, 518 * MIB, 518 * MIB, 518 * MIB), 0);
	assert_int_equal(census_context_cost(8 * MIB, 518 * MIB, 518 * MIB, 518 * MIB), 0);
	assert_int_equal(census_context_cost(600 * MIB, 10, 518 * MIB, 518 * MIB), 0); /* nonsense */
}

static void test_unnamed(void **state)
{
	uint64_t before = 0;
	assert_int_equal(census_unnamed(700 * MIB, 600 * MIB, 0, &before), 0); /* seen once */
	assert_int_equal(census_unnamed(690 * MIB, 600 * MIB, 0, &before), 90 * MIB);
	assert_int_equal(census_unnamed(800 * MIB, 600 * MIB, 90 * MIB, &before), 90 * MIB);
	assert_int_equal(census_unnamed(0, 600 * MIB, 90 * MIB, &before),
			 0); /* not told, or less than charged */
	assert_int_equal(census_unnamed(800 * MIB, 600 * MIB, 0, &before), 0);
	assert_int_equal(before, 200 * MIB);
	/* Its library has measured it: one look confirms, and corrects what others spoilt. */
	before = 0;
	assert_int_equal(census_unnamed(700 * MIB, 600 * MIB, 100 * MIB, &before), 100 * MIB);
	assert_int_equal(census_unnamed(700 * MIB, 600 * MIB, 900 * MIB, &before), 100 * MIB);
}

static struct tenant *make_tenant(struct fixture *f)
{
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\",\"devices\":["
				  "{\"index\":0}]}"));
	return node_find_tenant(f->node, "a");
}

static void one_context(struct client *c)
{
	struct region_slot_device *d = &c->report->slot[c->reply.slot].device[0];
	d->context_used_bytes = 518 * MIB;
	d->used_bytes = 618 * MIB;
}

static void one_context_and_managed(struct client *c)
{
	one_context(c);
	c->report->slot[c->reply.slot].device[0].unsure = 1;
}

static void test_context_is_measured(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int pid = client_spawn(f, t, 0, one_context);
	fake_gpu.pid_bytes = 400 * MIB;
	fake_gpu.pid = pid;
	fixture_until(f, t->region.control->device[0].context_bytes == 300 * MIB);
	assert_int_equal(f->node->card[0].context_bytes, 300 * MIB);
	assert_int_equal(f->node->card[1].context_bytes, 518 * MIB);
	/* What a program loads into its context comes on top: the least counts. */
	fake_gpu.pid_bytes = 450 * MIB;
	fixture_turn(f, 300);
	assert_int_equal(t->region.control->device[0].context_bytes, 300 * MIB);
	assert_int_equal(t->violations, 0);
	client_kill(pid);
}

/* Of memory that NVML tells less of than the ledger has, a cheaper context must not be made. */
static void test_no_context_is_measured_beside_other_memory(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int pid = client_spawn(f, t, 0, one_context_and_managed);
	fake_gpu.pid_bytes = 400 * MIB;
	fake_gpu.pid = pid;
	fixture_turn(f, 500);
	assert_int_equal(t->region.control->device[0].context_bytes, 518 * MIB);
	client_kill(pid);
}

static struct region_slot_device *first_slot(struct tenant *t)
{
	return &t->region.report->slot[0].device[0];
}

static void test_unnamed_is_charged(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int pid = client_spawn(f, t, 0, one_context);
	fake_gpu.pid_bytes = 658 * MIB;
	fake_gpu.pid = pid;
	fixture_until(f, first_slot(t)->unnamed_bytes == 40 * MIB);
	assert_int_equal(tenant_usage(t, 0).used_bytes, 658 * MIB);
	assert_int_equal(tenant_usage(t, 0).unnamed_bytes, 40 * MIB);
	assert_int_equal(first_slot(t)->used_bytes, 618 * MIB);
	/* It counts no longer once a look shows less. */
	fake_gpu.pid_bytes = 628 * MIB;
	fixture_until(f, first_slot(t)->unnamed_bytes == 10 * MIB);
	/* It goes with the process, and drains like the rest. */
	fake_gpu.pid_bytes = 658 * MIB;
	fixture_until(f, first_slot(t)->unnamed_bytes == 40 * MIB);
	client_kill(pid);
	fixture_until(f, t->process_count == 0);
	assert_int_equal(tenant_usage(t, 0).used_bytes, 0);
	assert_int_equal(first_slot(t)->unnamed_bytes, 0);
	assert_int_equal(drain_bytes(&f->node->card[0]), 658 * MIB);
	assert_int_equal(t->violations, 0);
}

/* What the library measured counts at once, and becomes what the next look says: that comes soon. */
static void test_fresh_is_looked_at_soon(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int pid = client_spawn(f, t, 0, one_context);
	f->node->config.census_ns = 3600 * NSEC_PER_SEC;
	fake_gpu.pid_bytes = 658 * MIB;
	fake_gpu.pid = pid;
	first_slot(t)->fresh_bytes = 90 * MIB;
	assert_int_equal(tenant_usage(t, 0).used_bytes, 708 * MIB);
	fixture_until(f, first_slot(t)->fresh_bytes == 0);
	assert_int_equal(first_slot(t)->unnamed_bytes, 40 * MIB);
	assert_int_equal(tenant_usage(t, 0).used_bytes, 658 * MIB);
	/* Nonsense is bounded by the card. */
	first_slot(t)->fresh_bytes = UINT64_MAX;
	assert_true(tenant_usage(t, 0).unnamed_bytes <= t->terms.device[0].card->info.memory_bytes);
	client_kill(pid);
}

/* Measured while NVML was asked: this look may not show it, so it stays. */
static void test_fresh_during_a_look_stays(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int pid = client_spawn(f, t, 0, one_context);
	struct gpu_process process = { .pid = pid, .used_known = true, .used_bytes = 618 * MIB };
	struct census_card seen = { .processes_known = true,
				    .process_count = 1,
				    .process = &process };
	first_slot(t)->fresh_bytes = 90 * MIB;
	t->process[0]->census[0].fresh_before = 0;
	census_compare(f->node, 0, &seen);
	assert_int_equal(first_slot(t)->fresh_bytes, 90 * MIB);
	t->process[0]->census[0].fresh_before = 90 * MIB;
	census_compare(f->node, 0, &seen);
	assert_int_equal(first_slot(t)->fresh_bytes, 0);
	assert_int_equal(first_slot(t)->unnamed_bytes, 0);
	client_kill(pid);
}

/* What rose and fell while NVML was asked was the ledger's. */
static void test_a_peak_of_this_look_explains(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int pid = client_spawn(f, t, 0, one_context);
	struct gpu_process process = { .pid = pid, .used_known = true, .used_bytes = 658 * MIB };
	struct census_card seen = { .processes_known = true,
				    .process_count = 1,
				    .process = &process };
	first_slot(t)->census_peak_bytes = 650 * MIB;
	first_slot(t)->census = t->region.control->census;
	census_compare(f->node, 0, &seen);
	census_compare(f->node, 0, &seen);
	assert_int_equal(first_slot(t)->unnamed_bytes, 8 * MIB);
	first_slot(t)->census--; /* an older look's */
	census_compare(f->node, 0, &seen);
	assert_int_equal(first_slot(t)->unnamed_bytes, 8 * MIB);
	census_compare(f->node, 0, &seen);
	assert_int_equal(first_slot(t)->unnamed_bytes, 40 * MIB);
	client_kill(pid);
}

static void claims_little(struct client *c)
{
	c->report->slot[c->reply.slot].device[0].used_bytes = 10 * MIB;
}

static void test_violation(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int pid = client_spawn(f, t, 0, claims_little);
	fake_gpu.pid_bytes = 2 * GIB;
	fake_gpu.pid = pid;
	fixture_until(f, t->violations == 1);
	fixture_turn(f, 300);
	assert_int_equal(t->violations, 1); /* once a process */
	client_kill(pid);
}

/* Large modules, say: the library told of them, so nothing went past it. */
static void test_measured_is_no_violation(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int pid = client_spawn(f, t, 0, claims_little);
	first_slot(t)->fresh_bytes = 2 * GIB;
	fake_gpu.pid_bytes = 2 * GIB;
	fake_gpu.pid = pid;
	fixture_until(f, first_slot(t)->fresh_bytes == 0);
	fixture_turn(f, 500);
	assert_int_equal(t->violations, 0);
	fake_gpu.pid_bytes = 3 * GIB;
	fixture_until(f, t->violations == 1);
	client_kill(pid);
}

static void test_draining(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int pid = client_spawn(f, t, 0, one_context);
	fake_gpu.pid_bytes = 618 * MIB;
	fake_gpu.pid = pid;
	fake_gpu.used_bytes = 700 * MIB;
	fixture_until(f, f->node->card[0].memory_used_bytes == 700 * MIB);
	client_kill(pid);
	fixture_until(f, t->process_count == 0);
	assert_int_equal(drain_bytes(&f->node->card[0]), 618 * MIB);
	fixture_turn(f, 100); /* the driver has not let go yet */
	assert_int_equal(drain_bytes(&f->node->card[0]), 618 * MIB);
	fake_gpu.pid = 0;
	fixture_turn(f, 100);
	assert_int_equal(drain_bytes(&f->node->card[0]), 618 * MIB);
	fake_gpu.used_bytes = 82 * MIB;
	fixture_until(f, drain_bytes(&f->node->card[0]) == 0);
}

static void test_draining_ends(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f);
	int pid = client_spawn(f, t, 0, one_context);
	fake_gpu.used_bytes = 700 * MIB;
	fixture_turn(f, 100);
	client_kill(pid);
	fixture_until(f, t->process_count == 0);
	uint64_t begun_ns = clock_now_ns();
	while (drain_bytes(&f->node->card[0]) && clock_now_ns() - begun_ns < 4 * NSEC_PER_SEC)
		fixture_turn(f, 50);
	uint64_t took_ns = clock_now_ns() - begun_ns;
	assert_true(took_ns > 1500 * NSEC_PER_MSEC && took_ns < 2500 * NSEC_PER_MSEC);
}

#define test(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_over),
		cmocka_unit_test(test_context_cost),
		cmocka_unit_test(test_unnamed),
		test(test_context_is_measured),
		test(test_no_context_is_measured_beside_other_memory),
		test(test_fresh_is_looked_at_soon),
		test(test_fresh_during_a_look_stays),
		test(test_unnamed_is_charged),
		test(test_a_peak_of_this_look_explains),
		test(test_violation),
		test(test_measured_is_no_violation),
		test(test_draining),
		test(test_draining_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
