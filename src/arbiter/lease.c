#include "arbiter/tenant.h"

void lease_grant(struct arbiter *a, int tenant)
{
	struct tenant *t = &a->tenant[tenant];

	a->out_of_turn = order_in_need(a, t);
	charge_begin(t);
	t->switched = a->last_holder != NONE && a->last_holder != tenant;
	a->last_holder = a->holder = tenant;
	a->close_reason = CLOSE_FOR_GOOD;
	a->granted_at = a->clock;
	a->ran_ns = 0;
	a->vtime_at_start = t->vtime;
	/* Work of before (an overrunner's, free run's) goes on: charged from the start. */
	a->started = a->worked = t->running;
	t->state = LEASE_GO;
	t->draining = false;
	t->worked_at = a->clock;
	t->leases++;
}

static uint64_t drain_limit_ns(const struct arbiter *a, const struct tenant *t)
{
	uint64_t inflight = min_u64(t->seen.inflight_ns, a->config.drain_max_ns);
	uint64_t limit = min_u64(4 * inflight, a->config.drain_max_ns);

	/* Its work has outlived a whole drain already: don't wait long for it again. */
	if (t->overrunning || limit < a->config.drain_min_ns)
		return a->config.drain_min_ns;
	return limit;
}

void lease_close(struct arbiter *a, struct tenant *t)
{
	t->state = LEASE_CLOSING;
	t->draining = true;
	t->seen_since_close = false;
	t->drain_deadline = a->clock + drain_limit_ns(a, t);
	t->held_at = a->clock;
}

void lease_hold(struct arbiter *a, struct tenant *t)
{
	if (t->state != LEASE_STOP)
		t->held_at = a->clock;
	t->state = LEASE_STOP;
	t->draining = false;
	if (a->holder == t - a->tenant)
		a->holder = NONE;
}

bool lease_any_drain(const struct arbiter *a)
{
	for (int i = 0; i < a->active_count; i++) {
		if (a->tenant[a->active[i]].draining)
			return true;
	}
	return false;
}

/*
 * Work without a lease. Shortly after the word changed it is a launch that was under way then, which
 * deserves a drain; later it is somebody who does not ask.
 */
static void meet_stray(struct arbiter *a, struct tenant *t)
{
	if (a->clock - t->held_at > a->config.drain_min_ns) {
		t->overrunning = true;
		return;
	}
	t->draining = true;
	t->seen_since_close = true;
	t->drain_deadline = t->held_at + drain_limit_ns(a, t);
}

void lease_end_drains(struct arbiter *a, uint64_t dt_ns)
{
	for (int i = 0; i < a->active_count; i++) {
		int index = a->active[i];
		struct tenant *t = &a->tenant[index];

		if (!t->running && t->overrunning && !t->seen.stopped)
			t->overrunning = false;
		if (t->draining && t->seen_since_close && !t->running) {
			if (index == a->holder)
				charge_settle(a, t, dt_ns);
			lease_hold(a, t);
		} else if (t->draining && a->clock >= t->drain_deadline) {
			t->expired++;
			t->overrunning = true;
			lease_hold(a, t);
		} else if (!t->draining && t->running && t->state == LEASE_STOP && !t->overrunning) {
			meet_stray(a, t);
		}
	}
}

static double predicted_ns(const struct arbiter *a, const struct tenant *t, bool contended)
{
	/* Contended, a tenant that overstates must not turn leases into nothing but switches. */
	if (contended)
		return (double)min_u64(t->seen.inflight_ns, a->config.depth_ns);
	return (double)t->seen.inflight_ns;
}

/* True when the tokens will be gone once the work in flight is done. */
static bool tokens_used_up(const struct arbiter *a, const struct tenant *t, bool contended)
{
	double drained = predicted_ns(a, t, contended) * (1.0 - t->share.limit_pct / 100.0);

	return is_capped(t) && t->tokens_ns <= drained;
}

static bool is_idle(const struct arbiter *a, const struct tenant *t)
{
	uint64_t still_ns = a->clock - t->worked_at;

	return still_ns >= (t->seen.waiting ? a->config.start_limit_ns : a->config.idle_ns);
}

/*
 * It was away for long, and came back during this lease: what the holder has had of it is more than
 * its turn. (Of those who were there, the one chosen at the start has the whole quantum: each that
 * falls behind during it would otherwise cost a switch.)
 */
