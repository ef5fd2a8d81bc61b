/*
 * Elastic against static limits, on the simulated GPU: three tenants with phases of work and rest.
 *
 * The trace: each tenant by turns works (exponential, mean 4 s) and rests (exponential, mean 3 s),
 * each phase cut to 0.3 to 20 s, drawn by splitmix64 from the seed 20261121 and the tenant's number,
 * and begins with a rest. While a tenant works it asks for all it can get:
 *     a  kernels of 0.2 to 1.2 ms, uniform                      a model of long kernels
 *     b  kernels of 40 to 60 us                                 many short ones
 *     c  kernels of 0.5 to 2 ms, 12 ms of them, then 3 to 5 ms   a step, then the host
 *        of rest                                                 (75 % of the card alone)
 * Guarantees and caps: 40, 30, 20. Static: the caps. Elastic: the same with the policy at its defaults.
 *
 * Prints the figures that docs/internals/lending.md quotes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/lease/rules/lend.h"
#include "../gpu_model.h"

#define TENANTS 3
#define RUN_NS (1800 * SECOND)
#define TICK_NS MS
#define SEED 20261121
#define RETURNS_MOST 2000
/* An owner that is not back after this time counts as this late. */
#define BACK_MOST_NS (500 * MS)

static const double guarantee_pct[TENANTS] = { 40, 30, 20 };
static const struct gpu_model_load loads[TENANTS] = {
	{ .kernel_ns = 200 * US, .kernel_max_ns = 1200 * US },
	{ .kernel_ns = 40 * US, .kernel_max_ns = 60 * US },
	{ .kernel_ns = 500 * US,
	  .kernel_max_ns = 2 * MS,
	  .burst_ns = 12 * MS,
	  .think_ns = 3 * MS,
	  .think_max_ns = 5 * MS },
};

/* One tenant's way through the trace. */
struct player {
	int index;
	uint64_t chance;
	bool works;
	uint64_t until_ns;
	/* Since its return to work. */
	bool awaited;
	uint64_t since_ns, work_before_ns;
	double first_second_pct; /* the least got in a first second of work, of its guarantee */
	bool first_second_seen;
};

struct outcome {
	double busy_pct, work_pct;
	uint64_t back_ns[RETURNS_MOST];
	unsigned returns;
	double first_second_pct;
	double most_lent_pct;
	uint64_t violations;
};

static uint64_t draw_phase(struct player *p)
{
	double mean = p->works ? 4 : 3;
	double chance = (double)(random_next(&p->chance) >> 11) / 9007199254740992.0;
	double seconds = -mean * log(1 - chance);

	return (uint64_t)(fmin(fmax(seconds, 0.3), 20) * (double)SECOND);
}

static void turn_phase(struct gpu_model *m, struct player *p, int i, uint64_t now_ns)
{
	static const struct gpu_model_load rest;
	struct gpu_model_load load = p->works ? rest : loads[i];

	p->works = !p->works;
	p->until_ns = now_ns + draw_phase(p);
	load.start_ns = 0;
	gpu_model_set_load(m, p->index, &load);
	p->awaited = p->works;
	p->first_second_seen = !p->works;
	p->since_ns = now_ns;
	p->work_before_ns = gpu_model_work_ns(m, p->index);
}

static void await_owner(struct gpu_model *m, struct player *p, int i, uint64_t now_ns,
			struct outcome *outcome)
{
	double due = guarantee_pct[i] / 100 * (double)(now_ns - p->since_ns);
	double got = (double)(gpu_model_work_ns(m, p->index) - p->work_before_ns);

	if (p->awaited && now_ns > p->since_ns &&
	    (got >= due || now_ns - p->since_ns >= BACK_MOST_NS)) {
		assert_true(outcome->returns < RETURNS_MOST);
		outcome->back_ns[outcome->returns++] = now_ns - p->since_ns;
		p->awaited = false;
	}
	if (!p->first_second_seen && now_ns - p->since_ns >= SECOND) {
		p->first_second_seen = true;
		outcome->first_second_pct = fmin(outcome->first_second_pct, 100 * got / due);
	}
}

static void lend(struct gpu_model *m, const struct lend_config *config,
		 struct lend_tenant tenants[TENANTS], const struct player *players,
		 struct outcome *outcome)
{
	struct lend_tenant *list[TENANTS];

