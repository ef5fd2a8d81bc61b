/*
 * Tenants whose work outlives their turn: kernels longer than a drain, work that never ends, stopped processes, pause. Other
 * tenants are not held up, and the tenant pays for the overrun.
 */
#include "rules.h"

#include <math.h>

static void test_drain_deadline(void **state)
{
	struct bench b = bench_new();
	int a = bench_add(&b, 50, 80), c = bench_add(&b, 50, 80);
	struct arbiter_account before, after;
	uint64_t closed;

	bench_work(&b, a);
	b.seen[a].inflight_ns = 5 * MS; /* so its drain may take 20 */
	bench_run_for(&b, 5 * MS);
	b.seen[c].waiting = true;
	while (bench_state(&b, a) == LEASE_GO)
		bench_step(&b, b.next - b.now);
	closed = b.now;
	while (arbiter_holder(b.arbiter) == a)
		bench_step(&b, b.next - b.now);
	assert_in_range(b.now - closed, 20 * MS, 20 * MS + 100 * US);
	assert_int_equal(bench_state(&b, c), LEASE_GO);
	before = arbiter_account(b.arbiter, a);
	assert_int_equal(before.expired, 1);
	assert_true(before.draining);

	/* Both run: each pays half. */
	bench_work(&b, c);
	bench_step(&b, 100 * US);
	before = arbiter_account(b.arbiter, a);
	bench_run_for(&b, 4 * MS);
	after = arbiter_account(b.arbiter, a);
	assert_in_range(after.charged_ns - before.charged_ns, 1990 * US, 2010 * US);
	assert_in_range(after.overrun_ns - before.overrun_ns, 1990 * US, 2010 * US);
	bench_rest(&b, a);
	bench_step(&b, 100 * US);
	assert_false(arbiter_account(b.arbiter, a).draining);
	arbiter_free(b.arbiter);
}

static void test_persistent_kernel_blocks_no_one(void **state)
{
	struct gpu_model *m = model_new(12);
	struct gpu_model_load endless = { .kernel_ns = 3600 * SECOND };
	int persistent = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &endless), victim;
	struct arbiter_account account;

	gpu_model_run(m, SECOND);
	victim = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &hungry);
	gpu_model_run(m, SECOND);
	assert_true(gpu_model_take_longest_wait_ns(m, victim) < 130 * MS);
	/* All that the hardware's slicing leaves: 2.09 of each 4.8 ms. */
	assert_true(share_over(m, victim, 5 * SECOND) > 40);
	gpu_model_take_longest_wait_ns(m, victim);
	gpu_model_run(m, SECOND);
	assert_true(gpu_model_take_longest_wait_ns(m, victim) < 45 * MS);
	account = arbiter_account(gpu_model_arbiter(m), persistent);
	assert_true(account.expired > 0 && account.overrun_ns > 2 * SECOND);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

/* Kernels longer than any drain: the overlap is paid back. */
static void test_overrun_is_debt(void **state)
{
	struct gpu_model *m = model_new(13);
	struct gpu_model_load monster = { .kernel_ns = 300 * MS };
	int long_one = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &monster);
	int short_one = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &hungry);
	uint64_t before[2];

	gpu_model_run(m, 2 * SECOND);
	before[0] = gpu_model_work_ns(m, long_one);
	before[1] = gpu_model_work_ns(m, short_one);
	gpu_model_run(m, 60 * SECOND);
	assert_true(fabs((double)(gpu_model_work_ns(m, long_one) - before[0]) -
			 (double)(gpu_model_work_ns(m, short_one) - before[1])) <
		    0.05 * 60 * (double)SECOND);
	assert_true(arbiter_account(gpu_model_arbiter(m), long_one).overrun_ns > 0);
	gpu_model_free(m);
}

/*
 * Returns the work of a tenant with 80 %, in percent of the time, beside tenants with 20 % that launch one kernel of a second
 * each: as soon as it has ended, the tenant is removed and another one added.
 */
