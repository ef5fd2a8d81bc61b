#include "policy/lease/arbiter_inside.h"

static uint64_t between(uint64_t low, uint64_t value, uint64_t high)
{
	return max_u64(low, min_u64(value, high));
}

/*
 * Half of the tenant's predicted work, so that the polls come ever faster. A tenant that has a doorbell, and was busy after it
 * could read CLOSING, rings the doorbell when its work ends. Unless a gang is on the device, such a tenant is polled only at
 * the deadline and every poll_rung_ns.
 */
static uint64_t drain_poll_ns(const struct arbiter *a, const struct tenant *t)
{
	uint64_t left = t->seen_since_close ? t->seen.inflight_ns / 2 : 0;

	if (t->seen_since_close && t->seen.has_doorbell && t->seen.busy && !a->gang_count)
		return between(a->config.poll_drain_ns,
			       t->drain_deadline - min_u64(a->clock, t->drain_deadline),
			       a->config.poll_rung_ns);
	return between(a->config.poll_drain_ns, left, a->config.poll_lease_ns);
}

uint64_t lease_drain_poll_ns(const struct arbiter *a)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];

		if (t->draining)
			least = min_u64(least, drain_poll_ns(a, t));
	}
	return least;
}

/*
 * For a device without a holder: the time until the first tenant that lacks only tokens has enough of them; poll_lease_ns if a
 * tenant rings no doorbell, a gang is on the device, or a tenant waits to resume its interrupted turn.
 */
static uint64_t next_tokens_ns(const struct arbiter *a)
{
	double least = (double)a->config.poll_rung_ns;

	if (arbiter_must_poll(a) || a->interrupted != NONE)
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

static uint64_t left_of(const struct arbiter *a, uint64_t since, uint64_t length_ns)
{
	uint64_t passed = a->clock - since;

	return passed < length_ns ? length_ns - passed : 0;
}

/* How long the holder may run until `other`, which has returned from absence (has_returned()), would be chosen. */
static uint64_t ahead_ns(const struct arbiter *a, const struct tenant *holder,
			 const struct tenant *other)
{
	double ahead = order_turn_end(a, other, other->vtime) -
		       order_turn_end(a, holder, holder->vtime);

	ahead *= order_weight(a, holder);
	/* callers treat all values above a quantum alike */
	return ahead < (double)a->quantum_ns ? (uint64_t)(ahead > 0 ? ahead : 0) : a->quantum_ns;
}

/*
 * Usually the time that half of the in-flight work takes. poll_rung_ns if others wait, the lease is not urgent and doorbells
 * suffice (arbiter_must_poll()); less if the charge begins, `other` may take the lease, or the holder counts as idle before
 * then.
 */
static uint64_t next_work_ns(const struct arbiter *a, const struct tenant *t, int other)
{
	bool contended = other != NONE;
	uint64_t next_ns = a->config.poll_rung_ns;

	if (!contended || arbiter_must_poll(a) || a->urgent_lease)
		return between(a->config.poll_lease_ns, t->seen.inflight_ns / 2,
			       a->config.poll_free_ns);
	if (!a->started)
		next_ns = min_u64(next_ns, left_of(a, a->granted_at, a->config.start_grace_ns));
	if (turn_may_be_cut(a, t, &a->tenant[other]))
		next_ns = min_u64(next_ns, a->config.min_lease_ns -
						   min_u64(a->ran_ns, a->config.min_lease_ns));
	else if (a->tenant[other].active_since > a->granted_at)
		next_ns = min_u64(next_ns, ahead_ns(a, t, &a->tenant[other]));
	if (!t->running)
		next_ns = min_u64(next_ns, left_of(a, t->worked_at, turn_idle_limit_ns(a, t)));
	return next_ns;
}

/*
 * The turn or tokens of the holder last for left_ns. If its program has steps, the poll comes half a step earlier, because from
 * then on a sync point may end the turn. If half a step or less is left, the poll comes after left_ns. If nothing is left, the
 * poll comes when the step is overdue.
 */
static double next_end_ns(const struct arbiter *a, const struct tenant *t, double left_ns)
{
	double half_ns = turn_step_ns(a, t) / 2;

	if (half_ns <= 0 || (left_ns > 0 && left_ns <= half_ns))
		return left_ns;
	if (left_ns > 0)
		return left_ns - half_ns;
	return steps_left_ns(&t->steps, t->charged_ns, turn_step_most_ns(a, t));
}

uint64_t lease_next_poll_ns(const struct arbiter *a)
{
	double until;

	if (a->holder == NONE)
		return next_tokens_ns(a);
	const struct tenant *t = &a->tenant[a->holder];
	int other = order_best(a, a->holder);
	bool contended = other != NONE;
	double left = (double)next_work_ns(a, t, other);
	if (is_capped(t)) {
		double drain = 1.0 - t->share.limit_pct / 100.0;

		until = next_end_ns(a, t, t->tokens_ns / drain - turn_predicted_ns(a, t, contended));
		if (until < left)
			left = until;
	}
	if (contended) {
		until = next_end_ns(a, t, turn_left_ns(a, t, other));
		if (until < left)
			left = until;
	}
	/* At least poll_drain_ns, to avoid a busy loop. */
	if (left < (double)a->config.poll_drain_ns)
		return a->config.poll_drain_ns;
	return (uint64_t)left;
}
