#include "daemon/arbitrate/window.h"

#include <stdbool.h>

void window_init(struct window *w, uint64_t span_ns, uint64_t now_ns, uint64_t value_ns)
{
	*w = (struct window){ .step_ns = span_ns / WINDOW_STEPS, .count = 1 };
	w->sample[0].at_ns = now_ns;
	w->sample[0].value_ns = value_ns;
}

void window_add(struct window *w, uint64_t now_ns, uint64_t value_ns)
{
	/* Callers' ticks jitter, so a sample may be a tenth of a step early. */
	if (now_ns < w->sample[w->newest].at_ns + w->step_ns - w->step_ns / 10)
		return;
	w->newest = (w->newest + 1) % (WINDOW_STEPS + 1);
	w->sample[w->newest].at_ns = now_ns;
	w->sample[w->newest].value_ns = value_ns;
	if (w->count < WINDOW_STEPS + 1)
		w->count++;
}

/* The growth since the oldest sample that is younger than a span and half a step, else since the newest one. */
double window_pct(const struct window *w, uint64_t now_ns, uint64_t value_ns)
{
	uint64_t reach_ns = w->step_ns * WINDOW_STEPS + w->step_ns / 2;
	unsigned i = w->newest;
	for (unsigned back = 1; back < w->count; back++) {
		unsigned j = (w->newest + WINDOW_STEPS + 1 - back) % (WINDOW_STEPS + 1);
		if (now_ns - w->sample[j].at_ns > reach_ns)
			break;
		i = j;
	}
	uint64_t span_ns = now_ns - w->sample[i].at_ns;
	if (now_ns <= w->sample[i].at_ns || value_ns <= w->sample[i].value_ns)
		return 0;
	return 100.0 * (double)(value_ns - w->sample[i].value_ns) / (double)span_ns;
}

double window_peak_pct(const struct window *w, unsigned steps, uint64_t now_ns, uint64_t value_ns)
{
	uint64_t reach_ns = w->step_ns * WINDOW_STEPS + w->step_ns / 2;
	double most = 0;
	for (unsigned back = w->count; back-- > 0;) {
		unsigned i = (w->newest + WINDOW_STEPS + 1 - back) % (WINDOW_STEPS + 1);
		unsigned j = (i + steps) % (WINDOW_STEPS + 1);
		bool has_end = back >= steps;
		uint64_t end_ns = has_end ? w->sample[j].at_ns : now_ns;
		uint64_t end_value_ns = has_end ? w->sample[j].value_ns : value_ns;
		uint64_t begin_ns = w->sample[i].at_ns;
		/* Samples from before a gap show no recent work; the newest one shows what happened in the gap. */
		bool is_old = now_ns - begin_ns > reach_ns && back > 0;
		if (is_old || end_ns <= begin_ns)
			continue;
		/* A span shorter than `steps` steps counts as that long: others cover the time before it, or it was idle. */
		uint64_t span_ns = end_ns - begin_ns, least_ns = steps * w->step_ns;
		if (w->count > steps && span_ns < least_ns * 9 / 10)
			span_ns = least_ns;
		double pct = 100.0 * (double)(end_value_ns - w->sample[i].value_ns) /
			     (double)span_ns;
		most = pct > most ? pct : most;
	}
	return most;
}