	for (int i = 0; i < TENANTS; i++) {
		struct arbiter_account account = arbiter_account(gpu_model_arbiter(m),
								 players[i].index);

		list[i] = &tenants[i];
		list[i]->charged_ns = account.charged_ns;
		list[i]->waited_ns = account.waited_ns;
	}
	lend_decide(config, list, TENANTS, config->period_ns);
	for (int i = 0; i < TENANTS; i++) {
		outcome->most_lent_pct = fmax(outcome->most_lent_pct,
					      list[i]->limit_now_pct - guarantee_pct[i]);
		gpu_model_set_limit(m, players[i].index, list[i]->limit_now_pct);
	}
}

static int by_length(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static struct outcome play(bool is_elastic)
{
	struct gpu_model_config config = gpu_model_default_config();
	struct lend_config policy = lend_default_config();
	struct gpu_model *m = gpu_model_new(&config);
	struct lend_tenant tenants[TENANTS] = { 0 };
	struct player players[TENANTS] = { 0 };
	struct outcome outcome = { .first_second_pct = 1000 };
	uint64_t work_ns = 0, charged_ns = 0;
	uint64_t begun_ns = gpu_model_now_ns(m);

	for (int i = 0; i < TENANTS; i++) {
		static const struct gpu_model_load rest;
		struct arbiter_share share = { guarantee_pct[i], guarantee_pct[i] };

		tenants[i] = (struct lend_tenant){ .cores_pct = guarantee_pct[i],
						   .limit_pct = guarantee_pct[i],
						   .may_borrow = is_elastic };
		players[i].index = gpu_model_add(m, share, &rest);
		players[i].chance = SEED + (uint64_t)i;
		players[i].until_ns = draw_phase(&players[i]);
		players[i].first_second_seen = true;
	}
	for (uint64_t now_ns = 0; now_ns < RUN_NS; now_ns += TICK_NS) {
		for (int i = 0; i < TENANTS; i++) {
			if (now_ns >= players[i].until_ns)
				turn_phase(m, &players[i], i, now_ns);
			await_owner(m, &players[i], i, now_ns, &outcome);
		}
		if (now_ns % policy.period_ns == 0)
			lend(m, &policy, tenants, players, &outcome);
		gpu_model_run(m, begun_ns + now_ns + TICK_NS - gpu_model_now_ns(m));
	}
	for (int i = 0; i < TENANTS; i++) {
		work_ns += gpu_model_work_ns(m, players[i].index);
		charged_ns += arbiter_account(gpu_model_arbiter(m), players[i].index).charged_ns;
	}
	outcome.work_pct = 100 * (double)work_ns / (double)RUN_NS;
	outcome.busy_pct = 100 * (double)charged_ns / (double)RUN_NS;
	outcome.violations = gpu_model_violations(m);
	qsort(outcome.back_ns, outcome.returns, sizeof(outcome.back_ns[0]), by_length);
	gpu_model_free(m);
	return outcome;
}

static double back_ms(const struct outcome *outcome, double part)
{
	unsigned i = (unsigned)(part * (double)(outcome->returns - 1) + 0.5);

	return (double)outcome->back_ns[i] / (double)MS;
}

static void print_outcome(const char *name, const struct outcome *outcome)
{
	print_message("%-8s busy %5.2f %%  work %5.2f %%  %u returns: at the guarantee after %.0f ms "
		      "(median), %.0f (99 %%), %.0f (all); first second: at least %.1f %% of it\n",
		      name, outcome->busy_pct, outcome->work_pct, outcome->returns,
		      back_ms(outcome, 0.5), back_ms(outcome, 0.99), back_ms(outcome, 1),
		      outcome->first_second_pct);
}

static void test_elastic_against_static(void **state)
{
	struct outcome fixed = play(false), elastic = play(true);

	print_outcome("static", &fixed);
	print_outcome("elastic", &elastic);
	print_message("elastic: busy %+.1f %%, work %+.1f %%\n",
		      100 * (elastic.busy_pct / fixed.busy_pct - 1),
		      100 * (elastic.work_pct / fixed.work_pct - 1));
	assert_int_equal(fixed.violations, 0);
	assert_int_equal(elastic.violations, 0);
	assert_true(elastic.returns > 600);
	assert_true(fixed.most_lent_pct <= 0);
	assert_true(elastic.busy_pct >= 1.37 * fixed.busy_pct);
	assert_true(elastic.work_pct >= 1.26 * fixed.work_pct);
	assert_true(back_ms(&elastic, 0.99) <= 25);
	assert_true(elastic.first_second_pct >= 95);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elastic_against_static),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
