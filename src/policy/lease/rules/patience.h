/*
 * How long someone whose turn it is may rest before another gets it: a prediction of what its pauses are
 * like. Waiting costs the pause, giving way a hand-over and another one back. So it begins with little
 * patience; each time that the one who rested came back sooner than that is worth, it gets twice as much, up
 * to a bound; each time that it stayed away, less.
 *
 * Of tenants, who hold a lease, and of the processes of one, whose turn it is within it. Pure; times are
 * of any one clock, in nanoseconds. Not thread safe.
 */
#ifndef ALLOT_POLICY_LEASE_RULES_PATIENCE_H
#define ALLOT_POLICY_LEASE_RULES_PATIENCE_H

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

#endif
