/*
 * Space groups beside other tenants, which share by time: two groups, a group beside a single tenant, members that end, stop,
 * report falsely or hang. The rules of a lease are the same for a group as for one tenant.
 */
#include <errno.h>
#include <math.h>

#include "../lease/rules.h"

#define FIRST 1
#define SECOND_GROUP 2

static const struct gpu_model_load kernels = { .kernel_ns = 1 * MS };

static int add_to(struct gpu_model *m, uint32_t group, double cores,
		  const struct gpu_model_load *load)
{
	int t = gpu_model_add(m, (struct arbiter_share){ cores, 100, 0 }, load);

	if (group)
		gpu_model_set_group(m, t, group, 100);
	return t;
}

/* Each alone for a while, so that its speed is known; then all of them. */
static void know(struct gpu_model *m, const int *tenants, int count)
{
	for (int i = 0; i < count; i++)
		gpu_model_set_load(m, tenants[i], &resting);
	gpu_model_run(m, 100 * MS);
	for (int i = 0; i < count; i++) {
		gpu_model_set_load(m, tenants[i], &kernels);
		gpu_model_run(m, 1 * SECOND);
		gpu_model_set_load(m, tenants[i], &resting);
		gpu_model_run(m, 100 * MS);
	}
	for (int i = 0; i < count; i++)
		gpu_model_set_load(m, tenants[i], &kernels);
}

static double sm_share(struct gpu_model *m, const uint64_t *before, int tenant, uint64_t run_ns)
{
	return 100.0 * (double)(gpu_model_sm_ns(m, tenant) - before[tenant]) / (double)run_ns;
}

static void note(const struct gpu_model *m, uint64_t *before, int count)
{
	for (int i = 0; i < count; i++)
		before[i] = gpu_model_sm_ns(m, i);
}

