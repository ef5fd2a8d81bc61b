#include "daemon/arbitrate/window.h"

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

/*
 * Computes the growth since the oldest sample that is at most a span and half a step old. After a gap without such samples,
 * computes the growth since the newest sample.
 */
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
