/*
 * How full a small cluster gets, on virtual time and the same tasks for all: the policy "fragmentation" against HAMi's formulas
 * and fragmentation gradient descent, and "binpack" against HAMi's own, which it is to the last card. bench/cluster_packing.c
 * has the whole cluster, and more seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "packing/experiments.h"

#define SEEDS 6
#define SEED_FIRST 1

typedef struct packing_result experiment_fn(const struct packing_policy *,
					    const struct packing_setting *, double, uint64_t);

/* The mean of the seeds. */
struct mean {
	double packed, at_demand;
};

static struct mean mean_of(experiment_fn *run, const char *policy, bool has_models, unsigned scale,
			   double how_much)
{
	const struct packing_setting setting = { .has_models = has_models, .scale = scale };
	struct mean mean = { 0 };
	for (unsigned s = 0; s < SEEDS; s++) {
		struct packing_result r = run(packing_policy_find(policy), &setting, how_much,
					      SEED_FIRST + s);
		mean.packed += r.packed / SEEDS;
		mean.at_demand += r.at_demand / SEEDS;
	}
	print_message("%-20s %s: %.2f %% packed, %.2f %% at full demand\n", policy,
		      has_models ? "with models" : "sizes alone", 100 * mean.packed,
		      100 * mean.at_demand);
	return mean;
}

static void fill(void **state)
{
	struct mean ours = mean_of(packing_fill, "allot-fragmentation", false, 16, 1.2);
	struct mean fgd = mean_of(packing_fill, "fgd", false, 16, 1.2);
	struct mean hami = mean_of(packing_fill, "hami-binpack", false, 16, 1.2);
	struct mean any = mean_of(packing_fill, "random", false, 16, 1.2);
	assert_true(ours.packed >= hami.packed && ours.packed >= fgd.packed - 0.0005);
	assert_true(ours.packed > any.packed + 0.01);
}

/* Where a third of the tasks can't use any card, more is at stake. */
static void fill_with_models(void **state)
{
	struct mean ours = mean_of(packing_fill, "allot-fragmentation", true, 16, 1.2);
	struct mean fgd = mean_of(packing_fill, "fgd", true, 16, 1.2);
	struct mean hami = mean_of(packing_fill, "hami-binpack", true, 16, 1.2);
	assert_true(ours.at_demand > hami.at_demand + 0.02 && ours.at_demand > fgd.at_demand + 0.02);
	assert_true(ours.packed >= hami.packed - 0.001 && ours.packed >= fgd.packed - 0.001);
}

static void binpack_is_hamis(void **state)
{
	const struct packing_setting setting = { .has_models = true, .scale = 32 };
	for (unsigned s = 0; s < 2; s++) {
		struct packing_result a = packing_fill(packing_policy_find("allot-binpack"),
						       &setting, 1.2, SEED_FIRST + s);
		struct packing_result b = packing_fill(packing_policy_find("hami-binpack"),
						       &setting, 1.2, SEED_FIRST + s);
		assert_true(a.packed == b.packed && a.at_first == b.at_first &&
			    a.at_demand == b.at_demand && a.failed == b.failed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(fill),
					    cmocka_unit_test(fill_with_models),
					    cmocka_unit_test(binpack_is_hamis) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
