/*
 * The growth of a counter of nanoseconds during the last `span`, in percent of that span. A ring buffer has one sample per
 * step. No I/O, no clock of its own. Not thread safe.
 *
 *     samples:   |....|....|....|....|     step = span / WINDOW_STEPS
 *              oldest               newest      pct = 100 * (value(now) - value(now - span)) / span
 */
#pragma once

#include <stdint.h>

#define WINDOW_STEPS 20

struct window {
	uint64_t step_ns;
	unsigned count, newest;
	struct {
		uint64_t at_ns, value_ns;
	} sample[WINDOW_STEPS + 1];
};

void window_init(struct window *w, uint64_t span_ns, uint64_t now_ns, uint64_t value_ns);

/* Drops a sample that comes less than 0.9 steps after the last one. */
void window_add(struct window *w, uint64_t now_ns, uint64_t value_ns);

/* In percent of the span, or of the time since window_init() if shorter. Above 100 if the counter outruns time. */
double window_pct(const struct window *w, uint64_t now_ns, uint64_t value_ns);

/*
 * Returns the largest growth, in percent, over any `steps` successive steps of the samples, 2 to WINDOW_STEPS, or over the whole
 * time since window_init() if that is shorter. `value_ns` at now_ns counts as the newest sample.
 */
double window_peak_pct(const struct window *w, unsigned steps, uint64_t now_ns, uint64_t value_ns);