static double share_beside_remade_tenants(uint64_t seed, uint64_t owner)
{
	struct gpu_model *m = model_new(seed);
	struct gpu_model_load one = { .kernel_ns = SECOND,
				      .burst_ns = SECOND,
				      .think_ns = 3600 * SECOND,
				      .think_max_ns = 3600 * SECOND };
	int victim = gpu_model_add(m, (struct arbiter_share){ 80, 100 }, &hungry);
	gpu_model_run(m, SECOND);
	uint64_t before = gpu_model_work_ns(m, victim), begin = gpu_model_now_ns(m);
	while (gpu_model_now_ns(m) < begin + 100 * SECOND) {
		int thief = gpu_model_add(m, (struct arbiter_share){ 20, 100 }, &one);
		arbiter_set_owner(gpu_model_arbiter(m), thief, owner);
		while (gpu_model_kernels(m, thief) == 0)
			gpu_model_run(m, 10 * MS);
		gpu_model_run(m, 10 * MS);
		gpu_model_remove(m, thief);
	}
	double share = 100 * (double)(gpu_model_work_ns(m, victim) - before) /
		       (double)(gpu_model_now_ns(m) - begin);
	gpu_model_free(m);
	return share;
}

static void test_debt_passes_to_the_owners_next_tenant(void **state)
{
	assert_true(share_beside_remade_tenants(14, 0) < 60);
	assert_true(share_beside_remade_tenants(15, 1001) > 76);
}

/* A new tenant in debt is held even at its first launch, unless nobody else works. */
static void test_debt_holds_the_first_launch(void **state)
{
	struct bench b = bench_new();
	int busy = bench_add(&b, 80, 100), debtor = bench_add(&b, 20, 100);
	arbiter_set_owner(b.arbiter, debtor, 7);
	bench_work(&b, busy);
	bench_run_for(&b, 10 * MS);
	bench_work(&b, debtor);
	bench_run_for(&b, SECOND);
	arbiter_remove(b.arbiter, debtor);
	assert_int_equal(bench_add(&b, 20, 100), debtor);
	arbiter_set_owner(b.arbiter, debtor, 7);
	bench_run_for(&b, 300 * MS);
	assert_int_equal(arbiter_mode(b.arbiter), ARBITER_FREE);
	b.seen[debtor].waiting = true;
	bench_run_for(&b, 100 * MS);
	assert_int_equal(bench_state(&b, debtor), LEASE_STOP);
	bench_rest(&b, busy);
	bench_run_for(&b, 200 * MS);
	assert_true(bench_state(&b, debtor) == LEASE_GO || bench_state(&b, debtor) == LEASE_FREE);
	arbiter_free(b.arbiter);
}

/* A cap's debt passes on, too, and is paid with time. Tenants of other owners pay nothing. */
static void test_debt_of_a_cap(void **state)
{
	struct bench b = bench_new();
	int capped = bench_add(&b, 0, 10);
	arbiter_set_owner(b.arbiter, capped, 7);
	bench_work(&b, capped);
	bench_run_for(&b, SECOND);
	int64_t owed = arbiter_account(b.arbiter, capped).tokens_ns;
	assert_true(owed < -800 * (int64_t)MS);
	arbiter_remove(b.arbiter, capped);
	int same = bench_add(&b, 0, 10), other = bench_add(&b, 0, 10);
	arbiter_set_owner(b.arbiter, same, 7);
	arbiter_set_owner(b.arbiter, other, 8);
	bench_run_for(&b, MS);
	assert_true(arbiter_account(b.arbiter, same).tokens_ns < owed * 9 / 10);
	assert_true(arbiter_account(b.arbiter, other).tokens_ns >= 0);
	arbiter_remove(b.arbiter, same);
	bench_run_for(&b, 12 * SECOND);
	same = bench_add(&b, 0, 10);
	arbiter_set_owner(b.arbiter, same, 7);
	bench_run_for(&b, MS);
	assert_true(arbiter_account(b.arbiter, same).tokens_ns >= 0);
	arbiter_free(b.arbiter);
}

