/*
 * Leader election: decides a replica's next step about the lease from what it has seen and the time. Other replicas' clocks
 * do not matter: a lease expires when it has been unchanged for its duration by the replica's own clock, counted from when
 * the replica saw the change. A leader stops before any other replica can take over, because its own time counts from before
 * its last renewal was sent.
 *
 *     leader    sends renewal ---------- may act until + deadline --|  margin  |
 *     another              `-> sees it ------- may take it after + duration ---------|
 *
 * Pure. All times are in ns of the same clock, which must never stand still. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/cluster/leader_lease.h"

struct election_terms {
	const char *identity; /* unique among all present and past replicas; kept, not copied */
	/*
	 * The values must satisfy retry < deadline < duration. If 0, the defaults are used: 14 s, 10 s, 2 s, similar to
	 * Kubernetes' own components.
	 */
	unsigned duration_s;
	uint64_t deadline_ns, retry_ns;
};

enum election_step {
	ELECTION_WAIT,
	ELECTION_READ, /* read the lease, then call election_saw() */
	/* This and the next steps write the result of election_make(); then call election_wrote() or election_failed(). */
	ELECTION_CREATE,
	ELECTION_TAKE,
	ELECTION_RENEW,
	ELECTION_RELEASE,
	ELECTION_OVER, /* after election_stop(): nothing is left to do */
};

struct election {
	struct election_terms terms;
	struct lease seen;
	bool is_known;       /* `seen` is up to date, as far as we know */
	bool is_there;       /* the lease exists */
	bool is_missed;      /* the lease was deleted while another replica held it */
	uint64_t changed_ns; /* when we last saw the lease change */
	bool is_leader, is_stopping;
	uint64_t renewed_ns; /* while is_leader: when the last successful write was begun */
	/* Earliest time of the next step if the last one failed; otherwise 0. */
	uint64_t next_ns;
};

void election_init(struct election *election, const struct election_terms *terms);

/* Returns true if this replica may act as the leader. Ask immediately before each action. */
bool election_may_act(const struct election *election, uint64_t now_ns);

/* Reports the lease that was read; `lease` is NULL if it does not exist. */
void election_saw(struct election *election, const struct lease *lease, uint64_t now_ns);

/* Call when the lease may differ from `seen`. The next step then reads it. */
void election_doubt(struct election *election);

/* Returns the next step. For ELECTION_WAIT, ask again at *ret_when_ns or when a change of the lease was seen. */
enum election_step election_next(struct election *election, uint64_t now_ns, uint64_t *ret_when_ns);

/* Makes the lease that a step writes. `day_ns` is the wall-clock time, for other replicas' information. */
void election_make(struct election *election, enum election_step step, uint64_t day_ns,
		   struct lease *ret);
/* Call after a successful write, with the lease as the server stored it. `began_ns` is when the request was sent. */
void election_wrote(struct election *election, enum election_step step, const struct lease *lease,
		    uint64_t began_ns, uint64_t now_ns);
/* Call if a write failed or its result is unknown. `is_conflict` is true if the lease had changed before our write. */
void election_failed(struct election *election, bool is_conflict, uint64_t now_ns);

/* Gives up leadership. If this replica leads, the next step releases the lease. */
void election_stop(struct election *election);
