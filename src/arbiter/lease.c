#include "arbiter/tenant.h"

void lease_grant(struct arbiter *a, int tenant)
{
	struct tenant *t = &a->tenant[tenant];

	quantum_learn(a);
	a->out_of_turn = order_in_need(a, t);
	charge_begin(t);
	/*
	 * Between two steps a program pauses, alone within its own time, here in that of others. What the change
	 * of tenants takes is set off against that (together they were 0.8 points more than asked of three
	 * trainings on an H200).
	 */
	t->switched = a->last_holder != NONE && a->last_holder != tenant && !t->ended_step;
	t->ended_step = false;
	a->last_holder = a->holder = tenant;
	a->close_reason = CLOSE_FOR_GOOD;
	a->granted_at = a->clock;
	a->charged_before = t->charged_ns;
	a->ramp_before = t->seen.ramp_ns;
	a->busy_before = t->seen.busy_ns;
	a->start_ns = 0;
	a->ran_ns = 0;
	a->wants_rest = false;
	a->vtime_at_start = t->vtime;
	a->urgent_lease = t->urgent && !a->out_of_turn;
	if (tenant == a->interrupted) {
		a->ran_ns = a->interrupted_ran_ns;
		a->vtime_at_start = a->interrupted_vtime_at_start;
	}
	if (tenant == a->interrupted || !a->urgent_lease)
		a->interrupted = NONE;
	/* Work of before (an overrunner's, free run's) goes on: charged from the start. */
	a->started = a->worked = t->running;
	t->state = LEASE_GO;
	t->draining = false;
	t->gang_over = false;
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
	if (a->holder == t - a->tenant) {
		t->ended_step = a->wanted_rest && t->has_rested;
		t->step_turns += t->ended_step;
		a->wants_rest = false;
	}
	t->draining = true;
	t->seen_since_close = false;
	t->closing_ns = min_u64(t->seen.inflight_ns, a->config.drain_max_ns);
	t->drain_deadline = a->clock + drain_limit_ns(a, t);
	t->held_at = a->clock;
}

void lease_close_for(struct arbiter *a, struct tenant *t, enum arbiter_end why)
{
	a->last_end = why;
	a->last_expired = false;
	lease_close(a, t);
}

void lease_hold(struct arbiter *a, struct tenant *t)
{
	if (t->state != LEASE_STOP)
		t->held_at = a->clock;
	t->state = LEASE_STOP;
	t->draining = false;
	if (a->holder == t - a->tenant) {
		a->holder = NONE;
		a->wants_rest = false;
	}
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
			/* Who rang for its end is not as uncertain as the last look is long ago. */
			if (index == a->holder)
				charge_settle(a, t,
					      t->seen.rings ? min_u64(dt_ns, a->config.poll_lease_ns)
							    : dt_ns);
			lease_hold(a, t);
		} else if (t->draining && a->clock >= t->drain_deadline) {
			t->expired++;
			t->overrunning = true;
			a->last_expired = a->last_expired || index == a->holder;
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

	/* As with its budget: the burst that it pushed for may end; what it overdrew it waits for. */
	if (a->urgent_lease)
		drained -= (double)a->config.urgent_slice_ns;
	return is_capped(t) && t->tokens_ns <= drained;
}

static double step_ns(const struct arbiter *a, const struct tenant *t)
{
	return steps_length_ns(&t->steps, (double)a->config.step_most_ns);
}

/*
 * A turn of which left_ns are left (less than nothing: it is over) ends now, by the holder's steps. If not, it is
 * noted whether its next rest would end it.
 */
static bool ends_with_step(struct arbiter *a, const struct tenant *t, double left_ns)
{
	double most_ns = (double)a->config.step_most_ns;
	bool is_near = left_ns <= step_ns(a, t) / 2;
	bool is_worth = a->ran_ns >= min_u64(a->config.min_lease_ns, a->quantum_ns) / 2;

	a->wants_rest = a->wants_rest || is_near;
	/* Only a rest that was rung for has just begun. */
	if (a->wanted_rest && t->has_rested && is_near && is_worth)
		return true;
	return left_ns <= 0 && steps_left_ns(&t->steps, t->charged_ns, most_ns) <= 0;
}

/* The same of a lease that ends with its tokens. */
static bool tokens_end_lease(struct arbiter *a, const struct tenant *t, bool contended)
{
	double part = 1.0 - t->share.limit_pct / 100.0;

	if (!is_capped(t) || a->urgent_lease || step_ns(a, t) <= 0)
		return tokens_used_up(a, t, contended);
	return ends_with_step(a, t, t->tokens_ns / part - predicted_ns(a, t, contended));
}

