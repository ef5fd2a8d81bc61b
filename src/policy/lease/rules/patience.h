/*
 * Patience: how long a turn is kept for a holder that is idle. Waiting costs the length of the pause; ending the turn costs two
 * hand-overs, there and back. So patience adapts to the holder's pauses. It begins short, and changes when a holder that lost
 * its turn wants to work again. If the holder's pause was shorter than two hand-overs, patience doubles, up to a bound. If the
 * pause was longer, patience shrinks by an eighth of its excess over the lower bound.
 *
 * The rule applies to tenants, which hold a lease, and to the processes of one tenant, which take turns within that lease. No
 * clock, no I/O. Not thread safe. All times are nanoseconds of any one clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct patience {
	uint64_t ns;  /* the holder's turn ends after it was idle for this long */
	bool gave_up; /* the holder lost its turn for idleness, and has not wanted to work since */
	uint64_t idle_since; /* valid while gave_up is set */
};

struct patience_bounds {
	uint64_t least_ns, most_ns;
	double worth_ns; /* cost of two hand-overs: waiting through a shorter pause is cheaper */
};

void patience_begin(struct patience *p, uint64_t least_ns);
/* Call when the holder loses its turn because it was idle since `idle_since_ns`. */
void patience_lost(struct patience *p, uint64_t idle_since_ns);
/* Call when the holder wants to work again. Further calls are harmless. */
void patience_learn(struct patience *p, const struct patience_bounds *bounds, uint64_t now_ns);