/* 30 + 20 beside 25 + 15 (and a fifth of 10 that shares time): by guarantee, over groups and within them. */
static void test_groups_take_turns(void **state)
{
	struct gpu_model *m = model_new(3);
	static const double cores[] = { 30, 20, 25, 15, 10 };
	static const uint32_t group[] = { FIRST, FIRST, SECOND_GROUP, SECOND_GROUP, 0 };
	uint64_t before[ARBITER_MAX_TENANTS] = { 0 };
	double sum = 0, got[5];
	int t[5];

	for (int i = 0; i < 5; i++)
		t[i] = add_to(m, group[i], cores[i], &kernels);
	know(m, t, 5);
	gpu_model_run(m, 2 * SECOND);
	for (int i = 0; i < 5; i++)
		before[t[i]] = gpu_model_sm_ns(m, t[i]);
	gpu_model_run(m, 20 * SECOND);
	for (int i = 0; i < 5; i++) {
		got[i] = sm_share(m, before, t[i], 20 * SECOND);
		sum += got[i];
		assert_true(gpu_model_closings(m, t[i]) > 20);
	}
	for (int i = 0; i < 5; i++)
		if (fabs(got[i] - sum * cores[i] / 100) > 0.7)
			fail_msg("number %d: %.2f of %.2f", i + 1, got[i], sum);
	assert_true(sum > 96);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

/* A group whose kernels leave SMs idle does more work in its turn, and is charged no more time for it. */
static void test_group_is_charged_by_the_wall(void **state)
{
	static const struct gpu_model_load small = { .kernel_ns = 200 * US, .part = 0.25 };
	struct gpu_model *m = model_new(4);
	int member[3], single;
	uint64_t work = 0;

	for (int i = 0; i < 3; i++)
		member[i] = add_to(m, FIRST, 20, &small);
	single = add_to(m, 0, 40, &kernels);
	gpu_model_run(m, 2 * SECOND);
	for (int i = 0; i < 3; i++)
		work -= gpu_model_work_ns(m, member[i]);
	uint64_t alone = gpu_model_work_ns(m, single);
	gpu_model_run(m, 10 * SECOND);
	for (int i = 0; i < 3; i++)
		work += gpu_model_work_ns(m, member[i]);
	alone = gpu_model_work_ns(m, single) - alone;
	/* 60 % of the time, in which all three run; and 40 %. */
	assert_true((double)work > 1.65 * 10 * (double)SECOND);
	assert_true(fabs((double)alone / (10.0 * (double)SECOND) - 0.4) < 0.02);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

/*
 * A member ends during the lease: the others get its part at once, and the lease goes on. The group ends with its last member.
 */
static void test_member_ends(void **state)
{
	struct gpu_model *m = model_new(5);
	int a = add_to(m, FIRST, 30, &kernels), b = add_to(m, FIRST, 30, &kernels);
	int c = add_to(m, 0, 40, &kernels);
	uint64_t before[ARBITER_MAX_TENANTS] = { 0 };

	gpu_model_run(m, 1 * SECOND);
	while (arbiter_state(gpu_model_arbiter(m), a) != LEASE_PACED)
		gpu_model_run(m, 100 * US);
	gpu_model_remove(m, a);
	gpu_model_run(m, 500 * MS);
	note(m, before, c + 1);
	gpu_model_run(m, 5 * SECOND);
	/* 30 beside 40. */
	assert_true(fabs(sm_share(m, before, b, 5 * SECOND) - 100.0 * 3 / 7) < 1.5);
	gpu_model_remove(m, b);
	gpu_model_run(m, 1 * SECOND);
	note(m, before, c + 1);
	gpu_model_run(m, 1 * SECOND);
	assert_true(sm_share(m, before, c, 1 * SECOND) > 99);
	assert_int_equal(arbiter_state(gpu_model_arbiter(m), c), LEASE_FREE);
	/* Its number is free again: as many as there ever may be. */
	for (int i = 0; i < ARBITER_MAX_TENANTS - 1; i++)
		assert_true(arbiter_add(gpu_model_arbiter(m), gpu_model_now_ns(m),
					(struct arbiter_share){ 0, 100, 0 }) >= 0);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

/* Members change groups while they work. Without a group they take turns as single tenants again. */
static void test_changes_groups(void **state)
{
	struct gpu_model *m = model_new(6);
	int a = add_to(m, FIRST, 50, &kernels), b = add_to(m, FIRST, 50, &kernels);
	uint64_t before[ARBITER_MAX_TENANTS] = { 0 };

	for (int i = 0; i < 40; i++) {
		gpu_model_set_group(m, i % 2 ? a : b, (uint32_t)(i % 3), 100);
		gpu_model_run(m, 60 * MS);
	}
	gpu_model_set_group(m, a, 0, 100);
	gpu_model_set_group(m, b, 0, 100);
	gpu_model_run(m, 1 * SECOND);
	note(m, before, b + 1);
	gpu_model_run(m, 4 * SECOND);
	assert_true(fabs(sm_share(m, before, a, 4 * SECOND) - 49.5) < 1.5);
	assert_true(fabs(sm_share(m, before, b, 4 * SECOND) - 49.5) < 1.5);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

/* A member is frozen during its work, then paused and resumed: the others go on, and later it gets its share again. */
static void test_stopped_and_paused(void **state)
{
	struct gpu_model *m = model_new(7);
	int a = add_to(m, FIRST, 50, &kernels), b = add_to(m, FIRST, 25, &kernels);
	uint64_t before[ARBITER_MAX_TENANTS] = { 0 };

	gpu_model_run(m, 1 * SECOND);
	gpu_model_set_stopped(m, a, true);
	gpu_model_run(m, 500 * MS);
	note(m, before, b + 1);
	gpu_model_run(m, 1 * SECOND);
	assert_true(sm_share(m, before, b, 1 * SECOND) > 98);
	gpu_model_set_stopped(m, a, false);
	arbiter_set_paused(gpu_model_arbiter(m), b, true);
	gpu_model_run(m, 500 * MS);
	note(m, before, b + 1);
	gpu_model_run(m, 1 * SECOND);
	assert_true(sm_share(m, before, a, 1 * SECOND) > 98);
	assert_true(sm_share(m, before, b, 1 * SECOND) < 0.1);
	arbiter_set_paused(gpu_model_arbiter(m), b, false);
	gpu_model_run(m, 500 * MS);
	note(m, before, b + 1);
	gpu_model_run(m, 3 * SECOND);
	assert_true(fabs(sm_share(m, before, a, 3 * SECOND) - 50) < 1);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

/*
 * A member with false reports: tenants outside its group lose nothing, and the honest member loses what the hardware gives to
 * the false one. If a member reports to be busy always, the group overruns its lease, and the whole group pays for that.
 */
static void test_liars(void **state)
{
	for (int lie = LIE_IDLE; lie <= LIE_GARBAGE; lie++) {
		struct gpu_model *m = model_new(8);
		struct gpu_model_load lying = kernels;
		uint64_t before[ARBITER_MAX_TENANTS] = { 0 };
		int honest, other;

		lying.lie = (enum lie)lie;
		honest = add_to(m, FIRST, 30, &kernels);
		add_to(m, FIRST, 30, &lying);
		other = add_to(m, 0, 40, &kernels);
		gpu_model_run(m, 2 * SECOND);
		note(m, before, other + 1);
		gpu_model_run(m, 5 * SECOND);
		assert_true(sm_share(m, before, honest, 5 * SECOND) > (lie == LIE_BUSY ? 5 : 25));
		assert_true(sm_share(m, before, other, 5 * SECOND) > 35);
		assert_int_equal(gpu_model_violations(m), 0);
		gpu_model_free(m);
	}
}

/* A kernel that waits for the host is at work for ever, and is not waited for. */
static void test_stuck_member_holds_no_other(void **state)
{
	struct gpu_model *m = model_new(9);
	struct gpu_model_load persistent = { .kernel_ns = 3600 * SECOND,
					     .part = 0.01,
					     .prediction = 1e-6 };
	int a = add_to(m, FIRST, 80, &persistent), b = add_to(m, FIRST, 10, &kernels);
	uint64_t before[ARBITER_MAX_TENANTS] = { 0 };

	gpu_model_run(m, 2 * SECOND);
	note(m, before, b + 1);
	gpu_model_run(m, 3 * SECOND);
	assert_true(sm_share(m, before, b, 3 * SECOND) > 95);
	assert_true(gpu_model_sm_ns(m, a) > 0);
	gpu_model_free(m);
}

/* By hand: an index that is no group or no tenant is refused, and changes nothing. */
static void test_nonsense(void **state)
{
	struct bench b = bench_new();
	struct arbiter_config config = arbiter_default_config();
	struct arbiter *other;
	int t = bench_add(&b, 50, 100), more = 0;

	assert_int_equal(arbiter_set_space_group(b.arbiter, -1, FIRST, 100), -EINVAL);
	assert_int_equal(arbiter_set_space_group(b.arbiter, 5, FIRST, 100), -EINVAL);
	assert_int_equal(arbiter_set_space_group(b.arbiter, ARBITER_MAX_TENANTS, FIRST, 100),
			 -EINVAL);
	assert_int_equal(arbiter_set_space_group(b.arbiter, t, 0, 100), 0);
	assert_int_equal(arbiter_set_space_group(b.arbiter, t, UINT32_MAX, 100), 0);
	assert_int_equal(arbiter_set_space_group(b.arbiter, t, UINT32_MAX, 100), 0);
	/* The group's own number is no tenant's. */
	assert_int_equal(arbiter_set_space_group(b.arbiter, t + 1, FIRST, 100), -EINVAL);
	bench_work(&b, t);
	bench_step(&b, 1 * MS);
	assert_int_equal(bench_state(&b, t), LEASE_GO);
	assert_true(arbiter_is_active(b.arbiter, t));
	/* No room for one more group: it stays where it was. */
	while (arbiter_add(b.arbiter, b.now, (struct arbiter_share){ 0, 100, 0 }) >= 0)
		more++;
	assert_int_equal(more, ARBITER_MAX_TENANTS - 2);
	assert_int_equal(arbiter_set_space_group(b.arbiter, t + 2, FIRST, 100), -ENOSPC);
	assert_int_equal(arbiter_set_space_group(b.arbiter, t + 2, UINT32_MAX, 100), 0);
	bench_step(&b, 1 * MS);
	arbiter_remove(b.arbiter, t + 2);
	arbiter_remove(b.arbiter, t);
	bench_step(&b, 1 * MS);
	arbiter_free(b.arbiter);

	config.policy = ARBITER_POLICY_FEEDBACK;
	other = arbiter_new(&config);
	t = arbiter_add(other, 0, (struct arbiter_share){ 50, 100, 0 });
	assert_int_equal(arbiter_set_space_group(other, t, FIRST, 100), -EINVAL);
	arbiter_free(other);
}

/*
 * By hand: a member reports next to no work while it is alone, and then as much as it can. At that speed the work takes more
 * nanoseconds than 64 bits hold.
 */
static void test_charge_beyond_64_bits(void **state)
{
	struct bench b = bench_new();
	int liar = bench_add(&b, 50, 100), other = bench_add(&b, 20, 100);

	assert_int_equal(arbiter_set_space_group(b.arbiter, liar, FIRST, 100), 0);
	assert_int_equal(arbiter_set_space_group(b.arbiter, other, FIRST, 100), 0);
	for (int i = 0; i < 1000; i++) {
		bench_work(&b, liar);
		b.seen[liar].busy_ns += MS;
		b.seen[liar].work_ns += i % 300 == 299;
		bench_step(&b, MS);
	}
	for (int i = 0; i < 1000; i++) {
		bench_work(&b, liar);
		bench_work(&b, other);
		b.seen[liar].busy_ns += MS;
		b.seen[other].busy_ns += MS;
		b.seen[liar].work_ns += SECOND;
		bench_step(&b, MS);
	}
	assert_int_equal(arbiter_account(b.arbiter, liar).charged_ns, UINT64_MAX);
	assert_int_equal(arbiter_charged_ns(b.arbiter, liar), UINT64_MAX);
	arbiter_free(b.arbiter);
}

/* A member that reports more busy time than there can be does not make the group's time overflow. */
static void test_member_reports_too_much(void **state)
{
	struct bench b = bench_new();
	const int members[] = { bench_add(&b, 30, 100), bench_add(&b, 30, 100) };
	const int group = 2;

	for (int i = 0; i < 2; i++)
		assert_int_equal(arbiter_set_space_group(b.arbiter, members[i], FIRST, 100), 0);
	bench_run_for(&b, 5 * MS);
	/* Both worked between two samples, so only their reports show how much each did. */
	for (int i = 0; i < 2; i++) {
		b.seen[members[i]].launches++;
		b.seen[members[i]].busy_ns += i == 0 ? UINT64_MAX : MS;
	}
	bench_step(&b, 2 * MS);
	bench_step(&b, 2 * MS);
	double charged_ms = (double)arbiter_account(b.arbiter, group).charged_ns / MS;
	assert_true(charged_ms > 1.5);
	arbiter_free(b.arbiter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups_take_turns),
		cmocka_unit_test(test_group_is_charged_by_the_wall),
		cmocka_unit_test(test_member_ends),
		cmocka_unit_test(test_changes_groups),
		cmocka_unit_test(test_stopped_and_paused),
		cmocka_unit_test(test_liars),
		cmocka_unit_test(test_stuck_member_holds_no_other),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_charge_beyond_64_bits),
		cmocka_unit_test(test_member_reports_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