/* A holder without work for so long counts as idle. */
static uint64_t idle_limit_ns(const struct arbiter *a, const struct tenant *t)
{
	if (t->seen.waiting)
		return a->config.start_limit_ns;
	/* On its way from the gate to the driver a thread may lose its CPU. */
	return a->worked ? t->patience.ns : a->config.idle_ns;
}

bool lease_is_idle(const struct arbiter *a, const struct tenant *t)
{
	return a->clock - t->worked_at >= idle_limit_ns(a, t);
}

/*
 * It was away for long, and came back during this lease: what the holder has had of it is more than
 * its turn. (Of those who were there, the one chosen at the start has the whole quantum: each that
 * falls behind during it would otherwise cost a switch.)
 */
static bool has_returned(const struct arbiter *a, const struct tenant *holder,
			 const struct tenant *other)
{
	return other->active_since > a->granted_at &&
	       order_turn_end(a, other, other->vtime) < order_turn_end(a, holder, holder->vtime);
}

/* Whether `other` would have been chosen instead of the holder, and need not wait for its whole quantum. */
static bool comes_first(const struct arbiter *a, const struct tenant *t, const struct tenant *other)
{
	return order_turn_end(a, other, other->vtime) < order_turn_end(a, t, a->vtime_at_start) ||
	       has_returned(a, t, other) || order_in_need(a, other);
}

/* Whether that one takes the lease from the holder in the middle of a step. */
static bool may_cut(const struct arbiter *a, const struct tenant *t, const struct tenant *other)
{
	if (step_ns(a, t) > 0)
		return has_returned(a, t, other) || order_in_need(a, other);
	return comes_first(a, t, other);
}

/* What is left of the holder's turn, beside `other`, once the work in flight is done. */
static double turn_left_ns(const struct arbiter *a, const struct tenant *t, int other)
{
	if (step_ns(a, t) > 0 && comes_first(a, t, &a->tenant[other]))
		return (double)a->config.min_lease_ns - (double)a->ran_ns;
	return (double)a->quantum_ns - (double)a->ran_ns - predicted_ns(a, t, true);
}

/* Whether the holder, which may go on otherwise, should give way to `other`; renews if not. */
static bool turn_is_over(struct arbiter *a, struct tenant *t, int other)
{
	double ahead_ns = predicted_ns(a, t, true);
	double other_end = order_turn_end(a, &a->tenant[other], a->tenant[other].vtime);

	if (a->ran_ns >= a->config.min_lease_ns && may_cut(a, t, &a->tenant[other]))
		return true;
	if (step_ns(a, t) > 0 ? !ends_with_step(a, t, turn_left_ns(a, t, other))
			      : turn_left_ns(a, t, other) > 0)
		return false;
	if (comes_first(a, t, &a->tenant[other]))
		return true;
	if (order_turn_end(a, t, t->vtime + ahead_ns / order_weight(a, t)) >= other_end)
		return true;
	a->ran_ns = 0;
	a->vtime_at_start = t->vtime;
	a->wants_rest = false;
	return false;
}

/* A lease that was pushed for: taken from a lower priority, which does not end it. */
static bool urgent_turn_is_over(struct arbiter *a, struct tenant *t, int other)
{
	int like;

	if (t->budget_spent) {
		a->urgent_lease = false;
		return a->interrupted != NONE || turn_is_over(a, t, other);
	}
	if (order_in_need(a, &a->tenant[other]) && a->ran_ns >= a->config.min_lease_ns)
		return true;
	like = priority_best(a, a->holder, t->share.priority);
	return like != NONE && turn_is_over(a, t, like);
}

static bool should_give_way(struct arbiter *a, struct tenant *t, int other)
{
	if (lease_is_idle(a, t)) {
		charge_unused_lease(a, t);
		patience_lost(&t->patience, t->worked_at);
		return true;
	}
	return a->urgent_lease ? urgent_turn_is_over(a, t, other) : turn_is_over(a, t, other);
}

/* Someone of a higher priority takes the lease, and gives it back afterwards. */
static void interrupt_holder(struct arbiter *a, struct tenant *t)
{
	uint64_t most_ran_ns = a->quantum_ns - min_u64(a->config.min_lease_ns, a->quantum_ns);

	a->close_reason = CLOSE_FOR_URGENT;
	lease_close_for(a, t, ARBITER_END_PRIORITY);
	/* Of a chain of interruptions, the one at its beginning. */
	if (a->urgent_lease && a->interrupted != NONE)
		return;
	a->interrupted = a->holder;
	/* What is left of its turn, but no less than pays for the switch. */
	a->interrupted_ran_ns = min_u64(a->ran_ns, most_ran_ns);
	a->interrupted_vtime_at_start = a->vtime_at_start;
}

