/*
 * Leader election: decides a replica's next step from its own clock and the lease as it was last read. A lease expires after
 * its duration without a change, counted from when the replica saw the last change. A leader stops before its lease can expire:
 * it counts its deadline from the moment at which it sent the last renewal.
 *
 *     leader    sends renewal ---------- may act until + deadline --|  margin  |
 *     another              `-> sees it ------- may take it after + duration ---------|
 *
 * No I/O and no clock: the caller passes the time, in ns of a clock that also counts while the machine sleeps. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/cluster/leader_lease.h"

struct election_terms {
	const char *identity; /* Unique among all replicas, past ones too. Kept, not copied. */
	/* Required: retry_ns < deadline_ns < duration_s. Defaults for 0: 14 s duration_s, 10 s deadline_ns, 2 s retry_ns. */
	unsigned duration_s;
	uint64_t deadline_ns, retry_ns;
};

enum election_step {
	ELECTION_WAIT,
	ELECTION_READ, /* read the lease, then call election_observe() */
	/* Write the result of election_make_lease(), then call election_write_succeeded() or election_write_failed(): */
	ELECTION_CREATE,
	ELECTION_TAKE,
	ELECTION_RENEW,
	ELECTION_RELEASE,
	ELECTION_OVER, /* after election_stop(): nothing is left to do */
};

struct election {
	struct election_terms terms;
	struct lease seen;
	bool is_known; /* false: `seen` may be outdated, so the next step reads the lease */
	bool exists;
	bool is_deleted;     /* the lease was deleted while another replica held it */
	uint64_t changed_ns; /* when this replica last saw the lease change */
	bool is_leader, is_stopping;
	uint64_t renewed_ns; /* while is_leader: when the last successful write was sent */
	/* after a failed write: earliest time of the next step; otherwise 0 */
	uint64_t next_ns;
};

void election_init(struct election *election, const struct election_terms *terms);

/* Whether this replica may act as leader. Ask before each action. */
bool election_may_act(const struct election *election, uint64_t now_ns);

/* Call when the lease was read. `lease` is NULL if it does not exist. */
void election_observe(struct election *election, const struct lease *lease, uint64_t now_ns);

/* Call when the lease may differ from `seen`: the next step reads it. */
void election_invalidate(struct election *election);

/* Returns the next step. After ELECTION_WAIT, ask again at *ret_when_ns, or after a change of the lease. */
enum election_step election_next(struct election *election, uint64_t now_ns, uint64_t *ret_when_ns);

/* Makes the lease that a step writes. `day_ns`: wall-clock time, only for information. */
void election_make_lease(struct election *election, enum election_step step, uint64_t day_ns,
			 struct lease *ret);
/* Call after a successful write. `lease` is as the server stored it; `began_ns` is when the request was sent. */
void election_write_succeeded(struct election *election, enum election_step step,
			      const struct lease *lease, uint64_t began_ns, uint64_t now_ns);
/* Call after a write that failed, or whose result is unknown. `is_conflict`: the lease had changed before the write. */
void election_write_failed(struct election *election, bool is_conflict, uint64_t now_ns);

/* Gives up leadership; a leader's next step releases the lease. */
void election_stop(struct election *election);
