/*
 * Space groups in long random runs. First with random inputs and no GPU: the invariants must hold. Then on the simulated GPU,
 * with members that start and end: a member that wants all it can get has its guarantee. A seed that fails can be run again by
 * itself: test_space_soak SEED.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../lease/gpu_model.h"

#define MOST 16
#define GROUPS 4 /* and 0: none */

static uint64_t first_seed = 1;

struct player {
	bool used, paused;
	uint32_t group;
	struct arbiter_observation seen;
	uint64_t charged_ns;
};

static void change_observation(uint64_t *random, struct arbiter_observation *seen)
{
	uint64_t dice = random_next(random);

	switch (dice % 16) {
	case 0: seen->stopped = !seen->stopped && dice >> 60 == 0; break;
	case 1: seen->busy_ns = random_next(random); break;
	case 2: seen->inflight_ns = random_next(random) >> (dice >> 58); break;
	case 3: seen->spent += random_next(random) >> (dice >> 58); break;
	case 4: seen->work_ns += random_next(random) >> (dice >> 58); break;
	case 5:
	case 6: seen->waiting = dice >> 32 & 1; break;
	case 7: seen->launching = (dice >> 32) % 4 == 0; break;
	case 8: seen->has_doorbell = dice >> 32 & 1; break;
	default:
		seen->busy = dice >> 32 & 1;
		seen->busy_ns += seen->busy ? 100 * US : 0;
		seen->spent += 50 * US;
		seen->work_ns += 60 * US;
		seen->launches += seen->busy;
		break;
	}
}

static struct player *find_player(struct player *players, int index)
{
	assert_in_range(index, 0, ARBITER_MAX_TENANTS - 1);
	return &players[index];
}

static void change_tenants(struct arbiter *a, struct player *players, int *count, uint64_t now,
			   uint64_t *random)
{
	struct arbiter_share share = { (double)random_between(random, 0, 60), 100,
				       (int)random_between(random, 0, 2) };
	int i = (int)(random_next(random) % ARBITER_MAX_TENANTS);

	if (random_next(random) % 2)
		share.limit_pct = fmax(share.cores_pct, (double)random_between(random, 1, 100));
	if (*count < MOST) {
		int index = arbiter_add(a, now, share);

		assert_true(!find_player(players, index)->used);
		players[index] = (struct player){ .used = true };
		++*count;
		return;
	}
	while (!players[i].used)
		i = (i + 1) % ARBITER_MAX_TENANTS;
	switch (random_next(random) % 4) {
	case 0:
		arbiter_remove(a, i);
		players[i].used = false;
		--*count;
		break;
	case 1: assert_int_equal(arbiter_set_share(a, i, share), 0); break;
	case 2:
		players[i].paused = !players[i].paused;
		arbiter_set_paused(a, i, players[i].paused);
		break;
	default:
		players[i].group = (uint32_t)random_between(random, 0, GROUPS);
		assert_int_equal(arbiter_set_space_group(a, i, players[i].group, 100), 0);
		break;
	}
}

/*
 * Under leases, only members of one group, or one tenant without a group, may run at the same time, each as its state allows.
 */
static void check(const struct arbiter *a, struct player *players)
{
	int going = -1;

	for (int i = 0; i < ARBITER_MAX_TENANTS; i++) {
		struct player *p = &players[i];
		enum lease_state state = arbiter_state(a, i);
		struct arbiter_account account;

		if (!p->used)
			continue;
		account = arbiter_account(a, i);
		assert_true(account.charged_ns >= p->charged_ns);
		p->charged_ns = account.charged_ns;
		assert_true(isfinite(account.weight) && account.weight > 0);
		if (p->paused)
			assert_true(state == LEASE_STOP || state == LEASE_CLOSING);
		assert_true(state != LEASE_PACED || p->group);
		if (arbiter_mode(a) != ARBITER_LEASES || state == LEASE_STOP ||
		    state == LEASE_CLOSING)
			continue;
		assert_true(state != LEASE_FREE);
		assert_true(arbiter_has_lease(a, i));
		if (going >= 0)
			assert_true(p->group && p->group == players[going].group);
		going = i;
	}
}

