#include "scheduler/cluster/election.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* With these defaults, another replica leads within 15 s after the leader was killed. */
#define DURATION_S 14
#define DEADLINE_NS (10 * NSEC_PER_SEC)
#define RETRY_NS (2 * NSEC_PER_SEC)

void election_init(struct election *e, const struct election_terms *terms)
{
	*e = (struct election){ .terms = *terms };
	if (!e->terms.duration_s)
		e->terms.duration_s = DURATION_S;
	if (!e->terms.deadline_ns)
		e->terms.deadline_ns = DEADLINE_NS;
	if (!e->terms.retry_ns)
		e->terms.retry_ns = RETRY_NS;
}

bool election_may_act(const struct election *e, uint64_t now_ns)
{
	return e->is_leader && now_ns < e->renewed_ns + e->terms.deadline_ns;
}

static bool is_ours(const struct election *e)
{
	return !strcmp(e->seen.holder, e->terms.identity);
}

static bool is_same(const struct lease *a, const struct lease *b)
{
	return !strcmp(a->holder, b->holder) && !strcmp(a->renewed, b->renewed) &&
	       !strcmp(a->acquired, b->acquired) && a->transitions == b->transitions &&
	       a->duration_s == b->duration_s;
}

void election_observe(struct election *e, const struct lease *lease, uint64_t now_ns)
{
	bool was_there = e->exists;
	if (was_there != (lease != NULL) || (lease && !is_same(&e->seen, lease)))
		e->changed_ns = now_ns;
	/* The replica that held the deleted lease may still lead, so wait as if it had renewed the lease just now. */
	e->is_deleted = !lease && (e->is_deleted || (was_there && !is_ours(e)));
	e->is_known = true;
	e->exists = lease != NULL;
	e->seen = lease ? *lease : (struct lease){ 0 };
	/* Stop leading: another replica holds the lease, or may create it anew. (Without a holder, no other replica leads.) */
	if (!lease || (lease->holder[0] && !is_ours(e)))
		e->is_leader = false;
}

void election_invalidate(struct election *e)
{
	e->is_known = false;
}

static enum election_step next_step_of_leader(const struct election *e, uint64_t *when_ns)
{
	*when_ns = e->renewed_ns + e->terms.retry_ns;
	return ELECTION_RENEW;
}

static enum election_step next_step_of_follower(const struct election *e, uint64_t *when_ns)
{
	uint64_t duration_s = e->seen.duration_s ? e->seen.duration_s : e->terms.duration_s;
	*when_ns = e->is_deleted ? e->changed_ns + duration_s * NSEC_PER_SEC : 0;
	if (!e->exists)
		return ELECTION_CREATE;
	/* Another replica's lease must expire first. If ours is there, the answer to our write was lost: take it at once. */
	if (e->seen.holder[0] && !is_ours(e))
		*when_ns = e->changed_ns + duration_s * NSEC_PER_SEC;
	return ELECTION_TAKE;
}

enum election_step election_next(struct election *e, uint64_t now_ns, uint64_t *ret_when_ns)
{
	enum election_step step;
	uint64_t when_ns = 0;
	if (e->is_leader && !election_may_act(e, now_ns))
		e->is_leader = false;
	if (!e->is_known)
		step = ELECTION_READ;
	else if (e->is_stopping)
		step = e->exists && is_ours(e) ? ELECTION_RELEASE : ELECTION_OVER;
	else
		step = e->is_leader ? next_step_of_leader(e, &when_ns)
				    : next_step_of_follower(e, &when_ns);
	if (when_ns < e->next_ns)
		when_ns = e->next_ns;
	if (now_ns >= when_ns || step == ELECTION_OVER)
		return step;
	/* A leader must check again at its deadline, when it stops leading. */
	uint64_t end_ns = e->renewed_ns + e->terms.deadline_ns;
	*ret_when_ns = e->is_leader && end_ns < when_ns ? end_ns : when_ns;
	return ELECTION_WAIT;
}

void election_make_lease(struct election *e, enum election_step step, uint64_t day_ns,
			 struct lease *ret)
{
	struct lease lease = e->seen;
	bool is_release = step == ELECTION_RELEASE;
	bool is_new = !is_ours(e) || !lease.acquired[0];
	lease_format_time(day_ns, lease.renewed);
	if (is_new || is_release)
		lease_format_time(day_ns, lease.acquired);
	lease.transitions += is_new && step == ELECTION_TAKE;
	lease.duration_s = is_release ? 1 : e->terms.duration_s;
	snprintf(lease.holder, sizeof(lease.holder), "%s", is_release ? "" : e->terms.identity);
	*ret = lease;
}

void election_write_succeeded(struct election *e, enum election_step step,
			      const struct lease *lease, uint64_t began_ns, uint64_t now_ns)
{
	e->next_ns = 0;
	e->is_leader = step != ELECTION_RELEASE && !e->is_stopping;
	if (e->is_leader)
		e->renewed_ns = began_ns;
	election_observe(e, lease, now_ns);
}

void election_write_failed(struct election *e, bool is_conflict, uint64_t now_ns)
{
	/* After a conflict, read the lease at once: another replica has changed it. */
	if (is_conflict)
		election_invalidate(e);
	e->next_ns = is_conflict ? 0 : now_ns + e->terms.retry_ns;
}

void election_stop(struct election *e)
{
	e->is_leader = false;
	e->is_stopping = true;
}