/* Unpaid time (time_policy.h) passes on as well, so that a tenant that is made anew is found as soon as one that stays. */
static void test_unpaid_time_passes_on(void **state)
{
	struct bench b = bench_new();
	const struct time_reading cheats = { .passed_ns = 500 * MS, .certain = 0.5, .likely = 0.5 };
	const struct time_reading idles = { .passed_ns = 500 * MS };
	struct time_account unpaid;
	unsigned readings = 0;
	bool is_over = false;
	while (!is_over && readings < 10) {
		int thief = bench_add(&b, 0, 10);
		arbiter_set_owner(b.arbiter, thief, 7);
		bench_run_for(&b, 100 * MS);
		is_over = arbiter_add_reading(b.arbiter, thief, &cheats, &unpaid);
		readings++;
		arbiter_remove(b.arbiter, thief);
	}
	assert_int_equal(readings, 3);
	/* Tenants of other owners, and a tenant that does not cheat, are not accused. */
	int other = bench_add(&b, 0, 10), honest = bench_add(&b, 0, 10);
	arbiter_set_owner(b.arbiter, other, 8);
	arbiter_set_owner(b.arbiter, honest, 7);
	assert_false(arbiter_add_reading(b.arbiter, other, &cheats, &unpaid));
	assert_false(arbiter_add_reading(b.arbiter, honest, &idles, &unpaid));
	assert_in_range(unpaid.certain_ns, 250 * MS, 350 * MS);
	/* The owner gets no new tenant for a while, another owner does. */
	assert_in_range(arbiter_refused_ns(b.arbiter, honest), 29 * SECOND, 30 * SECOND);
	assert_int_equal(arbiter_refused_ns(b.arbiter, other), 0);
	/* Likely unpaid time passes on, too. */
	const struct time_reading likely = { .passed_ns = 500 * MS, .likely = 1 };
	for (unsigned i = 0; i < 10; i++)
		arbiter_add_reading(b.arbiter, other, &likely, &unpaid);
	assert_in_range(unpaid.likely_ns, 4 * SECOND, 5 * SECOND);
	uint64_t before_ns = unpaid.likely_ns;
	arbiter_remove(b.arbiter, other);
	other = bench_add(&b, 0, 10);
	arbiter_set_owner(b.arbiter, other, 8);
	arbiter_add_reading(b.arbiter, other, &idles, &unpaid);
	assert_in_range(unpaid.likely_ns, before_ns - 100 * MS, before_ns);
	/* It is forgotten, although tenants come and go. */
	for (unsigned i = 0; i < 9; i++) {
		arbiter_remove(b.arbiter, other);
		bench_run_for(&b, SECOND);
		other = bench_add(&b, 0, 10);
		arbiter_set_owner(b.arbiter, other, 8);
	}
	arbiter_add_reading(b.arbiter, other, &idles, &unpaid);
	assert_in_range(unpaid.likely_ns, before_ns - 2 * SECOND, before_ns - SECOND);
	arbiter_remove(b.arbiter, honest);
	arbiter_remove(b.arbiter, other);
	/* What is not paid is forgotten with time, even while there are no tenants and so no steps. */
	b.now += 75 * SECOND;
	honest = bench_add(&b, 0, 10);
	arbiter_set_owner(b.arbiter, honest, 7);
	assert_int_equal(arbiter_refused_ns(b.arbiter, honest), 0);
	assert_false(arbiter_add_reading(b.arbiter, honest, &cheats, &unpaid));
	assert_in_range(unpaid.certain_ns, 190 * MS, 210 * MS);
	arbiter_free(b.arbiter);
}

/* More owners than there is room for: the debts that are paid first are forgotten. */
static void test_many_owners_in_debt(void **state)
{
	struct bench b = bench_new();
	for (uint64_t owner = 1; owner <= 100; owner++) {
		int capped = bench_add(&b, 0, 10);
		arbiter_set_owner(b.arbiter, capped, owner);
		bench_work(&b, capped);
		bench_run_for(&b, 200 * MS);
		arbiter_remove(b.arbiter, capped);
	}
	int last = bench_add(&b, 0, 10);
	arbiter_set_owner(b.arbiter, last, 100);
	bench_run_for(&b, MS);
	assert_true(arbiter_account(b.arbiter, last).tokens_ns < 0);
	arbiter_free(b.arbiter);
}

