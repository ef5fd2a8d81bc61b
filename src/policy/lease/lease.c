#include "policy/lease/arbiter_inside.h"

/*
 * The part of the GPU's switch to this tenant that is charged to no tenant, in ns. If the tenant's last lease ended with a step
 * of its program (rules/steps.h), the program's pause after that step was free of charge, because other tenants had the GPU
 * meanwhile. In return the tenant is charged for the switch, up to the length of that pause.
 */
static double switch_cost_ns(const struct arbiter *a, const struct tenant *t)
{
	double cost_ns = (double)a->config.switch_ns - (t->ended_step ? t->steps.gap_ns : 0);

	return cost_ns > 0 ? cost_ns : 0;
}

void lease_grant(struct arbiter *a, int tenant)
{
	struct tenant *t = &a->tenant[tenant];

	quantum_learn(a);
	a->out_of_turn = order_in_need(a, t);
	if (a->out_of_turn)
		a->in_need_at = a->clock;
	charge_begin(t);
	if (a->last_holder != NONE && a->last_holder != tenant)
		t->uncharged_ns = switch_cost_ns(a, t);
	t->ended_step = false;
	a->last_holder = a->holder = tenant;
	a->close_reason = CLOSE_FOR_GOOD;
	a->granted_at = a->clock;
	a->charged_before = t->charged_ns;
	a->ramp_before = t->seen.ramp_ns;
	a->behind_before = t->seen.behind_ns;
	a->waits_before = t->seen.waits;
	a->busy_before = t->seen.busy_ns;
	a->start_ns = 0;
	a->ran_ns = 0;
	a->wants_sync_point = false;
	a->vtime_at_start = t->vtime;
	a->urgent_lease = t->urgent && !a->out_of_turn;
	if (tenant == a->interrupted) {
		a->ran_ns = a->interrupted_ran_ns;
		a->vtime_at_start = a->interrupted_vtime_at_start;
	}
	if (tenant == a->interrupted || !a->urgent_lease)
		a->interrupted = NONE;
	/* Work from before the grant may go on: the lease is then charged from its start. */
	a->started = a->worked = t->running;
	t->state = LEASE_GO;
	t->draining = false;
	t->gang_over = t->gang_idle = false;
	t->worked_at = a->clock;
	t->leases++;
}

static uint64_t drain_limit_ns(const struct arbiter *a, const struct tenant *t)
{
	uint64_t inflight = min_u64(t->seen.inflight_ns, a->config.drain_max_ns);
	uint64_t limit = min_u64(4 * inflight, a->config.drain_max_ns);

	/* If the tenant's work outlived an earlier drain, this drain gets the shortest deadline. */
	if (t->overrunning || limit < a->config.drain_min_ns)
		return a->config.drain_min_ns;
	return limit;
}

void lease_close(struct arbiter *a, struct tenant *t)
{
	t->state = LEASE_CLOSING;
	if (a->holder == t - a->tenant) {
		t->ended_step = a->wanted_sync_point && t->has_synced;
		t->step_turns += t->ended_step;
		a->wants_sync_point = false;
	}
	t->draining = true;
	t->seen_since_close = false;
	t->closing_ns = min_u64(t->seen.inflight_ns, a->config.drain_max_ns);
	t->drain_deadline = a->clock + drain_limit_ns(a, t);
	t->held_at = a->clock;
}

void lease_close_for(struct arbiter *a, struct tenant *t, enum arbiter_end why)
{
	lease_close(a, t);
	a->last_end = (struct arbiter_lease_end){ .why = why, .with_step = t->ended_step };
}

void lease_hold(struct arbiter *a, struct tenant *t)
{
	if (t->state != LEASE_STOP)
		t->held_at = a->clock;
	t->state = LEASE_STOP;
	t->draining = false;
	if (a->holder == t - a->tenant) {
		a->holder = NONE;
		a->wants_sync_point = false;
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
 * The tenant has work although its state is STOP. Soon after STOP began, this is a launch that had already passed the gate, so
 * the tenant gets a drain. Later, the tenant does not obey its state, and its work counts as overrunning.
 */
static void close_stray(struct arbiter *a, struct tenant *t)
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
			/* A doorbell tells the end of work more exactly than a poll does. */
			if (index == a->holder)
				charge_settle(a, t,
					      t->seen.has_doorbell
						      ? min_u64(dt_ns, a->config.poll_lease_ns)
						      : dt_ns);
			lease_hold(a, t);
		} else if (t->draining && a->clock >= t->drain_deadline) {
			t->expired++;
			t->overrunning = true;
			a->last_end.expired = a->last_end.expired || index == a->holder;
			lease_hold(a, t);
		} else if (!t->draining && t->running && t->state == LEASE_STOP && !t->overrunning) {
			close_stray(a, t);
		}
	}
}

