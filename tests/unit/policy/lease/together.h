/*
 * Tenants together on the simulated GPU: the result of each, beside its request. Each result is a line of the table that
 * together_print() prints.
 */
#pragma once

#include "rules.h"

#define TOGETHER_MOST 8

struct row {
	struct arbiter_share share;
	struct gpu_model_load load;
	double least, most; /* bounds on got_pct; both 0: no bounds */
	int processes;      /* 0: one */
	/* The results, in percent of the GPU's time. */
	double got_pct;
	double charged_pct;
	double deviation; /* standard deviation of got_pct in windows of one second */
	int index;        /* in the arbiter */
};

/*
 * Runs rows (TOGETHER_MOST at most) together for warm_ns, and then for run_ns, in which they are measured.
 * Fails the test when a row is out of its bounds, or the model saw a rule broken. Returns the sum of the
 * shares got.
 */
double together_after(const char *name, struct row *rows, int count, uint64_t warm_ns,
		      uint64_t run_ns, const struct gpu_model_config *config);
/* As together_after() with warm_ns of two seconds. */
double together(const char *name, struct row *rows, int count, uint64_t run_ns,
		const struct gpu_model_config *config);

/* cmocka teardown of a group of tests: prints the table. */
int together_print(void **state);
