/*
 * What a tenant would use of a card that it had to itself, as sums: how long it has work there, how long it
 * rests of its own accord, and how much of the card its work fills. Waiting for its turn is neither. What of
 * two such tenants would do beside each other follows from that (policy/space/gain.h). Pure.
 */
#ifndef ALLOT_POLICY_LEASE_RULES_DEMAND_H
#define ALLOT_POLICY_LEASE_RULES_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#define DEMAND_PAUSE_NS UINT64_C(1000000000) /* of a longer pause so much counts: then it is away */

#define DEMAND_KNOWN_NS 20e6 /* busy for so long */

struct demand {
	double busy_ns;              /* with work on the card, for as long as that takes alone */
	double pause_ns;             /* between, with none and wanting none */
	double filled_ns;            /* of the whole card's time, what that work filled */
	bool was_there, has_skipped; /* at the last look */
	uint64_t there_at;           /* last; 0: not yet */
};

static inline double demand_pause(double ns)
{
	if (ns < 0)
		return 0;
	return ns < (double)DEMAND_PAUSE_NS ? ns : (double)DEMAND_PAUSE_NS;
}

/*
 * One look at now_ns; is_there: it has work, or waits. Since the look before: for worked_ns it had work, which takes
 * busy_ns alone, and fills the whole card for filled_ns: no longer than it was busy, whatever is said.
 */
static inline void demand_see(struct demand *d, bool is_there, double worked_ns, double busy_ns,
			      double filled_ns, uint64_t now_ns)
{
	double away_ns = (double)(now_ns - d->there_at);

	d->busy_ns += busy_ns;
	d->filled_ns += filled_ns;
	if (d->filled_ns > d->busy_ns)
		d->filled_ns = d->busy_ns;
	if (is_there) {
		if (!d->was_there && d->there_at)
			d->pause_ns += demand_pause(away_ns - worked_ns);
		d->there_at = now_ns;
	}
	d->was_there = is_there;
	d->has_skipped = false;
}

/* The part of the time that it has work on the card, alone; until that is known all of it. */
static inline double demand_busy(const struct demand *d)
{
	return d->busy_ns < DEMAND_KNOWN_NS ? 1 : d->busy_ns / (d->busy_ns + d->pause_ns);
}

/* Works, waits, or rests for no longer than counts. */
static inline bool demand_is_there(const struct demand *d, uint64_t now_ns)
{
	return d->there_at && now_ns - d->there_at < DEMAND_PAUSE_NS;
}

/*
 * One look at a time of which nothing is told, as in free run. Who comes back from a pause runs free for the moment until
 * that is seen: the pause counts. Who goes on so is not followed.
 */
static inline void demand_skip(struct demand *d, bool is_there)
{
	if (is_there && (d->was_there || d->has_skipped))
		d->there_at = 0;
	d->has_skipped = is_there;
	d->was_there = false;
}

#endif
