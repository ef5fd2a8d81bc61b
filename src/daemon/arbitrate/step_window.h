/*
 * The steps of a tenant on a device of late: how many a second, and their median and 99th percentile. Of what its processes
 * count in the report (abi/shm/step_counts.h), by what had been counted at two earlier moments:
 *
 *     ---- older ---------- newer ------ now
 *          |<---- the figures' span ---->|
 *
 * The next moment is kept 5 s after the last one, so that the span is 5 to 10 s; while fewer than 20 steps are in it, after
 * 30 s: what waits for its work once in 20 seconds has figures as well.
 *
 * The tenant may write any numbers: they are good for figures alone. Pure; not thread safe.
 */
#ifndef ALLOT_DAEMON_ARBITRATE_STEP_WINDOW_H
#define ALLOT_DAEMON_ARBITRATE_STEP_WINDOW_H

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

#endif
