/*
 * Step figures: how many steps a second a tenant does on a device, and their median and 99th percentile. They come from what
 * its processes count in the report (abi/shm/step_counts.h), by the difference to one of two earlier moments:
 *
 *     ---- older ---------- newer ------ now
 *          |<---- the figures' span ---->|
 *
 * A moment is kept 5 s after the last, so the span is 5 to 10 s. While fewer than 20 steps are in it, it is kept after 30 s,
 * so that a slow program has figures as well.
 *
 * The tenant may write any numbers: they are used for figures alone. Pure; not thread safe.
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
	uint64_t count, sum_ns; /* ever */
	bool is_known;          /* a step ended of late: */
	double per_second;
	uint64_t p50_ns, p99_ns; /* to an eighth at worst */
};

/* Of a tenant that has counted nothing yet. */
void step_window_init(struct step_window *w, uint64_t now_ns);
/* To be called each second or so. */
void step_window_look(struct step_window *w, const struct step_counts *counts, uint64_t now_ns);
/* Looks, too. */
struct step_figures step_window_figures(struct step_window *w, const struct step_counts *counts,
					uint64_t now_ns);