/*
 * Work that never ends because the launch it waits for is held at the gate: charged as if it ran,
 * far beyond its cap, its tenant still gets a short lease several times a second.
 */
static void test_stuck_and_waiting(void **state)
{
	struct bench b = bench_new();
	int stuck = bench_add(&b, 10, 10), other = bench_add(&b, 50, 100);
	unsigned leases_late = 0;
	uint64_t held_since = 0, longest = 0;
	bool was_let_through = false;

	bench_work(&b, stuck);
	bench_run_for(&b, 5 * MS);
	b.seen[stuck].waiting = true;
	uint64_t start = b.now;
	while (b.now < start + 20 * SECOND) {
		bool has_lease = bench_state(&b, other) == LEASE_GO;
		bool is_let_through = bench_state(&b, stuck) == LEASE_GO;

		b.seen[other].busy = has_lease;
		b.seen[other].waiting = !has_lease;
		if (is_let_through && !was_let_through && b.now > start + 10 * SECOND)
			leases_late++;
		if (is_let_through)
			held_since = b.now;
		else if (held_since && b.now - held_since > longest)
			longest = b.now - held_since;
		was_let_through = is_let_through;
		bench_step(&b, 200 * US);
	}
	assert_true(arbiter_account(b.arbiter, stuck).tokens_ns < 0);
	assert_in_range(leases_late, 40, 100);
	assert_in_range(longest, b.config.need_ns / 2, 2 * b.config.need_ns + b.config.drain_max_ns);
	/* Out of turn is short: the other is not robbed of its time. */
	assert_true(arbiter_account(b.arbiter, other).leases > 0);
	arbiter_free(b.arbiter);
}

/* Tenants with this many steps of 5 ms. */
static void take_steps(struct bench *b, const int *tenants, int count, unsigned steps)
{
	for (unsigned step = 0; step < steps; step++) {
		for (int part = 0; part < 25; part++) {
			for (int i = 0; i < count; i++) {
				b->seen[tenants[i]].busy = part < 24;
				b->seen[tenants[i]].sync_points += part == 24;
				b->seen[tenants[i]].gap_ns += part == 24 ? 500 * US : 0;
			}
			bench_step(b, 200 * US);
		}
	}
}

/* The same with the hardware's time slices: the tenant is held for its time beyond its share, and no longer. */
static void test_stuck_and_sliced(void **state)
{
	struct bench b = bench_new();
	int pair[] = { bench_add(&b, 90, 100), bench_add(&b, 10, 100) };
	int stuck = pair[1];
	unsigned let_through = 0;

	take_steps(&b, pair, 2, 20);
	assert_int_equal(arbiter_mode(b.arbiter), ARBITER_SLICED);
	b.seen[pair[0]].busy = b.seen[stuck].busy = b.seen[stuck].waiting = true;
	for (unsigned i = 0; i < 5000; i++) {
		bench_step(&b, 200 * US);
		let_through += i >= 2500 && bench_state(&b, stuck) >= LEASE_GO;
	}
	assert_int_equal(arbiter_mode(b.arbiter), ARBITER_SLICED);
	/* Once after each drain that it does not end. */
	assert_true(let_through > 20);
	arbiter_free(b.arbiter);
}

static void test_stopped_holder(void **state)
{
	struct bench b = bench_new();
	int a = bench_add(&b, 50, 80), c = bench_add(&b, 50, 80);
	uint64_t stopped;

	bench_work(&b, a);
	bench_run_for(&b, 3 * MS);
	b.seen[c].waiting = true;
	bench_step(&b, 100 * US);
	bench_rest(&b, a);
	b.seen[a].stopped = true;
	bench_step(&b, 100 * US);
	assert_int_equal(bench_state(&b, a), LEASE_STOP); /* not busy: at once */
	assert_int_equal(arbiter_holder(b.arbiter), c);

	bench_work(&b, c);
	bench_step(&b, 100 * US);
	b.seen[c].stopped = true; /* busy, and its flags stay so: at the deadline */
	b.seen[a].stopped = false;
	b.seen[a].waiting = true;
	bench_step(&b, 100 * US);
	assert_int_equal(bench_state(&b, c), LEASE_CLOSING);
	stopped = b.now;
	while (arbiter_holder(b.arbiter) == c)
		bench_step(&b, b.next - b.now);
	assert_in_range(b.now - stopped, 10 * MS, 10 * MS + 100 * US);
	assert_int_equal(arbiter_holder(b.arbiter), a);
	/* Not charged for flags that it can't lower, nor kept as company for ever. */
	bench_work(&b, a);
	stopped = arbiter_account(b.arbiter, c).charged_ns;
	bench_run_for(&b, SECOND);
	assert_true(arbiter_account(b.arbiter, c).charged_ns - stopped < 1 * MS);
	arbiter_free(b.arbiter);
}

