#include <math.h>

#include "policy/lease/arbiter_inside.h"

double order_scale(const struct arbiter *a)
{
	return a->promised_pct > 100.0 ? 100.0 / a->promised_pct : 1.0;
}

double order_weight(const struct arbiter *a, const struct tenant *t)
{
	if (t->share.cores_pct > 0)
		return t->share.cores_pct * order_scale(a);
	double left = 100.0 - a->promised_pct;
	int sharers = a->active_unpromised + !t->active;
	if (sharers > 0)
		left /= sharers;
	return left > 1.0 ? left : 1.0;
}

void order_read_demand(struct arbiter *a)
{
	for (int i = 0; i < a->active_count; i++) {
		struct patience_bounds bounds = { .least_ns = a->config.idle_min_ns,
						  .most_ns = a->config.idle_ns,
						  .worth_ns = 2 * a->handover_ns };
		struct tenant *t = &a->tenant[a->active[i]];
		const struct arbiter_observation *seen = &t->seen;
		bool was_running = t->running, was_there = t->running || t->demand;

		t->running = seen->busy || seen->launching;
		/* A stopped tenant cannot clear its flags, so they are ignored after the drain's deadline. */
		if (seen->stopped && t->overrunning)
			t->running = false;
		t->began = t->running && !was_running;
		t->ran = t->running || (was_running && seen->has_doorbell && !seen->stopped);
		t->demand = !t->paused && !seen->stopped &&
			    (seen->waiting || seen->busy || seen->launching);
		t->arrived = (t->demand || t->running) && !was_there;
		if (t->demand || t->running || (t->launched && !t->paused))
			t->present_at = a->clock;
		if (t->running)
			t->worked_at = a->clock;
		else if (t->launched)
			t->worked_at = a->clock - min_u64(seen->idle_ns, a->clock - t->worked_at);
		if (a->clock - t->present_at > ARBITER_PAUSE_NS)
			t->charged_at_pause_ns = t->charged_ns;
		gang_rank_widen_patience(a, t, &bounds);
		if (t->demand)
			patience_learn(&t->patience, &bounds, a->clock);
	}
}

bool order_in_need(const struct arbiter *a, const struct tenant *t)
{
	return (t->overrunning || t->gang.is_stuck) && t->seen.waiting && t->demand &&
	       t->state == LEASE_STOP && a->clock - t->held_at >= a->config.need_ns &&
	       a->clock - a->in_need_at >= a->config.need_ns;
}

static double tokens_needed(const struct arbiter *a, const struct tenant *t)
{
	/* A tenant that a higher priority interrupted need not gather tokens for a whole lease. */
	if (a->interrupted == t - a->tenant)
		return fmin((double)a->terms.depth_ns, charge_tokens_needed(a, t));
	return charge_tokens_needed(a, t);
}

/* Tenants with much inherited debt wait for any active tenant without it, even one that wants no GPU now. */
static bool has_creditor(const struct arbiter *a)
{
	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];
		if (!t->paused && !t->seen.stopped && !debts_must_wait(a, t))
			return true;
	}
	return false;
}

static bool may_compete(const struct arbiter *a, const struct tenant *t, bool is_debt_due)
{
	if (!t->demand)
		return false;
	if (is_debt_due && debts_must_wait(a, t))
		return order_in_need(a, t);
	return !is_capped(t) || t->urgent || t->tokens_ns >= tokens_needed(a, t) ||
	       order_in_need(a, t);
}

void order_mark_candidates(struct arbiter *a)
{
	double least = 0;
	bool any = false, is_debt_due = has_creditor(a);

	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];
		bool holds = a->active[i] == a->holder;
		bool competes = holds || (may_compete(a, t, is_debt_due) && !t->draining);

		if (competes && !t->candidate) {
			double back = a->vclock - (double)a->quantum_ns / order_weight(a, t);

			if (t->vtime < back)
				t->vtime = back;
		}
		t->candidate = competes;
		if (competes && (!any || t->vtime < least)) {
			least = t->vtime;
			any = true;
		}
	}
	if (any && least > a->vclock)
		a->vclock = least;
}

/* Of the tenants in need (arbiter.h), which come before all others, returns the one that was held longest; or NONE. */
static int find_in_need(const struct arbiter *a, int except)
{
	int best = NONE;

	for (int i = 0; i < a->active_count; i++) {
		int index = a->active[i];
		const struct tenant *t = &a->tenant[index];

		if (index != except && t->candidate && order_in_need(a, t) &&
		    (best == NONE || t->held_at < a->tenant[best].held_at))
			best = index;
	}
	return best;
}

double order_turn_end(const struct arbiter *a, const struct tenant *t, double vtime)
{
	return vtime + (double)a->quantum_ns / order_weight(a, t);
}

bool order_comes_before(const struct arbiter *a, const struct tenant *t, const struct tenant *other)
{
	double end = order_turn_end(a, t, t->vtime);
	double other_end = order_turn_end(a, other, other->vtime);

	if (end < other_end || end > other_end)
		return end < other_end;
	if (t->share.priority != other->share.priority)
		return t->share.priority > other->share.priority;
	return t->held_at < other->held_at;
}

int order_best(const struct arbiter *a, int except)
{
	int best = find_in_need(a, except);

	if (best != NONE)
		return best;

	for (int i = 0; i < a->active_count; i++) {
		int index = a->active[i];

		if (index == except || !a->tenant[index].candidate ||
		    gang_rank_is_held(a, &a->tenant[index]))
			continue;
		if (best == NONE || order_comes_before(a, &a->tenant[index], &a->tenant[best]))
			best = index;
	}
	return best;
}
