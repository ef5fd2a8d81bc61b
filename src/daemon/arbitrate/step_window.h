/*
 * Step figures are a tenant's steps (iterations of its program) per second on a device, and the median and 99th percentile of
 * their lengths. They are the present counts in the report (abi/shm/step_counts.h) less a copy of the counts at an earlier
 * time, `older`:
 *
 *      ---- older ---------- newer ------ now
 *           |<---- the figures' span ---->|
 *
 * 5 s after the last copy, a new copy is made as `newer`, and the last one becomes `older`. So the span is 5 to 10 s. While the
 * span has fewer than 20 steps, the new copy is made only 30 s after the last one, so that slow programs have figures too.
 *
 * The tenant may write any counts, so they are used for display only. No clock, no I/O; not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/step_counts.h"

struct step_moment {
	uint64_t at_ns;
	uint64_t count;
	uint64_t bucket[STEP_BUCKETS];
};

struct step_window {
	struct step_moment older, newer;
};

struct step_figures {
	/* Number and total length of the steps since the tenant began. */
	uint64_t count, sum_ns;
	bool is_known; /* a step ended in the span, so the following are valid */
	double per_second;
	uint64_t p50_ns, p99_ns; /* error at most 1/8 */
};

void step_window_init(struct step_window *w, uint64_t now_ns);
/* Copies the counts if the last copy is old enough. Call about once a second. */
void step_window_read(struct step_window *w, const struct step_counts *counts, uint64_t now_ns);
/* Like step_window_read(). Returns the figures of the span that ends at now_ns. */
struct step_figures step_window_figures(struct step_window *w, const struct step_counts *counts,
					uint64_t now_ns);
