/*
 * What it brings to run at the same time: the work that a space group's members do together, beside what they
 * would do in turns. Work of each counts by the time that it takes alone, so that in turns one card does 1 of it in a
 * second at most, and less where all of them rest. Counted while two or more are there, if the speed alone of each is
 * known (space.h): lengths that were timed beside others are too long, and would tell of a gain where there is none. Pure.
 */
#ifndef ALLOT_POLICY_SPACE_SPACE_GAIN_H
#define ALLOT_POLICY_SPACE_SPACE_GAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sums since the member came. */
struct space_gain {
	double done_ns, turns_ns;
};

/* One look at a member. */
struct space_gain_seen {
	struct space_gain *gain; /* what it counts into, while it is there */
	bool is_there;           /* works, waits or rests for a while */
	bool is_known;           /* its speed alone is */
	double turn;    /* of the time, what it would have work for alone, and may have; 0 to 1 */
	double done_ns; /* what has ended since the last look, as it takes alone */
};

/* dt_ns after the last look; 0 while their group has no lease: what ends then still counts. */
void space_gain_see(const struct space_gain_seen *seen, size_t count, uint64_t dt_ns);

#endif
