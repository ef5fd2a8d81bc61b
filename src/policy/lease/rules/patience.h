/*
 * Patience: how long a turn is kept for a holder that is idle. It predicts the holder's pauses. To wait costs the pause; to
 * hand over costs a hand-over and another one back. So patience begins short. Each time the holder comes back sooner than
 * that cost it is doubled, up to a bound; each time the holder stays away it is shortened.
 *
 * Used of tenants, which hold a lease, and of the processes of one, which have turns within it. Pure; nanoseconds of any one
 * clock. Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct patience {
	uint64_t ns;  /* so long a rest ends its turn */
	bool gave_up; /* lost one for that, at rest since, and not back yet */
	uint64_t idle_since;
};

struct patience_bounds {
	uint64_t least_ns, most_ns;
	double worth_ns; /* two hand-overs: a shorter rest had better been waited for */
};

/* At first. */
void patience_begin(struct patience *p, uint64_t least_ns);
/* It loses its turn for resting. */
void patience_lost(struct patience *p, uint64_t idle_since_ns);
/* It would work again. To be called as often as one likes. */
void patience_learn(struct patience *p, const struct patience_bounds *bounds, uint64_t now_ns);
