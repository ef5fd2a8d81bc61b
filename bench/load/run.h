/* One run of a load: what it launches, and what it counts meanwhile. */
#pragma once

#include "kernel.h"
#include "lanes.h"
#include "latency.h"
#include "options.h"
#include "sampler.h"
#include "trace.h"

#include <signal.h>

/* The newest so many launch times: enough for a median, and a fixed size. */
#define SAMPLE_MAX 65536

/* How far a load with --prepare-us runs ahead of the GPU: a driver lets a program do so. */
#define PREPARED_AHEAD_S 0.02

struct run {
	const struct options *options;
	const struct kernel *kernel;
	struct lanes lanes;
	struct sampler sampler;
	struct latency latency;
	struct trace trace;
	uint64_t begin_ns;
	uint32_t samples_ns[SAMPLE_MAX];
	uint64_t sample_count;
	uint64_t prepared_count; /* sample_count when it was last prepared for */
};

/* Set by a signal: the run is over. */
extern volatile sig_atomic_t run_interrupted;

/* Waits until then, or a signal. */
void run_wait_until(double unix_s);

/* Launches in the way that the options ask for, until the time is over, and returns when that was, with
 * what had been finished by then counted. `options`, `kernel`, `lanes` and, where one is followed, `trace`
 * are filled in; id: of the process among several; -1: the only one. */
uint64_t run_drive(struct run *r, int id);
