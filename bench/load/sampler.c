#include "sampler.h"

#include "clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_EVERY_NS 200000u
#define NEVER_NS (1000000 * NS_PER_S) /* from the begin of a run */

/*
 * Its own two times bound the interval, so a report that comes late is still exact. The last interval may be short: a kernel
 * that ends in it ran mostly before it. So a rate is printed only for at least half of an interval.
 */
static void report(struct sampler *s)
{
	uint64_t done = lanes_collect(s->lanes), now_ns = clock_now_ns();
	uint64_t kernels = done - s->reported_kernels;
	double work_s = (double)kernels * s->lanes->kernel->cost_s;
	double t_s = (double)(now_ns - s->begin_ns) / 1e9;
	double interval_s = (double)(now_ns - s->reported_ns) / 1e9;
	char id[24] = "";
	if (s->id >= 0)
		snprintf(id, sizeof id, "\"id\":%d,", s->id);
	if (s->json)
		printf("{%s\"t_s\":%.4f,\"kernels\":%llu,\"work_s\":%.6f}\n", id, t_s,
		       (unsigned long long)kernels, work_s);
	else if (interval_s * 2e9 < (double)s->every_ns)
		printf("%8.2f s  %8llu kernels\n", t_s, (unsigned long long)kernels);
	else
		printf("%8.2f s  %8llu kernels  %6.2f %%\n", t_s, (unsigned long long)kernels,
		       100 * work_s / interval_s);
	fflush(stdout);
	s->reported_ns = now_ns;
	s->reported_kernels = done;
}

/* Waits until then, collecting while a first kernel is awaited; whether the run is over. */
static bool wait_until(struct sampler *s, uint64_t at_ns)
{
	pthread_mutex_lock(&s->lock);
	for (uint64_t now_ns = clock_now_ns(); !s->over && now_ns < at_ns; now_ns = clock_now_ns()) {
		uint64_t until_ns = at_ns;
		if (s->awaits_first && at_ns - now_ns > FIRST_EVERY_NS)
			until_ns = now_ns + FIRST_EVERY_NS;
		struct timespec t = { .tv_sec = (time_t)(until_ns / NS_PER_S),
				      .tv_nsec = (long)(until_ns % NS_PER_S) };
		pthread_cond_timedwait(&s->wake, &s->lock, &t);
		if (s->awaits_first) {
			lanes_collect(s->lanes);
			s->awaits_first = lanes_first_done_ns(s->lanes) == 0;
		}
	}
	bool over = s->over;
	pthread_mutex_unlock(&s->lock);
	return over;
}

static void *run(void *argument)
{
	struct sampler *s = argument;
	uint64_t next_ns = s->begin_ns + (s->every_ns > 0 ? s->every_ns : NEVER_NS);
	DRIVER_DO(s->lanes->driver, ctx_set, s->lanes->driver->ctx);
	while (!wait_until(s, next_ns)) {
		report(s);
		while (next_ns <= s->reported_ns)
			next_ns += s->every_ns;
	}
	if (s->every_ns > 0)
		report(s);
	return NULL;
}

void sampler_start(struct sampler *s)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&s->lock, NULL);
	s->reported_ns = s->begin_ns;
	s->reported_kernels = 0;
	s->awaits_first = s->over = false;
	int r = pthread_create(&s->thread, NULL, run, s);
	if (r != 0) {
		fprintf(stderr, "allot-load: pthread_create: %s\n", strerror(r));
		exit(1);
	}
}

void sampler_await_first(struct sampler *s)
{
	pthread_mutex_lock(&s->lock);
	lanes_await_first(s->lanes);
	s->awaits_first = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

void sampler_stop(struct sampler *s)
{
	pthread_mutex_lock(&s->lock);
	s->over = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
}