static bool has_returned(const struct arbiter *a, const struct tenant *holder,
			 const struct tenant *other)
{
	return other->active_since > a->granted_at && other->vtime < holder->vtime;
}

/* Whether the holder, which may go on otherwise, should give way to `other`; renews if not. */
static bool should_give_way(struct arbiter *a, struct tenant *t, int other)
{
	double ahead_ns = predicted_ns(a, t, true);
	double other_vtime = a->tenant[other].vtime;

	if (is_idle(a, t)) {
		charge_unused_lease(a, t);
		return true;
	}
	if (a->ran_ns >= a->config.min_lease_ns &&
	    (other_vtime < a->vtime_at_start || has_returned(a, t, &a->tenant[other]) ||
	     order_in_need(a, &a->tenant[other])))
		return true;
	if ((double)a->ran_ns + ahead_ns < (double)a->config.quantum_ns)
		return false;
	if (t->vtime + ahead_ns / order_weight(a, t) >= other_vtime)
		return true;
	a->ran_ns = 0;
	a->vtime_at_start = t->vtime;
	return false;
}

static void decide_on_holder(struct arbiter *a)
{
	struct tenant *t = &a->tenant[a->holder];
	int other = order_best(a, a->holder);

	if (t->state == LEASE_CLOSING) {
		/* The one it was closed for has gone: no need to run dry. */
		if (other == NONE && a->close_reason == CLOSE_FOR_OTHERS && t->demand &&
		    !tokens_used_up(a, t, false)) {
			t->state = LEASE_GO;
			t->draining = false;
		}
		return;
	}
	if (t->seen.stopped && !t->running) {
		lease_hold(a, t);
	} else if (a->out_of_turn && !t->paused && !t->seen.stopped &&
		   a->clock - a->granted_at < a->config.min_lease_ns) {
		return;
	} else if (t->paused || t->seen.stopped || tokens_used_up(a, t, other != NONE)) {
		a->close_reason = CLOSE_FOR_GOOD;
		lease_close(a, t);
	} else if (other != NONE && should_give_way(a, t, other)) {
		a->close_reason = CLOSE_FOR_OTHERS;
		lease_close(a, t);
	}
}

void lease_decide(struct arbiter *a)
{
	int next;

	if (a->holder != NONE)
		decide_on_holder(a);
	if (a->holder != NONE || lease_any_drain(a))
		return;
	/*
	 * Whom it was closed for comes first, even if the charge, once settled, left the last holder
	 * a hair ahead: the drain is paid for.
	 */
	next = a->close_reason == CLOSE_FOR_OTHERS ? order_best(a, a->last_holder) : NONE;
	if (next == NONE)
		next = order_best(a, NONE);
	if (next != NONE)
		lease_grant(a, next);
}

static uint64_t between(uint64_t low, uint64_t value, uint64_t high)
{
	if (value < low)
		return low;
	return value < high ? value : high;
}

/*
 * A drain's end is looked for the more often the nearer it is predicted: each time half of what is left.
 * (Looks 50 us apart from the beginning on were nine tenths of the daemon's work.)
 */
uint64_t lease_drain_look_ns(const struct arbiter *a)
{
	uint64_t least = a->config.poll_lease_ns;

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];
		uint64_t left = t->seen_since_close ? t->seen.inflight_ns / 2 : 0;

		if (t->draining)
			least = min_u64(least, left);
	}
	return between(a->config.poll_drain_ns, least, a->config.poll_lease_ns);
}

uint64_t lease_next_look_ns(const struct arbiter *a)
{
	const struct tenant *t;
	bool contended;
	double left, until;

	if (a->holder == NONE)
		return a->config.poll_lease_ns;
	t = &a->tenant[a->holder];
	contended = order_best(a, a->holder) != NONE;
	/* It can't run dry before what is in flight has ended. */
	left = (double)between(a->config.poll_lease_ns, t->seen.inflight_ns / 2,
			       a->config.poll_free_ns);
	if (is_capped(t)) {
		double drain = 1.0 - t->share.limit_pct / 100.0;

		until = t->tokens_ns / drain - predicted_ns(a, t, contended);
		if (until < left)
			left = until;
	}
	if (contended) {
		until = (double)a->config.quantum_ns - (double)a->ran_ns - predicted_ns(a, t, true);
		if (until < left)
			left = until;
	}
	/* Never a busy loop: what is due now is due at the next drain poll. */
	if (left < (double)a->config.poll_drain_ns)
		return a->config.poll_drain_ns;
	return (uint64_t)left;
}