/* Closed for someone who wants it no longer: no need to run dry. */
static void reopen_if_for_nothing(struct arbiter *a, struct tenant *t, int other, int urgent)
{
	bool for_nothing = a->close_reason == CLOSE_FOR_URGENT
				   ? urgent == NONE
				   : a->close_reason != CLOSE_FOR_GOOD && other == NONE;

	if (a->gang_count && member_is_awaited(a))
		return;
	if (a->close_reason == CLOSE_FOR_GANG && t->gang.order == GANG_GO)
		for_nothing = true;
	if (!for_nothing || !t->demand || tokens_used_up(a, t, other != NONE))
		return;
	t->state = LEASE_GO;
	t->draining = false;
	if (a->interrupted == a->holder)
		a->interrupted = NONE;
}

static void decide_on_holder(struct arbiter *a)
{
	struct tenant *t = &a->tenant[a->holder];
	int other = order_best(a, a->holder);
	int urgent = priority_best(a, a->holder, (int64_t)t->share.priority + 1);
	bool is_idle = lease_is_idle(a, t);

	a->wanted_rest = a->wants_rest;
	a->wants_rest = false;
	a->was_wanted = other != NONE;
	if (t->state == LEASE_CLOSING) {
		reopen_if_for_nothing(a, t, other, urgent);
		return;
	}
	t->gang_over = false;
	if (t->seen.stopped && !t->running) {
		a->last_end = ARBITER_END_STOPPED;
		lease_hold(a, t);
	} else if (a->gang_count && member_decide_on_holder(a, t)) {
		return;
	} else if (a->out_of_turn && !t->paused && !t->seen.stopped &&
		   a->clock - a->granted_at < a->config.min_lease_ns) {
		return;
	} else if (t->paused || t->seen.stopped || tokens_end_lease(a, t, other != NONE)) {
		if (!t->paused && !t->seen.stopped && member_end_turn(t))
			return;
		a->close_reason = CLOSE_FOR_GOOD;
		lease_close_for(a, t,
				t->paused         ? ARBITER_END_PAUSED
				: t->seen.stopped ? ARBITER_END_STOPPED
						  : ARBITER_END_CAP);
	} else if (urgent != NONE) {
		interrupt_holder(a, t);
	} else if (other != NONE && should_give_way(a, t, other)) {
		/* Idle on one device, it may be at work on the others. */
		if (!lease_is_idle(a, t) && member_end_turn(t))
			return;
		a->close_reason = CLOSE_FOR_OTHERS;
		lease_close_for(a, t, is_idle ? ARBITER_END_IDLE : ARBITER_END_TURN);
	}
}

static int choose_next(const struct arbiter *a)
{
	int next = order_best(a, NONE), urgent;

	if (next == NONE || order_in_need(a, &a->tenant[next]))
		return next;
	/*
	 * Whom it was closed for comes first, even if the charge, once settled, left the last holder
	 * a hair ahead: the drain is paid for.
	 */
	if (a->close_reason == CLOSE_FOR_OTHERS && order_best(a, a->last_holder) != NONE)
		next = order_best(a, a->last_holder);
	if (a->interrupted != NONE && a->tenant[a->interrupted].candidate &&
	    !member_is_held(a, &a->tenant[a->interrupted]))
		next = a->interrupted;
	urgent = priority_best(a, NONE, (int64_t)a->tenant[next].share.priority + 1);
	return urgent != NONE ? urgent : next;
}

void lease_decide(struct arbiter *a)
{
	int next;

	if (a->holder != NONE)
		decide_on_holder(a);
	if (a->holder != NONE || lease_any_drain(a))
		return;
	next = choose_next(a);
	if (a->gang_count)
		next = member_choose(a, next);
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
 * (Looks 50 us apart from the beginning on were nine tenths of the daemon's work.) Who rings for it does
 * so if it was busy after it could read CLOSING: that is looked at once.
 */
static uint64_t drain_look_ns(const struct arbiter *a, const struct tenant *t)
{
	uint64_t left = t->seen_since_close ? t->seen.inflight_ns / 2 : 0;

	if (t->seen_since_close && t->seen.rings && t->seen.busy && !a->gang_count)
		return between(a->config.poll_drain_ns,
			       t->drain_deadline - min_u64(a->clock, t->drain_deadline),
			       a->config.poll_rung_ns);
	return between(a->config.poll_drain_ns, left, a->config.poll_lease_ns);
}

uint64_t lease_drain_look_ns(const struct arbiter *a)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];

		if (t->draining)
			least = min_u64(least, drain_look_ns(a, t));
	}
	return least;
}

