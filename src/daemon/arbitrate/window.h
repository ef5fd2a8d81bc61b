/*
 * A window is a sliding average: by what share of the last `span` a growing counter of nanoseconds went up. It is a ring of
 * samples, one a step. Pure, no clock of its own. Not thread safe.
 *
 *     samples:   |....|....|....|....|     step = span / WINDOW_STEPS
 *              oldest               newest      pct = (value now - value at now - span) / span
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

/* Tells the counter's value; samples closer together than a step are not kept. */
void window_add(struct window *w, uint64_t now_ns, uint64_t value_ns);

/*
 * The share in percent over the last span, or since window_init() where that is shorter (0 in the
 * first instant). Never negative; may exceed 100 when the counter outruns time.
 */
double window_pct(const struct window *w, uint64_t now_ns, uint64_t value_ns);
