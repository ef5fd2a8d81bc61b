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

/* The largest growth, in percent, over WINDOW_PEAK_STEPS steps, or since window_init(). value_ns is the newest sample. */
#define WINDOW_PEAK_STEPS 3
double window_peak_pct(const struct window *w, uint64_t now_ns, uint64_t value_ns);
