/* Long random runs. Each step is checked for invariants. A seed that fails can be run again by itself: test_soak SEED. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu_model.h"
#include "scenes.h"

#define MOST 24

static uint64_t first_seed = 1;

/* Part one: no GPU, no sense; observations, changes and times at random. */

struct player {
	bool used, paused;
	struct arbiter_share share;
	struct arbiter_observation seen;
	uint64_t charged_ns;
	uint64_t counted_ns; /* time that steps counted since it was added */
};

static struct arbiter_share random_share(uint64_t *random)
{
	struct arbiter_share share = { 0, 100 };

	if (random_next(random) % 4)
		share.cores_pct = (double)random_between(random, 1, 1000) / 10;
	if (random_next(random) % 2)
		share.limit_pct = fmax(share.cores_pct,
				       (double)random_between(random, 1, 1000) / 10);
	if (random_next(random) % 2)
		share.priority = (int)random_between(random, 0, 4) - 2;
	return share;
}

static void change_observation(uint64_t *random, struct arbiter_observation *seen)
{
	uint64_t dice = random_next(random);

	switch (dice % 16) {
	case 0: seen->stopped = !seen->stopped && dice >> 60 == 0; break;
	case 1: seen->busy_ns = random_next(random); break;
	case 2: seen->inflight_ns = random_next(random) >> (dice >> 58); break;
	case 3:
		seen->launches += dice >> 63;
		seen->sync_points += dice >> 62 & 1;
		seen->gap_ns += (dice >> 40) % (400 * US);
		seen->working = (dice >> 32) % 4;
		break;
	case 4:
	case 5:
	case 6:
	case 7: seen->waiting = dice >> 32 & 1; break;
	case 8:
	case 9: seen->launching = (dice >> 32) % 4 == 0; break;
	default:
		seen->busy = dice >> 32 & 1;
		seen->busy_ns += seen->busy ? 100 * US : 0;
		break;
	}
}

/* In every second pair of runs there are no caps, so that tenants with short steps are sliced. */
static struct arbiter_share random_share_of(uint64_t seed, uint64_t *random)
{
	struct arbiter_share share = random_share(random);

	if (seed % 4 >= 2)
		share.limit_pct = 100;
	return share;
}

static void change_tenants(struct arbiter *arbiter, struct player *players, uint64_t now,
			   uint64_t seed, uint64_t *random)
{
	int i = (int)(random_next(random) % MOST);
	struct player *p = &players[i];

	if (!p->used) {
		struct arbiter_share share = random_share_of(seed, random);
		int index = arbiter_add(arbiter, now, share);

		assert_true(index >= 0 && index < MOST && !players[index].used);
		players[index] = (struct player){ .used = true, .share = share };
		return;
	}
	switch (random_next(random) % 3) {
	case 0:
		arbiter_remove(arbiter, i);
		p->used = false;
		break;
	case 1:
		p->share = random_share_of(seed, random);
		assert_int_equal(arbiter_set_share(arbiter, i, p->share), 0);
		break;
	default:
		p->paused = !p->paused;
		arbiter_set_paused(arbiter, i, p->paused);
		break;
	}
}

static uint64_t random_dt(uint64_t *random, uint64_t asked)
{
	uint64_t dice = random_next(random) % 1000;

	if (dice == 0)
		return random_between(random, 0, 100 * SECOND);
	if (dice < 20)
		return random_between(random, 0, 50 * MS);
	if (dice < 40)
		return 0;
	if (dice < 300)
		return random_between(random, 0, asked);
	return asked;
}

static int check_states(const struct arbiter *arbiter, const struct arbiter_config *config,
			struct player *players)
{
	enum arbiter_mode mode = arbiter_mode(arbiter);
	int holder = arbiter_holder(arbiter);
	int could = 0, going = 0, draining = 0;

