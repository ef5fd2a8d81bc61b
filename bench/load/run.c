#include "run.h"

#include "clock.h"

#include <sys/prctl.h>

volatile sig_atomic_t run_interrupted;

void run_wait_until(double unix_s)
{
	while (!run_interrupted) {
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		double left_s = unix_s - (double)now.tv_sec - (double)now.tv_nsec / 1e9;
		if (left_s <= 0)
			return;
		/* In steps: the wall clock may be set meanwhile. */
		clock_nap_ns((uint64_t)((left_s < 0.1 ? left_s : 0.1) * 1e9) + 1);
	}
}

static bool is_over(const struct run *r)
{
	return run_interrupted ||
	       clock_now_ns() - r->begin_ns >= (uint64_t)(r->options->seconds * 1e9);
}

/* Sleeps until then, or the end of the run. */
static void sleep_until(const struct run *r, uint64_t at_ns)
{
	while (!is_over(r)) {
		uint64_t now_ns = clock_now_ns();
		if (now_ns >= at_ns)
			return;
		clock_nap_ns(at_ns - now_ns < NS_PER_S / 10 ? at_ns - now_ns : NS_PER_S / 10);
	}
}

/* All of the work that was asked for is launched. */
static bool is_enough(const struct run *r)
{
	return r->options->kernels > 0 && r->sample_count >= (uint64_t)r->options->kernels;
}

/* The work without the GPU before a launch; once for each launch, whether or not there is room for it. */
static void prepare(struct run *r)
{
	const struct options *o = r->options;

	if (o->prepare_us <= 0 || r->prepared_count == r->sample_count + 1 ||
	    r->sample_count / (uint64_t)o->phase % 2 == 0)
		return;
	r->prepared_count = r->sample_count + 1;
	clock_nap_ns((uint64_t)(o->prepare_us * 1e3));
}

/* As many kernels as are taken, until end_ns or the end of the run, or as many as were asked for. */
static void saturate(struct run *r, uint64_t end_ns)
{
	uint64_t sync_every = (uint64_t)r->options->sync_every;
	while (!is_over(r) && clock_now_ns() < end_ns && !is_enough(r)) {
		prepare(r);
		uint64_t took_ns = lanes_launch(&r->lanes);
		if (took_ns == 0) {
			clock_nap_ns(lanes_nap_ns(&r->lanes));
		} else {
			r->samples_ns[r->sample_count++ % SAMPLE_MAX] = took_ns < UINT32_MAX
										? (uint32_t)took_ns
										: UINT32_MAX;
			if (sync_every > 0 && r->sample_count % sync_every == 0)
				lanes_sync(&r->lanes);
		}
		lanes_collect(&r->lanes);
	}
	if (is_enough(r))
		lanes_sync(&r->lanes);
}

/* A burst that is late delays the next ones, and they are late as well: what waited
 * for its turn counts, as it would for whoever sent the request. */
static void answer_requests(struct run *r)
{
	uint64_t period_ns = (uint64_t)(r->options->period_ms * 1e6);
	for (uint64_t due_ns = r->begin_ns;; due_ns += period_ns) {
		sleep_until(r, due_ns);
		if (is_over(r))
			return;
		lanes_burst(&r->lanes, (unsigned)r->options->burst);
		if (due_ns - r->begin_ns >= (uint64_t)(r->options->warmup_s * 1e9))
			latency_add(&r->latency, clock_now_ns() - due_ns);
	}
}

static void follow_trace(struct run *r)
{
	for (unsigned i = 0; i < r->trace.count && !is_over(r); i++) {
		struct trace_phase *p = &r->trace.phase[i];
		uint64_t begin_ns = r->begin_ns + p->begin_ns;
		sleep_until(r, begin_ns);
		lanes_sync(&r->lanes); /* the last of the phase before are not this one's first */
		sampler_await_first(&r->sampler);
		saturate(r, r->begin_ns + p->end_ns);
		/* Held for longer than the phase lasts: it counts all the same. */
		if (!is_over(r) && lanes_first_done_ns(&r->lanes) == 0)
			lanes_sync(&r->lanes);
		uint64_t first_ns = lanes_first_done_ns(&r->lanes);
		p->first_ns = first_ns > begin_ns ? first_ns - begin_ns : 0;
	}
	sleep_until(r, UINT64_MAX);
}

uint64_t run_drive(struct run *r, int id)
{
	const struct options *o = r->options;
	if (o->prepare_us > 0)
		prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0); /* it is a sleep, of a length that counts */
	r->begin_ns = clock_now_ns();
	r->sampler = (struct sampler){ .lanes = &r->lanes,
				       .begin_ns = r->begin_ns,
				       .every_ns = (uint64_t)(o->report_every_s * 1e9),
				       .id = id,
				       .json = o->json };
	sampler_start(&r->sampler);
	if (o->burst > 0)
		answer_requests(r);
	else if (o->trace != NULL)
		follow_trace(r);
	else
		saturate(r, UINT64_MAX);
	lanes_collect(&r->lanes);
	uint64_t end_ns = clock_now_ns();
	sampler_stop(&r->sampler);
	return end_ns;
}
