#include "policy/lease/tenant.h"

double turn_predicted_ns(const struct arbiter *a, const struct tenant *t, bool contended)
{
	/* Contended, a tenant that overstates must not turn leases into nothing but switches. */
	if (contended)
		return (double)min_u64(t->seen.inflight_ns, a->terms.depth_ns);
	return (double)t->seen.inflight_ns;
}

/* True when the tokens will be gone once the work in flight is done. */
bool turn_tokens_are_used_up(const struct arbiter *a, const struct tenant *t, bool contended)
{
	double drained = turn_predicted_ns(a, t, contended) * (1.0 - t->share.limit_pct / 100.0);

	/* As with its budget: the burst that it pushed for may end; what it overdrew it waits for. */
	if (a->urgent_lease)
		drained -= (double)a->config.urgent_slice_ns;
	return is_capped(t) && t->tokens_ns <= drained;
}

double turn_step_ns(const struct arbiter *a, const struct tenant *t)
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
	bool is_near = left_ns <= turn_step_ns(a, t) / 2;
	bool is_worth = a->ran_ns >= min_u64(a->config.min_lease_ns, a->quantum_ns) / 2;

	a->wants_sync_point = a->wants_sync_point || is_near;
	/* Only a rest that was rung for has just begun. */
	if (a->wanted_sync_point && t->has_synced && is_near && is_worth)
		return true;
	return left_ns <= 0 && steps_left_ns(&t->steps, t->charged_ns, most_ns) <= 0;
}

/* The same of a lease that ends with its tokens. */
bool turn_ends_with_tokens(struct arbiter *a, const struct tenant *t, bool contended)
{
	double part = 1.0 - t->share.limit_pct / 100.0;

	if (!is_capped(t) || a->urgent_lease || turn_step_ns(a, t) <= 0)
		return turn_tokens_are_used_up(a, t, contended);
	return ends_with_step(a, t, t->tokens_ns / part - turn_predicted_ns(a, t, contended));
}

/* A holder without work for so long counts as idle. */
uint64_t turn_idle_limit_ns(const struct arbiter *a, const struct tenant *t)
{
	uint64_t least_ns = a->gang_count ? member_idle_limit_ns(a, t) : 0, limit_ns;

	if (t->seen.waiting)
		return a->config.start_limit_ns;
	/* On its way from the gate to the driver a thread may lose its CPU. */
	limit_ns = a->worked ? t->patience.ns : a->config.idle_ns;
	return limit_ns > least_ns ? limit_ns : least_ns;
}

bool lease_is_idle(const struct arbiter *a, const struct tenant *t)
{
	return a->clock - t->worked_at >= turn_idle_limit_ns(a, t);
}

/*
 * It was away for long, and came back during this lease: what the holder had of the lease is more than its turn. Of the
 * others, the one chosen at the start has the whole quantum, since each that falls behind would cost a switch.
 */
static bool has_returned(const struct arbiter *a, const struct tenant *holder,
			 const struct tenant *other)
{
	return other->active_since > a->granted_at &&
	       order_turn_end(a, other, other->vtime) < order_turn_end(a, holder, holder->vtime);
}

/* Whether `other` comes before the holder now, so that the holder's quantum is cut short. */
static bool comes_first(const struct arbiter *a, const struct tenant *t, const struct tenant *other)
{
	return order_turn_end(a, other, other->vtime) < order_turn_end(a, t, a->vtime_at_start) ||
	       has_returned(a, t, other) || order_in_need(a, other);
}

/* Whether that one takes the lease from the holder in the middle of a step. */
bool turn_may_be_cut(const struct arbiter *a, const struct tenant *t, const struct tenant *other)
{
	if (turn_step_ns(a, t) > 0)
		return has_returned(a, t, other) || order_in_need(a, other);
	return comes_first(a, t, other);
}

/* What is left of the holder's turn, beside `other`, once the work in flight is done. */
double turn_left_ns(const struct arbiter *a, const struct tenant *t, int other)
{
	if (turn_step_ns(a, t) > 0 && comes_first(a, t, &a->tenant[other]))
		return (double)a->config.min_lease_ns - (double)a->ran_ns;
	return (double)a->quantum_ns - (double)a->ran_ns - turn_predicted_ns(a, t, true);
}

/* Whether the holder, which may go on otherwise, should give way to `other`; renews if not. */
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

/* A lease that was pushed for: taken from a lower priority, which does not end it. */
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
