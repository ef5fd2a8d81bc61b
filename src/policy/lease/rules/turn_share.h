/*
 * What a share is worth within a turn on the card's memory. Tenants that are swapped out by turns cannot have their share
 * of GPU time while they are away. So in its turn each gets as much more as makes its guarantee and its cap hold over turn
 * and absence together. An absence counts only while the tenant had work, as its guarantee is about that time alone; it is
 * compared with the length of turns as they were seen.
 *
 * Pure; nanoseconds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All zero at first. */
struct turn_share {
	uint64_t seen_ns;      /* 0: not yet */
	bool was_here;         /* then */
	uint64_t here_ns;      /* its turn so far, or its last one */
	uint64_t last_here_ns; /* the one before */
	uint64_t away_ns;      /* with work, between the two */
};

void turn_share_see(struct turn_share *s, bool is_here, bool has_work, uint64_t now_ns);

/* By what guarantee and cap are to be multiplied: at least 1. It goes to 1 as a turn gets longer than usual. */
double turn_share_scale(const struct turn_share *s);
