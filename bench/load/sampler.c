#include "sampler.h"

#include "clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its own two times bound the interval, so a report that comes late is still exact. */
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
	else
		printf("%8.2f s  %8llu kernels  %6.2f %%\n", t_s, (unsigned long long)kernels,
		       interval_s > 0 ? 100 * work_s / interval_s : 0);
	fflush(stdout);
	s->reported_ns = now_ns;
	s->reported_kernels = done;
}

/* Waits until then; whether the run is over. */
static bool wait_until(struct sampler *s, uint64_t at_ns)
{
	struct timespec t = { .tv_sec = (time_t)(at_ns / NS_PER_S),
			      .tv_nsec = (long)(at_ns % NS_PER_S) };
	pthread_mutex_lock(&s->lock);
	while (!s->over && pthread_cond_timedwait(&s->wake, &s->lock, &t) != ETIMEDOUT)
		;
	bool over = s->over;
	pthread_mutex_unlock(&s->lock);
	return over;
}

static void *run(void *argument)
{
	struct sampler *s = argument;
	uint64_t next_ns = s->begin_ns + s->every_ns;
	DRIVER_DO(s->lanes->driver, ctx_set, s->lanes->driver->ctx);
	while (!wait_until(s, next_ns)) {
		report(s);
		while (next_ns <= s->reported_ns)
			next_ns += s->every_ns;
	}
	report(s);
	return NULL;
}

void sampler_start(struct sampler *s)
{
	if (s->every_ns == 0)
		return;
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&s->lock, NULL);
	s->reported_ns = s->begin_ns;
	s->reported_kernels = 0;
	s->over = false;
	int r = pthread_create(&s->thread, NULL, run, s);
	if (r != 0) {
		fprintf(stderr, "allot-load: pthread_create: %s\n", strerror(r));
		exit(1);
	}
}

void sampler_stop(struct sampler *s)
{
	if (s->every_ns == 0)
		return;
	pthread_mutex_lock(&s->lock);
	s->over = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
}
