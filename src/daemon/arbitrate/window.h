/*
 * Computes a sliding average of a growing counter of nanoseconds: its growth during the last `span`, in percent of that span.
 * Keeps one sample per step in a ring buffer. No I/O, no clock of its own. Not thread safe.
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

/* Starts an empty window over span_ns. value_ns is the counter's present value. */
void window_init(struct window *w, uint64_t span_ns, uint64_t now_ns, uint64_t value_ns);

/* Adds a sample, or drops it if it comes less than 0.9 steps after the last one. */
void window_add(struct window *w, uint64_t now_ns, uint64_t value_ns);

/*
 * Returns the growth in percent of the last span, or of the time since window_init() if shorter (0 at first). At least 0;
 * above 100 if the counter grows faster than time.
 */
double window_pct(const struct window *w, uint64_t now_ns, uint64_t value_ns);

/*
 * Returns the largest growth, in percent, over any WINDOW_PEAK_STEPS steps of the samples, or over the whole time since
 * window_init() if that is shorter. `value_ns` at now_ns counts as the newest sample.
 */
#define WINDOW_PEAK_STEPS 3
double window_peak_pct(const struct window *w, uint64_t now_ns, uint64_t value_ns);