	for (int i = 0; i < MOST; i++) {
		struct player *p = &players[i];
		struct arbiter_account account = arbiter_account(arbiter, i);
		double bucket = p->share.limit_pct / 100 * (double)config->window_ns;

		assert_true(p->used || account.state == LEASE_STOP);
		if (!p->used)
			continue;
		assert_true(isfinite(account.weight) && account.weight > 0);
		assert_true((double)account.tokens_ns <= bucket);
		assert_true(account.tokens_ns >= -(int64_t)config->debt_max_ns);
		assert_true(account.budget_ns >= -(int64_t)(2 * config->urgent_window_ns));
		assert_true(account.budget_ns <= (int64_t)config->urgent_window_ns);
		assert_true(account.charged_ns >= p->charged_ns);
		/* Never charged for more time than there was, but for leases it left unused. */
		assert_true(account.charged_ns <=
			    p->counted_ns + (account.leases + 1) * (2 * config->depth_ns +
								    config->start_limit_ns));
		p->charged_ns = account.charged_ns;
		if (mode == ARBITER_LEASES) {
			assert_true(account.state != LEASE_FREE);
			assert_true(account.state != LEASE_GO || holder == i);
		}
		/* Sliced, it is held as soon as it is above its cap. */
		assert_true(account.state != LEASE_FREE || p->share.limit_pct >= 100 ||
			    mode == ARBITER_SLICED);
		assert_true(!p->paused || account.state == LEASE_STOP ||
			    account.state == LEASE_CLOSING);
		going += account.state == LEASE_GO;
		draining += account.draining || account.state == LEASE_CLOSING;
		could += p->seen.waiting && !p->paused && !p->seen.stopped &&
			 (p->share.limit_pct >= 100 ||
			  (double)account.tokens_ns >=
				  fmin(bucket, fmax((double)config->cap_slice_most_ns,
						    (double)arbiter_quantum_ns(arbiter) / 2)));
	}
	if (mode != ARBITER_LEASES) {
		assert_int_equal(holder, -1);
		return 0;
	}
	assert_true(going <= 1);
	return could > 0 && !going && !draining;
}

static void fuzz(uint64_t seed, int steps)
{
	struct arbiter_config config = arbiter_default_config();
	struct arbiter *arbiter = arbiter_new(&config);
	struct player players[MOST] = { { .used = false } };
	uint64_t random = seed, now = SECOND, next = now, counted;
	int lost = 0;
	/* Some runs are calm, so that leases get to their end. */
	uint64_t calm = 1 + seed % 5 * 20;

	for (int s = 0; s < steps; s++) {
		uint64_t dt = random_dt(&random, next - now);

		if (random_next(&random) % (20 * calm) == 0)
			change_tenants(arbiter, players, now, seed, &random);
		now += dt;
		counted = dt < config.max_step_ns ? dt : config.max_step_ns;
		for (int i = 0; i < MOST; i++) {
			struct player *p = &players[i];

			if (!p->used)
				continue;
			p->counted_ns += counted;
			if (random_next(&random) % calm == 0)
				change_observation(&random, &p->seen);
			if (random_next(&random) % 50)
				arbiter_observe(arbiter, i, &p->seen);
		}
		next = arbiter_step(arbiter, now);
		assert_true(next > now && next - now <= config.max_step_ns);
		/* Twice in a row would be once too often; a third for observations left out. */
		lost = check_states(arbiter, &config, players) ? lost + 1 : 0;
		assert_true(lost <= 3);
	}
	arbiter_free(arbiter);
}

static void test_fuzz(void **state)
{
	for (uint64_t seed = first_seed; seed < first_seed + SCENES(40); seed++) {
		fuzz(seed, 60000);
	}
}

/* Part two: on the simulated GPU, with tenants that come, go, pause, stop, change and lie. */

static struct gpu_model_load random_load(uint64_t *random, bool wild)
{
	static const uint64_t lengths[] = { 20 * US, 100 * US, 500 * US, 2 * MS,
					    5 * MS,  50 * MS,  400 * MS };
	struct gpu_model_load load = {
		.kernel_ns = lengths[random_next(random) % (wild ? 7 : 5)],
		.late_report = random_next(random) % 2,
		.prediction = (double)random_between(random, 5, 20) / 10,
	};

