/*
 * What a tenant is found to use of the card alone, however it shares it; and what a group is found to do at the same
 * time, beside turns.
 */
#include <math.h>

#include "../rules.h"

#define GROUP 7

static const struct gpu_model_load full = { .kernel_ns = 500 * US },
				   small = { .kernel_ns = 500 * US, .part = 0.3 },
				   rests = { .kernel_ns = 500 * US,
					     .part = 0.4,
					     .burst_ns = 6 * MS,
					     .think_ns = 14 * MS };

static int add(struct gpu_model *m, uint32_t group, double cores, double limit,
	       const struct gpu_model_load *load)
{
	int t = gpu_model_add(m, (struct arbiter_share){ cores, limit, 0 }, load);

	if (group)
		gpu_model_set_group(m, t, group, limit);
	return t;
}

static struct arbiter_account account_of(struct gpu_model *m, int tenant)
{
	return arbiter_account(gpu_model_arbiter(m), tenant);
}

static void assert_part(const char *what, uint64_t of, uint64_t whole, double part, double within)
{
	double got = (double)of / (double)whole;

	if (!(fabs(got - part) < within))
		fail_msg("%s: %.3f, not %.3f", what, got, part);
}

/* Busy and filling as it is alone, whoever else is there. */
static void assert_demand(struct gpu_model *m, int tenant, double busy, double filled)
{
	struct arbiter_account a = account_of(m, tenant);

	assert_part("busy", a.busy_ns, a.busy_ns + a.pause_ns, busy, 0.06);
	assert_part("filled", a.filled_ns, a.busy_ns + a.pause_ns, filled, 0.06);
}

static void test_in_turns(void **state)
{
	struct gpu_model *m = model_new(1);
	int a = add(m, 0, 40, 100, &full), b = add(m, 0, 30, 100, &small);
	int c = add(m, 0, 30, 100, &rests);

	gpu_model_run(m, 10 * SECOND);
	assert_demand(m, a, 1, 1);
	assert_demand(m, b, 1, 0.3);
	assert_demand(m, c, 0.3, 0.12);
	gpu_model_free(m);
}

/* Free run tells nothing; who is measured has GO there, and as much of the card. */
static void test_alone(void **state)
{
	struct gpu_model *m = model_new(2);
	int a = add(m, 0, 0, 100, &rests);
	uint64_t work;

	gpu_model_run(m, 2 * SECOND);
	assert_int_equal(account_of(m, a).filled_ns, 0);
	arbiter_set_measured(gpu_model_arbiter(m), a, true);
	gpu_model_run(m, 100 * MS);
	work = gpu_model_work_ns(m, a);
	gpu_model_run(m, 5 * SECOND);
	assert_part("work", gpu_model_work_ns(m, a) - work, 5 * SECOND, 0.3, 0.02);
	assert_demand(m, a, 0.3, 0.12);
	arbiter_set_measured(gpu_model_arbiter(m), a, false);
	gpu_model_run(m, 100 * MS);
	assert_int_equal(arbiter_state(gpu_model_arbiter(m), a), LEASE_FREE);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
}

/* Of a group, alone in it as well. */
static void test_in_space(void **state)
{
	struct gpu_model *m = model_new(3);
	int a = add(m, GROUP, 40, 100, &full), b = add(m, GROUP, 30, 100, &rests), c;

	gpu_model_run(m, 10 * SECOND);
	/* Beside others it is slower, and for as much longer at work; its part of the SMs counts as filled. */
	assert_demand(m, a, 1, 1);
	assert_true(account_of(m, b).filled_ns >= account_of(m, b).busy_ns * 99 / 100);
	gpu_model_free(m);
	m = model_new(4);
	c = add(m, GROUP, 40, 100, &small);
	arbiter_set_measured(gpu_model_arbiter(m), c, true);
	gpu_model_run(m, 5 * SECOND);
	assert_int_equal(arbiter_state(gpu_model_arbiter(m), c), LEASE_GO);
	assert_demand(m, c, 1, 1);
	/* There was nobody to gain anything with. */
	assert_int_equal(account_of(m, c).group_turns_ns, 0);
	gpu_model_free(m);
}

/* What two did together, by what the group is told, is what they did, once the speed alone of each is known. */
static void test_gain(void **state)
{
	static const struct {
		const char *name;
		const struct gpu_model_load *load[2];
		double limit, contended, gain;
	} cases[] = {
		{ "both fill the card", { &full, &full }, 100, 0, 0 },
		{ "neither does", { &small, &small }, 100, 0, 1 },
		{ "one does", { &full, &small }, 100, 0, -1 },
		{ "a third lost by contention", { &full, &full }, 100, 0.67, -0.33 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gpu_model_config config = gpu_model_default_config();
		struct arbiter_account a, b;
		uint64_t work = 0;
		struct gpu_model *m;
		double gain, did;
		int t[2];

		config.contended = cases[i].contended;
		m = gpu_model_new(&config);
		for (int k = 0; k < 2; k++)
			t[k] = add(m, GROUP, 40, cases[i].limit, cases[i].load[k]);
		gpu_model_run(m, SECOND);
		assert_int_equal(account_of(m, t[0]).group_turns_ns, 0);
		for (int k = 0; k < 2; k++) {
			gpu_model_set_stopped(m, t[k], true);
			gpu_model_run(m, SECOND);
			gpu_model_set_stopped(m, t[k], false);
			gpu_model_run(m, 100 * MS);
		}
		gpu_model_run(m, 3 * SECOND);
		a = account_of(m, t[0]);
		for (int k = 0; k < 2; k++)
			work -= gpu_model_work_ns(m, t[k]);
		gpu_model_run(m, 10 * SECOND);
		b = account_of(m, t[0]);
		for (int k = 0; k < 2; k++)
			work += gpu_model_work_ns(m, t[k]);
		gain = (double)(b.group_done_ns - a.group_done_ns) /
			       (double)(b.group_turns_ns - a.group_turns_ns) -
		       1;
		did = (double)work / (10.0 * (double)SECOND);
		say("%-36s %+5.2f (work %.2f)\n", cases[i].name, gain, did);
		/* By the truth where turns would leave nothing idle; -1: whatever that is. */
		if (cases[i].gain <= -1)
			assert_part(cases[i].name, (uint64_t)(1e9 * (1 + gain)), 1000000000, did,
				    0.06);
		else if (!(fabs(gain - cases[i].gain) < 0.08))
			fail_msg("%s: %.3f, not %.3f", cases[i].name, gain, cases[i].gain);
		gpu_model_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_turns),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_in_space),
		cmocka_unit_test(test_gain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