static void run_without_sense(uint64_t seed)
{
	struct arbiter_config config = arbiter_default_config();
	struct arbiter *a = arbiter_new(&config);
	struct player *players = calloc(ARBITER_MAX_TENANTS, sizeof(*players));
	uint64_t random = seed, now = SECOND, next = now;
	int count = 0;

	for (int step = 0; step < 4000; step++) {
		if (random_next(&random) % 50 == 0)
			change_tenants(a, players, &count, now, &random);
		for (int i = 0; i < ARBITER_MAX_TENANTS; i++) {
			if (!players[i].used)
				continue;
			if (random_next(&random) % 4 == 0)
				change_observation(&random, &players[i].seen);
			arbiter_observe(a, i, &players[i].seen);
		}
		now = random_next(&random) % 4 ? next : now + random_between(&random, 0, 30 * MS);
		next = arbiter_step(a, now);
		assert_true(next > now);
		check(a, players);
	}
	free(players);
	arbiter_free(a);
}

static void test_without_sense(void **state)
{
	for (uint64_t seed = first_seed; seed < first_seed + 40; seed++)
		run_without_sense(seed);
}

/* Three that are hungry, in two groups or one, and others that come, work for a while, and go. */
static void run_with_members(uint64_t seed, double *worst)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct gpu_model *m;
	static const struct gpu_model_load resting;
	struct gpu_model_load loads[3];
	uint64_t random = seed, before[3], begun;
	static const double cores[] = { 35, 20, 10 };
	int hungry[3], guest[5], guests = 0;

	config.seed = seed;
	config.contended = 0.8 + 0.2 * (double)(random_next(&random) % 2);
	m = gpu_model_new(&config);
	for (int i = 0; i < 3; i++) {
		loads[i] = (struct gpu_model_load){ .kernel_ns = random_between(&random, 30 * US,
										3 * MS),
						    .pull = 1 + (double)(random_next(&random) % 3) };
		hungry[i] = gpu_model_add(m, (struct arbiter_share){ cores[i], 100, 0 }, &resting);
		gpu_model_set_group(m, hungry[i], 1 + (uint32_t)(random_next(&random) % 2), 100);
	}
	/* Each alone at first, so that its speed is known. */
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 3; k++)
			gpu_model_set_load(m, hungry[k], k == i ? &loads[k] : &resting);
		gpu_model_run(m, 1 * SECOND);
	}
	for (int i = 0; i < 3; i++)
		gpu_model_set_load(m, hungry[i], &loads[i]);
	gpu_model_run(m, 1 * SECOND);
	begun = gpu_model_now_ns(m);
	for (int i = 0; i < 3; i++)
		before[i] = gpu_model_sm_ns(m, hungry[i]);
	for (int step = 0; step < 40; step++) {
		struct gpu_model_load load = { .kernel_ns = random_between(&random, 20 * US, 2 * MS),
					       .part = (double)random_between(&random, 1, 10) / 10,
					       .burst_ns = random_between(&random, 1 * MS, 50 * MS),
					       .think_ns = 1 * MS,
					       .think_max_ns = 40 * MS };

		if (guests < 5) {
			guest[guests] = gpu_model_add(m, (struct arbiter_share){ 4, 100, 0 }, &load);
			gpu_model_set_group(m, guest[guests++],
					    (uint32_t)(random_next(&random) % 3), 100);
		} else {
			gpu_model_remove(m, guest[--guests]);
		}
		gpu_model_run(m, random_between(&random, 20 * MS, 300 * MS));
	}
	for (int i = 0; i < 3; i++) {
		double got = 100.0 * (double)(gpu_model_sm_ns(m, hungry[i]) - before[i]) /
			     (double)(gpu_model_now_ns(m) - begun);

		/*
		 * As a part of the hardware's speed while kernels contend. If guarantees add up to more, members that were
		 * never alone may get more than their guarantee.
		 */
		*worst = fmin(*worst, got / config.contended - cores[i]);
		if (got < (config.contended < 1 ? 0.7 * cores[i] * config.contended : cores[i] - 1))
			fail_msg("seed %llu: %.2f of %.0f", (unsigned long long)seed, got, cores[i]);
	}
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

static void test_with_members(void **state)
{
	double worst = 100;

	for (uint64_t seed = first_seed; seed < first_seed + 20; seed++)
		run_with_members(seed, &worst);
	printf("the least share in 20 runs: its guarantee and %+.2f points\n", worst);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_sense),
		cmocka_unit_test(test_with_members),
	};

	if (argc > 1)
		first_seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