/* The holder gets the lease back when the tenant of higher priority is done. */
static void interrupt_holder(struct arbiter *a, struct tenant *t)
{
	uint64_t most_ran_ns = a->quantum_ns - min_u64(a->config.min_lease_ns, a->quantum_ns);

	a->close_reason = CLOSE_FOR_URGENT;
	lease_close_for(a, t, ARBITER_END_PRIORITY);
	/* If the urgent holder is interrupted itself, the lease later goes back to the tenant that was interrupted first. */
	if (a->urgent_lease && a->interrupted != NONE)
		return;
	a->interrupted = a->holder;
	/* At least min_lease_ns of the turn must be left, so that the switch back is worth its cost. */
	a->interrupted_ran_ns = min_u64(a->ran_ns, most_ran_ns);
	a->interrupted_vtime_at_start = a->vtime_at_start;
}

/* Cancels a CLOSING if the tenant for which it was sent no longer wants the lease. */
static void reopen_if_for_nothing(struct arbiter *a, struct tenant *t, int other, int urgent)
{
	bool for_nothing = a->close_reason == CLOSE_FOR_URGENT
				   ? urgent == NONE
				   : a->close_reason != CLOSE_FOR_GOOD && other == NONE;

	if (a->gang_count && gang_rank_is_awaited(a))
		return;
	if (a->close_reason == CLOSE_FOR_GANG && t->gang.order == GANG_GO)
		for_nothing = true;
	if (!for_nothing || !t->demand || turn_tokens_are_used_up(a, t, other != NONE))
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

	a->wanted_sync_point = a->wants_sync_point;
	a->wants_sync_point = false;
	a->was_wanted = other != NONE;
	if (t->state == LEASE_CLOSING) {
		reopen_if_for_nothing(a, t, other, urgent);
		return;
	}
	t->gang_over = t->gang_idle = false;
	if (t->seen.stopped && !t->running) {
		a->last_end = (struct arbiter_lease_end){ .why = ARBITER_END_STOPPED };
		lease_hold(a, t);
	} else if (a->gang_count && gang_rank_decide_on_holder(a, t)) {
		return;
	} else if (a->out_of_turn && !t->paused && !t->seen.stopped &&
		   a->clock - a->granted_at < a->config.min_lease_ns) {
		return;
	} else if (t->paused || t->seen.stopped || turn_ends_with_tokens(a, t, other != NONE)) {
		if (!t->paused && !t->seen.stopped && gang_rank_end_turn(t))
			return;
		a->close_reason = CLOSE_FOR_GOOD;
		lease_close_for(a, t,
				t->paused         ? ARBITER_END_PAUSED
				: t->seen.stopped ? ARBITER_END_STOPPED
						  : ARBITER_END_CAP);
	} else if (urgent != NONE) {
		interrupt_holder(a, t);
	} else if (other != NONE && turn_should_yield(a, t, other)) {
		/* A gang that is idle or past its turn on this device may be at work on others. */
		if (is_idle ? gang_rank_idle(a, t) : gang_rank_end_turn(t))
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
	/* The last holder must not get the lease back, even if settling its charge made it come first. */
	if (a->close_reason == CLOSE_FOR_OTHERS && order_best(a, a->last_holder) != NONE)
		next = order_best(a, a->last_holder);
	if (a->interrupted != NONE && a->tenant[a->interrupted].candidate &&
	    !gang_rank_is_held(a, &a->tenant[a->interrupted]))
		next = a->interrupted;
	urgent = priority_best(a, NONE, (int64_t)a->tenant[next].share.priority + 1);
	return urgent != NONE ? urgent : next;
}

void lease_decide(struct arbiter *a)
{
	if (a->holder != NONE)
		decide_on_holder(a);
	if (a->holder != NONE || lease_any_drain(a))
		return;
	int next = choose_next(a);
	if (a->gang_count)
		next = gang_rank_choose(a, next);
	if (next != NONE)
		lease_grant(a, next);
}
