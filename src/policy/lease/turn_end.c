#include <math.h>

#include "policy/lease/arbiter_inside.h"

double turn_predicted_ns(const struct arbiter *a, const struct tenant *t, bool contended)
{
	/* A prediction that is too long must not shorten leases to nothing while others wait. */
	if (contended)
		return (double)min_u64(t->seen.inflight_ns, a->terms.depth_ns);
	return (double)t->seen.inflight_ns;
}

bool turn_tokens_are_used_up(const struct arbiter *a, const struct tenant *t, bool contended)
{
	double drained = turn_predicted_ns(a, t, contended) * (1.0 - t->share.limit_pct / 100.0);

	/* To finish a burst, the tenant may overdraw its tokens and budget by this, then waits to pay it back. */
	if (a->urgent_lease)
		drained -= (double)a->config.urgent_slice_ns;
	else if (!contended)
		drained -= (double)charge_alone_debt_ns(a, t);
	return is_capped(t) && t->tokens_ns <= drained;
}

double turn_step_most_ns(const struct arbiter *a, const struct tenant *t)
{
	double most_ns = (double)a->config.step_most_ns;

	/*
	 * A capped tenant may have longer steps while it is alone: no tenant waits for a step's end, and the tenant can pause
	 * for its cap after the step. (With a gang on the device, tenants of other devices may wait.)
	 */
	return is_capped(t) && a->active_count == 1 && !a->gang_count && most_ns > 0
		       ? fmax(most_ns, charge_bucket_ns(a, t))
		       : most_ns;
}

double turn_step_ns(const struct arbiter *a, const struct tenant *t)
{
	return steps_length_ns(&t->steps, turn_step_most_ns(a, t));
}

/*
 * True if the turn ends now: at a sync point, or because the present step is overdue. Sets wants_sync_point if the next sync
 * point should end the turn. left_ns: time left in the turn; negative if it is over.
 */
static bool ends_with_step(struct arbiter *a, const struct tenant *t, double left_ns)
{
	double most_ns = turn_step_most_ns(a, t);
	bool is_near = left_ns <= turn_step_ns(a, t) / 2;
	bool is_worth = a->ran_ns >= min_u64(a->config.min_lease_ns, a->quantum_ns) / 2;

	a->wants_sync_point = a->wants_sync_point || is_near;
	/* Only a sync point that the doorbell was asked to report is known to be recent. */
	if (a->wanted_sync_point && t->has_synced && is_near && is_worth)
		return true;
	return left_ns <= 0 && steps_left_ns(&t->steps, t->charged_ns, most_ns) <= 0;
}

bool turn_ends_with_tokens(struct arbiter *a, const struct tenant *t, bool contended)
{
	double part = 1.0 - t->share.limit_pct / 100.0;

	if (!is_capped(t) || a->urgent_lease || turn_step_ns(a, t) <= 0)
		return turn_tokens_are_used_up(a, t, contended);
	return ends_with_step(a, t, t->tokens_ns / part - turn_predicted_ns(a, t, contended));
}

uint64_t turn_idle_limit_ns(const struct arbiter *a, const struct tenant *t)
{
	uint64_t least_ns = a->gang_count ? gang_rank_idle_limit_ns(a, t) : 0, limit_ns;

	if (t->seen.waiting)
		return a->config.start_limit_ns;
	/* Before the first work, idle_ns applies: a thread may lose its CPU between the gate and the driver. */
	limit_ns = a->worked ? t->patience.ns : a->config.idle_ns;
	return limit_ns > least_ns ? limit_ns : least_ns;
}

bool lease_is_idle(const struct arbiter *a, const struct tenant *t)
{
	return a->clock - t->worked_at >= turn_idle_limit_ns(a, t);
}

/*
 * True if `other` returned during this lease after long absence, and would finish a turn before the holder finishes another.
 * For other tenants, comes_first() counts from the turn's start, because a switch at each small lag would cost too much.
 */
static bool has_returned(const struct arbiter *a, const struct tenant *holder,
			 const struct tenant *other)
{
	return other->active_since > a->granted_at &&
	       order_turn_end(a, other, other->vtime) < order_turn_end(a, holder, holder->vtime);
}

/* True if the holder's quantum is cut short for `other`. */
static bool comes_first(const struct arbiter *a, const struct tenant *t, const struct tenant *other)
{
	return order_turn_end(a, other, other->vtime) < order_turn_end(a, t, a->vtime_at_start) ||
	       has_returned(a, t, other) || order_in_need(a, other);
}

bool turn_may_be_cut(const struct arbiter *a, const struct tenant *t, const struct tenant *other)
{
	if (turn_step_ns(a, t) > 0)
		return has_returned(a, t, other) || order_in_need(a, other);
	return comes_first(a, t, other);
}

double turn_left_ns(const struct arbiter *a, const struct tenant *t, int other)
{
	if (turn_step_ns(a, t) > 0 && comes_first(a, t, &a->tenant[other]))
		return (double)a->config.min_lease_ns - (double)a->ran_ns;
	return (double)a->quantum_ns - (double)a->ran_ns - turn_predicted_ns(a, t, true);
}

/* True if the holder should yield to `other`. If not, renews a turn whose time is over. */
static bool turn_is_over(struct arbiter *a, struct tenant *t, int other)
{
	double ahead_ns = turn_predicted_ns(a, t, true);
	double other_end = order_turn_end(a, &a->tenant[other], a->tenant[other].vtime);

	if (a->ran_ns >= a->config.min_lease_ns && turn_may_be_cut(a, t, &a->tenant[other]))
		return true;
	if (turn_step_ns(a, t) > 0 ? !ends_with_step(a, t, turn_left_ns(a, t, other))
				   : turn_left_ns(a, t, other) > 0)
		return false;
	if (comes_first(a, t, &a->tenant[other]))
		return true;
	if (order_turn_end(a, t, t->vtime + ahead_ns / order_weight(a, t)) >= other_end)
		return true;
	a->ran_ns = 0;
	a->vtime_at_start = t->vtime;
	a->wants_sync_point = false;
	return false;
}

/*
 * For the lease of a tenant that pushed ahead: a tenant of lower priority ends the lease only if it is in need (arbiter.h), or
 * when the holder's budget is used up.
 */
static bool urgent_turn_is_over(struct arbiter *a, struct tenant *t, int other)
{
	if (t->budget_spent) {
		a->urgent_lease = false;
		return a->interrupted != NONE || turn_is_over(a, t, other);
	}
	if (order_in_need(a, &a->tenant[other]) && a->ran_ns >= a->config.min_lease_ns)
		return true;
	int like = priority_best(a, a->holder, t->share.priority);
	return like != NONE && turn_is_over(a, t, like);
}

bool turn_should_yield(struct arbiter *a, struct tenant *t, int other)
{
	if (lease_is_idle(a, t)) {
		charge_unused_lease(a, t);
		patience_lost(&t->patience, t->worked_at);
		return true;
	}
	return a->urgent_lease ? urgent_turn_is_over(a, t, other) : turn_is_over(a, t, other);
}
