/*
 * Scales the GPU share of a tenant that takes turns in GPU memory (swap_schedule.h). A swapped-out tenant gets no GPU time. In
 * compensation, its guarantee and its cap are raised during its turn in memory, so that both hold on average over turn and
 * absence. An absence counts only while the tenant had work, because a guarantee covers only such time. The scale is 1 +
 * absence / turn, where the turn is the longer of the last two observed, and at least 1 s. No clock, no I/O.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Initialize to all zeros. A "turn" in this file is a stay in GPU memory, not a lease. */
struct turn_share {
	uint64_t seen_ns; /* the last turn_share_observe(); 0 before the first */
	bool was_here;    /* the tenant was in GPU memory at seen_ns */
	/* length of the present turn so far, or of the last one if swapped out */
	uint64_t here_ns;
	uint64_t last_here_ns; /* length of the turn before the one in here_ns */
	uint64_t away_ns;      /* in the latest absence: time in which the tenant had work */
};

/* Records for the time since the last call whether the tenant was in GPU memory (is_here), and whether it had work. */
void turn_share_observe(struct turn_share *s, bool is_here, bool has_work, uint64_t now_ns);

/* Returns the factor for guarantee and cap: 1 if swapped out, else at least 1. It falls as the stay in memory grows longer. */
double turn_share_scale(const struct turn_share *s);
