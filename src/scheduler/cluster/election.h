/*
 * Who leads: what one replica does next about the lease, given what it has seen and what time it is. The clocks of
 * others are never asked: a lease has expired when it has stood unchanged for its duration by one's own clock, since
 * one saw it. Whoever leads stops before any other could find that: its own time counts from before its last renewal was
 * sent.
 *
 *     leader    sends renewal ---------- may act until + deadline --|  margin  |
 *     another              `-> sees it ------- may take it after + duration ---------|
 *
 * Pure: times are of any one clock that never stands still, in ns. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/cluster/lease.h"

struct election_terms {
	const char *identity; /* of no other replica, and of none before this one; kept, not copied */
	/* retry < deadline < duration. 0: the default, 14 s, 10 s, 2 s: about what Kubernetes' own components have. */
	unsigned duration_s;
	uint64_t deadline_ns, retry_ns;
};

enum election_step {
	ELECTION_WAIT,
	ELECTION_READ, /* then election_saw() */
	ELECTION_CREATE, /* these write what election_make() says: then election_wrote(), or election_failed() */
	ELECTION_TAKE,
	ELECTION_RENEW,
	ELECTION_RELEASE,
	ELECTION_OVER, /* after election_stop(): nothing is left to do */
};

struct election {
	struct election_terms terms;
	struct lease seen;
	bool is_known;       /* `seen` is what stood there last, as far as we know */
	bool is_there;       /* there is a lease at all */
	bool is_missed;      /* there is none, and there was one that was another's */
	uint64_t changed_ns; /* when we saw it change */
	bool is_leader, is_stopping;
	uint64_t renewed_ns; /* while is_leader: when the last write that was good was begun */
	uint64_t next_ns;    /* not before: the last try failed */
};

void election_init(struct election *election, const struct election_terms *terms);

/* May we act as the leader? To be asked at the moment of acting. */
bool election_may_act(const struct election *election, uint64_t now_ns);

/* What stands there; NULL: nothing does. */
void election_saw(struct election *election, const struct lease *lease, uint64_t now_ns);

/* What stands there may be another than was seen: it is read next. */
void election_doubt(struct election *election);

/* What to do now. ELECTION_WAIT: ask again at *ret_when_ns, or when something was seen. */
enum election_step election_next(struct election *election, uint64_t now_ns, uint64_t *ret_when_ns);

/* What a step writes. `day_ns`: the time of day, for others to read. */
void election_make(struct election *election, enum election_step step, uint64_t day_ns,
		   struct lease *ret);
/* It was written, and stands there as `lease`. `began_ns`: when the request was made. */
void election_wrote(struct election *election, enum election_step step, const struct lease *lease,
		    uint64_t began_ns, uint64_t now_ns);
/* It was not, or nobody knows. `is_conflict`: somebody was faster, or what was seen is old. */
void election_failed(struct election *election, bool is_conflict, uint64_t now_ns);

/* From now on we do not lead; if we did, the lease is released. */
void election_stop(struct election *election);
