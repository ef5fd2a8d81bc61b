/*
 * Random tenants on four simulated GPUs, each on one or several of them (gang_model.h): no tenant waits for ever, and each gets
 * about its guarantee.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gang_model.h"

#define RUNS 8
#define RUN_NS (4 * SECOND)
#define MOST 9

struct member {
	struct gang_model_load load;
	double cores;
	uint64_t before;
};

/* Draws tenants that fit the devices; returns how many. */
static int draw(uint64_t *random, struct member *members)
{
	double left[4] = { 100, 100, 100, 100 };
	int count = 0;

	for (int i = 0; i < MOST; i++) {
		unsigned devices = (unsigned)random_between(random, 1, 15);
		double cores = (double)random_between(random, 5, 40);
		struct gang_model_load *l = &members[count].load;

		if (i % 2)
			devices = 1u << random_between(random, 0, 3);
		for (int d = 0; d < 4; d++)
			if (devices >> d & 1 && left[d] < cores)
				cores = left[d];
		if (cores < 5)
			continue;
		for (int d = 0; d < 4; d++)
			left[d] -= devices >> d & 1 ? cores : 0;
		*l = (struct gang_model_load){
			.devices = devices,
			.kernel_ns = random_between(random, 5, 100) * 10 * US,
			.kernels = (unsigned)random_between(random, 1, 30),
			.collective_ns = random_between(random, 5, 200) * 10 * US,
		};
		l->kernel_max_ns = l->kernel_ns * 3 / 2;
		members[count++].cores = cores;
	}
	return count;
}

/* Collectives a second of a tenant that has its devices to itself. */
static double rate_alone(const struct gang_model_load *load)
{
	struct gang_model_config config = gang_model_default_config();
	struct gang_model *m;
	double rate;
	int t;

	config.devices = 4;
	m = gang_model_new(&config);
	t = gang_model_add(m, (struct arbiter_share){ .limit_pct = 100 }, load);
	gang_model_run(m, SECOND);
	rate = (double)gang_model_collectives(m, t);
	gang_model_free(m);
	return rate;
}

struct worst {
	double gang, single; /* as a part of the guarantee */
	uint64_t wait_ns, collective_ns;
};

static void look_at(struct gang_model *m, int tenant, const struct member *member,
		    struct worst *worst)
{
	bool is_gang = (member->load.devices & (member->load.devices - 1)) != 0;
	double rate = (double)(gang_model_collectives(m, tenant) - member->before) /
		      ((double)RUN_NS / (double)SECOND);
	double part = 100 * rate / rate_alone(&member->load) / member->cores;
	uint64_t wait_ns = gang_model_take_longest_wait_ns(m, tenant);
	uint64_t length_ns = gang_model_take_longest_collective_ns(m, tenant);

	if (is_gang && part < worst->gang)
		worst->gang = part;
	if (!is_gang && part < worst->single)
		worst->single = part;
	if (wait_ns > worst->wait_ns)
		worst->wait_ns = wait_ns;
	if (length_ns > worst->collective_ns)
		worst->collective_ns = length_ns;
	if (part < 0.85 || length_ns > 100 * MS)
		print_message("    a tenant on %x of %g %%: %.2f of it, waits %.0f ms, collective "
			      "%.0f ms\n",
			      member->load.devices, member->cores, part, (double)wait_ns / 1e6,
			      (double)length_ns / 1e6);
}

static void test_soak(void **state)
{
	struct worst worst = { .gang = 1e9, .single = 1e9 };

	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct gang_model_config config = gang_model_default_config();
		struct member members[MOST];
		uint64_t random = seed * 1000;
		int count = draw(&random, members);
		struct gang_model *m;

		config.devices = 4;
		config.seed = seed;
		if (seed % 2)
			config.arbiter.gang_turn = arbiter_default_config().gang_turn;
		m = gang_model_new(&config);
		for (int i = 0; i < count; i++)
			assert_int_equal(
				gang_model_add(m,
					       (struct arbiter_share){ .cores_pct = members[i].cores,
								       .limit_pct = 100 },
					       &members[i].load),
				i);
		/* All begin at once, in free run: the debts that this leaves are paid first. */
		gang_model_run(m, 4 * SECOND);
		for (int i = 0; i < count; i++) {
			members[i].before = gang_model_collectives(m, i);
			gang_model_take_longest_collective_ns(m, i);
			gang_model_take_longest_wait_ns(m, i);
		}
		gang_model_run(m, RUN_NS);
		for (int i = 0; i < count; i++)
			look_at(m, i, &members[i], &worst);
		assert_int_equal(gang_model_violations(m), 0);
		gang_model_free(m);
	}
	print_message("  of what was promised, gangs got %.2f at least, singles %.2f; longest wait "
		      "%.0f ms, "
		      "longest collective %.0f ms\n",
		      worst.gang, worst.single, (double)worst.wait_ns / 1e6,
		      (double)worst.collective_ns / 1e6);
	assert_true(worst.gang > 0.75);
	assert_true(worst.single > 0.9);
	assert_true(worst.wait_ns < 800 * MS);
	assert_true(worst.collective_ns < 600 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_soak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
