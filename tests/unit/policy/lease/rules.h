/*
 * Helpers for tests of single rules. Tests of a moment feed observations by hand (struct bench). Tests of outcomes over time
 * use the model of gpu_model.h.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu_model.h"

/* An arbiter fed by hand: its clock and the observation of each tenant. */
struct bench {
	struct arbiter *arbiter;
	struct arbiter_config config;
	uint64_t now, next;
	struct arbiter_observation seen[8];
	int count;
};

struct bench bench_new(void);
/* Adds a tenant with these cores_pct and limit_pct. Returns its index in the arbiter. */
int bench_add(struct bench *b, double cores, double limit);
/* One step, this long after the previous one. */
void bench_step(struct bench *b, uint64_t after_ns);
/* Steps as the arbiter asks to be stepped. */
void bench_run_for(struct bench *b, uint64_t duration_ns);
enum lease_state bench_state(const struct bench *b, int tenant);
/* From now on the tenant is seen busy, with one more launch (work), or idle and not waiting (rest). */
void bench_work(struct bench *b, int tenant);
void bench_rest(struct bench *b, int tenant);

/* Makes a model of gpu_model.h with the default configuration and this seed. Free it with gpu_model_free(). */
struct gpu_model *model_new(uint64_t seed);
/* Runs for this long. Returns the part of the time, in percent, in which the tenant's kernels ran. */
double share_over(struct gpu_model *m, int tenant, uint64_t duration_ns);

/* Adds to the table that is printed after all tests, apart from their own lines. table_text() returns the whole table. */
void table_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *table_text(void);

/* Loads: `hungry` launches kernels of 1 ms as fast as it may; `resting` launches nothing. */
extern const struct gpu_model_load hungry, resting;