	if (random_next(random) % 2)
		load.kernel_max_ns = 2 * load.kernel_ns;
	if (random_next(random) % 2) {
		load.burst_ns = random_between(random, 100 * US, 30 * MS);
		load.think_ns = random_between(random, 50 * US, 100 * MS);
		load.think_max_ns = 2 * load.think_ns;
		load.reports_sync_points = random_next(random) % 4 != 0;
	}
	if (wild && random_next(random) % 4 == 0)
		load.lie = (enum lie)(random_next(random) % 5);
	return load;
}

static void play(uint64_t seed, bool wild, uint64_t *steps)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct gpu_model *m;
	bool used[MOST] = { false }, stopped[MOST] = { false };
	uint64_t random = seed;
	int most = 2 + (int)(seed % 9);

	config.seed = seed;
	config.stall_every_ns = wild ? 300 * MS : 0;
	config.stall_ns = seed % 3 ? 10 * MS : 2 * SECOND;
	m = gpu_model_new(&config);
	for (int round = 0; round < 60; round++) {
		int i = (int)(random_next(&random) % (unsigned)most);
		struct gpu_model_load load = random_load(&random, wild);

		if (!used[i]) {
			int index = gpu_model_add(m, random_share_of(seed, &random), &load);

			used[index] = true;
			stopped[index] = false;
		} else {
			switch (random_next(&random) % 6) {
			case 0:
				gpu_model_remove(m, i);
				used[i] = false;
				break;
			case 1: gpu_model_set_share(m, i, random_share_of(seed, &random)); break;
			case 2:
				stopped[i] = !stopped[i];
				gpu_model_set_stopped(m, i, stopped[i]);
				break;
			default: gpu_model_set_load(m, i, &load); break;
			}
		}
		gpu_model_run(m, random_between(&random, MS, 100 * MS));
	}
	assert_int_equal(gpu_model_violations(m), 0);
	*steps += gpu_model_steps(m);
	gpu_model_free(m);
}

static void test_play(void **state)
{
	uint64_t steps = 0;

	for (uint64_t seed = first_seed; seed < first_seed + SCENES(60); seed++)
		play(seed, seed % 2, &steps);
	print_message("%llu steps\n", (unsigned long long)steps);
}

/*
 * No starvation: a tenant with demand, whose work ends within a drain, waits no longer than the others' turns: a quantum and a
 * drain for each, times their weight over its own (rounded up), and once more for the credit of tenants that returned.
 */
static void test_bounded_waiting(void **state)
{
	double worst = 0;

	for (uint64_t seed = first_seed; seed < first_seed + SCENES(40); seed++) {
		struct gpu_model_config config = gpu_model_default_config();
		struct gpu_model *m;
		uint64_t random = seed ^ 0xabcdef;
		int count = 2 + (int)(seed % 7);
		double cores[MOST];

		config.seed = seed;
		m = gpu_model_new(&config);
		for (int i = 0; i < count; i++) {
			struct gpu_model_load load = random_load(&random, false);

			cores[i] = (double)random_between(&random, 5, 30);
			assert_int_equal(
				gpu_model_add(m, (struct arbiter_share){ cores[i], 100 }, &load), i);
		}
		gpu_model_run(m, 5 * SECOND);
		for (int i = 0; i < count; i++) {
			double bound_ms = 5, waited_ms;

			for (int k = 0; k < count; k++)
				bound_ms += k == i ? 0 : (20 + 12) * (ceil(cores[k] / cores[i]) + 1);
			waited_ms = (double)gpu_model_take_longest_wait_ns(m, i) / 1e6;
			worst = fmax(worst, waited_ms / bound_ms);
			assert_true(waited_ms <= bound_ms);
		}
		assert_int_equal(gpu_model_violations(m), 0);
		gpu_model_free(m);
	}
	print_message("longest wait: %.0f %% of its bound\n", 100 * worst);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fuzz),
		cmocka_unit_test(test_play),
		cmocka_unit_test(test_bounded_waiting),
	};

	if (argc > 1)
		first_seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