static void test_stopped_tenant_on_gpu(void **state)
{
	struct gpu_model *m = model_new(14);
	int a = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &hungry);
	int c = gpu_model_add(m, (struct arbiter_share){ 50, 100 }, &hungry);

	for (int round = 0; round < 20; round++) {
		gpu_model_run(m, 300 * MS + (uint64_t)round * 3 * MS);
		gpu_model_set_stopped(m, a, true);
		gpu_model_run(m, 20 * MS);
		gpu_model_take_longest_wait_ns(m, c);
		gpu_model_run(m, 500 * MS);
		assert_true(gpu_model_take_longest_wait_ns(m, c) < 60 * MS);
		gpu_model_set_stopped(m, a, false);
		gpu_model_run(m, 100 * MS);
		assert_true(fabs(share_over(m, a, SECOND) - 49.5) < 4);
	}
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

static void test_pause(void **state)
{
	struct bench b = bench_new();
	int a = bench_add(&b, 50, 100), c = bench_add(&b, 50, 100);

	bench_work(&b, a);
	bench_run_for(&b, 10 * MS);
	assert_int_equal(bench_state(&b, a), LEASE_FREE);
	arbiter_set_paused(b.arbiter, a, true);
	bench_step(&b, MS);
	assert_int_equal(bench_state(&b, a), LEASE_CLOSING);
	assert_int_equal(bench_state(&b, c), LEASE_FREE);
	bench_rest(&b, a);
	b.seen[a].waiting = true;
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, a), LEASE_STOP);
	bench_run_for(&b, 10 * SECOND);
	assert_int_equal(bench_state(&b, a), LEASE_STOP);
	/* A tenant whose wait can't end does not count as another tenant: c runs free. */
	bench_work(&b, c);
	bench_run_for(&b, SECOND);
	assert_int_equal(bench_state(&b, c), LEASE_FREE);
	assert_int_equal(bench_state(&b, a), LEASE_STOP);
	arbiter_set_paused(b.arbiter, a, false);
	bench_step(&b, MS);
	assert_int_equal(bench_state(&b, c), LEASE_CLOSING);
	bench_rest(&b, c);
	bench_step(&b, MS);
	assert_int_equal(bench_state(&b, a), LEASE_GO);
	arbiter_set_paused(b.arbiter, a, true);
	bench_work(&b, a);
	bench_step(&b, 200 * US);
	assert_int_equal(bench_state(&b, a), LEASE_CLOSING);
	bench_rest(&b, a);
	b.seen[a].waiting = true;
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, a), LEASE_STOP);
	arbiter_set_paused(b.arbiter, a, false);
	bench_step(&b, 50 * US);
	assert_int_equal(bench_state(&b, a), LEASE_GO);
	arbiter_free(b.arbiter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drain_deadline),
		cmocka_unit_test(test_persistent_kernel_blocks_no_one),
		cmocka_unit_test(test_overrun_is_debt),
		cmocka_unit_test(test_debt_passes_to_the_owners_next_tenant),
		cmocka_unit_test(test_debt_holds_the_first_launch),
		cmocka_unit_test(test_debt_of_a_cap),
		cmocka_unit_test(test_unpaid_time_passes_on),
		cmocka_unit_test(test_many_owners_in_debt),
		cmocka_unit_test(test_stuck_and_waiting),
		cmocka_unit_test(test_stuck_and_sliced),
		cmocka_unit_test(test_stopped_holder),
		cmocka_unit_test(test_stopped_tenant_on_gpu),
		cmocka_unit_test(test_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
