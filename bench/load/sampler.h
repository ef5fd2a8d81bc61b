/* The reports of a run, from a thread of their own: a launch may be held back
 * for as long as another tenant has the GPU, and a report must say what was
 * finished by its own time, not by the time the launch returned. A report each
 * 10 ms costs a query for each stream, nothing on the GPU. The same for the
 * first kernel that is done after a pause.
 */
#pragma once

#include "lanes.h"

struct sampler {
	struct lanes *lanes;
	uint64_t begin_ns; /* of the run; reports come at whole multiples after it */
	uint64_t every_ns; /* 0: no reports */
	int id;            /* of the process among several; -1: the only one */
	bool json;

	uint64_t reported_ns, reported_kernels;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool awaits_first;
	bool over;
};

/* The fields above the gap are the caller's to fill in; `lanes` must outlive it. */
void sampler_start(struct sampler *s);

/* Calls lanes_await_first, and looks often until there is one: the launching thread may be held by then. */
void sampler_await_first(struct sampler *s);

/* Prints the last report, up to now, and waits for the thread. */
void sampler_stop(struct sampler *s);