/* No one holds the lease: time until the first of those that lack tokens alone has them. */
static uint64_t tokens_look_ns(const struct arbiter *a)
{
	double least = (double)a->config.poll_rung_ns;

	if (arbiter_must_look(a) || a->interrupted != NONE)
		return a->config.poll_lease_ns;
	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];
		double missing = charge_tokens_needed(a, t) - t->tokens_ns;

		if (t->demand && missing * 100.0 < least * t->share.limit_pct)
			least = missing * 100.0 / t->share.limit_pct;
	}
	if (least < (double)a->config.poll_drain_ns)
		return a->config.poll_drain_ns;
	return (uint64_t)least;
}

/* Time from `since` until so long after; 0 when that is past. */
static uint64_t left_of(const struct arbiter *a, uint64_t since, uint64_t length_ns)
{
	uint64_t passed = a->clock - since;

	return passed < length_ns ? length_ns - passed : 0;
}

/* How long the holder may run until one that came back would be chosen instead; see has_returned(). */
static uint64_t ahead_ns(const struct arbiter *a, const struct tenant *holder,
			 const struct tenant *other)
{
	double ahead = order_turn_end(a, other, other->vtime) -
		       order_turn_end(a, holder, holder->vtime);

	ahead *= order_weight(a, holder);
	/* In bounds; beyond this it is not looked at anyway. */
	return ahead < (double)a->quantum_ns ? (uint64_t)(ahead > 0 ? ahead : 0) : a->quantum_ns;
}

/*
 * How soon a holder's work should be looked at, whatever its time. It can't run dry before what is in
 * flight has ended. Alone, that is what it is charged by. Among others, who all ring: for the start of its
 * work, which is charged from there, at the end of the shortest lease if it is `other`'s turn, for the
 * moment from which on it is, and for idleness.
 */
static uint64_t work_look_ns(const struct arbiter *a, const struct tenant *t, int other)
{
	bool contended = other != NONE;
	uint64_t look = a->config.poll_rung_ns;

	if (!contended || arbiter_must_look(a) || a->urgent_lease)
		return between(a->config.poll_lease_ns, t->seen.inflight_ns / 2,
			       a->config.poll_free_ns);
	if (!a->started)
		look = min_u64(look, left_of(a, a->granted_at, a->config.start_grace_ns));
	if (may_cut(a, t, &a->tenant[other]))
		look = min_u64(look,
			       a->config.min_lease_ns - min_u64(a->ran_ns, a->config.min_lease_ns));
	else if (a->tenant[other].active_since > a->granted_at)
		look = min_u64(look, ahead_ns(a, t, &a->tenant[other]));
	if (!t->running)
		look = min_u64(look, left_of(a, t->worked_at, idle_limit_ns(a, t)));
	return look;
}

/* When to look at a holder whose turn, or whose tokens, last for left_ns more. */
static double end_look_ns(const struct arbiter *a, const struct tenant *t, double left_ns)
{
	double half_ns = step_ns(a, t) / 2;

	if (half_ns <= 0 || (left_ns > 0 && left_ns <= half_ns))
		return left_ns;
	if (left_ns > 0)
		return left_ns - half_ns;
	return steps_left_ns(&t->steps, t->charged_ns, (double)a->config.step_most_ns);
}

uint64_t lease_next_look_ns(const struct arbiter *a)
{
	const struct tenant *t;
	bool contended;
	int other;
	double left, until;

	if (a->holder == NONE)
		return tokens_look_ns(a);
	t = &a->tenant[a->holder];
	other = order_best(a, a->holder);
	contended = other != NONE;
	left = (double)work_look_ns(a, t, other);
	if (is_capped(t)) {
		double drain = 1.0 - t->share.limit_pct / 100.0;

		until = end_look_ns(a, t, t->tokens_ns / drain - predicted_ns(a, t, contended));
		if (until < left)
			left = until;
	}
	if (contended) {
		until = end_look_ns(a, t, turn_left_ns(a, t, other));
		if (until < left)
			left = until;
	}
	/* Never a busy loop: what is due now is due at the next drain poll. */
	if (left < (double)a->config.poll_drain_ns)
		return a->config.poll_drain_ns;
	return (uint64_t)left;
}
