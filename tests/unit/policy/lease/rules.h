/*
 * What the tests of single rules share. Where the moment matters, observations are fed by hand
 * (struct bench); where the outcome over time matters, on the simulated GPU.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu_model.h"

/* By hand: an arbiter, its clock, and what each tenant shows. */
struct bench {
	struct arbiter *arbiter;
	struct arbiter_config config;
	uint64_t now, next;
	struct arbiter_observation seen[8];
	int count;
};

struct bench bench_new(void);
/* Returns the arbiter's index. */
int bench_add(struct bench *b, double cores, double limit);
/* One step, so long after the last. */
void bench_step(struct bench *b, uint64_t after_ns);
/* Steps as the arbiter asks to be stepped. */
void bench_run_for(struct bench *b, uint64_t duration_ns);
enum lease_state bench_state(const struct bench *b, int tenant);
/* The tenant launches, and is busy; does nothing, and waits for nothing. */
void bench_work(struct bench *b, int tenant);
void bench_rest(struct bench *b, int tenant);

/* The simulated GPU, with defaults but for its seed. */
struct gpu_model *model_new(uint64_t seed);
/* Runs for so long; the part of that time, in percent, in which the tenant's kernels ran. */
double share_over(struct gpu_model *m, int tenant, uint64_t duration_ns);

/* Adds to a table that is printed when all tests have run, away from their own lines; said() is all of it. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *said(void);

/* As much as it can get; nothing. */
extern const struct gpu_model_load hungry, resting;
