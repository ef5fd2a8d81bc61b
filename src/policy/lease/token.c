/*
 * ARBITER_POLICY_TOKEN: KubeShare's policy of time sharing, for comparison (Gemini; KubeShare: HPDC'20). One tenant at a time
 * has the token, for a fixed quota of time. A holder without work loses its token early. Any other holder may launch until the
 * quota is over, however long its in-flight work will take. The next tenant gets the token when the holder's work has ended.
 * Work that ran past the quota counts as use.
 *
 * Only tenants whose use in the sliding window is below their limit can be next. Tenants below their guarantee come first, and
 * among them the one that misses most of it. Then comes the tenant that used least.
 *
 * Charge and drain are the same as for leases (lease_charge.c, lease.c). So is the rule for a tenant whose in-flight work waits
 * for a launch that is held at the gate (order_in_need()).
 */
#include "policy/lease/arbiter_inside.h"

void token_add(struct arbiter *a, struct tenant *t)
{
	t->token = (struct token_account){ .since = a->clock };
}

static uint64_t part_length_ns(const struct arbiter *a)
{
	uint64_t length = a->config.token_window_ns / TOKEN_PARTS;

	return length ? length : 1;
}

/* Moves the window to the present time: drops old parts, and adds new charge to the latest part. */
static void count_use(struct arbiter *a, struct tenant *t)
{
	struct token_account *w = &t->token;
	uint64_t part = a->clock / part_length_ns(a);

	if (part - w->part >= TOKEN_PARTS)
		*w = (struct token_account){ .part = part,
					     .counted_ns = w->counted_ns,
					     .since = w->since };
	while (w->part != part) {
		double *oldest = &w->part_ns[++w->part % TOKEN_PARTS];

		w->used_ns -= *oldest;
		*oldest = 0;
	}
	w->part_ns[part % TOKEN_PARTS] += t->charged_ns - w->counted_ns;
	w->used_ns += t->charged_ns - w->counted_ns;
	w->counted_ns = t->charged_ns;
}

/*
 * Length of the tenant's window. A new tenant's window begins when the tenant is added, but counts as at least token_quota_ns
 * long: with length 0, the tenant could use nothing without exceeding its limit, and would not get its first token.
 */
static double window_ns(const struct arbiter *a, const struct tenant *t)
{
	uint64_t age = a->clock - t->token.since;

	if (age < a->config.token_quota_ns)
		age = a->config.token_quota_ns;
	return (double)min_u64(age, a->config.token_window_ns);
}

static bool may_have_token(const struct arbiter *a, const struct tenant *t)
{
	if (!t->demand || t->draining)
		return false;
	return t->token.used_ns < t->share.limit_pct / 100.0 * window_ns(a, t) ||
	       order_in_need(a, t);
}

static double missing_ns(const struct arbiter *a, const struct tenant *t)
{
	return t->share.cores_pct / 100.0 * window_ns(a, t) - t->token.used_ns;
}

static bool comes_before(const struct arbiter *a, const struct tenant *t, const struct tenant *best)
{
	double mine = missing_ns(a, t), others = missing_ns(a, best);

	if (order_in_need(a, t) != order_in_need(a, best))
		return order_in_need(a, t);
	if (order_in_need(a, t))
		return t->held_at < best->held_at;
	if (mine > 0 || others > 0)
		return mine > others;
	return t->token.used_ns < best->token.used_ns;
}

static int find_next(const struct arbiter *a)
{
	int best = NONE;

	for (int i = 0; i < a->active_count; i++) {
		int index = a->active[i];

		if (may_have_token(a, &a->tenant[index]) &&
		    (best == NONE || comes_before(a, &a->tenant[index], &a->tenant[best])))
			best = index;
	}
	return best;
}

static bool is_idle(const struct arbiter *a, const struct tenant *t)
{
	uint64_t patience = t->seen.waiting ? a->config.start_limit_ns : a->config.idle_ns;

	return a->clock - t->worked_at >= patience;
}

static void decide_on_holder(struct arbiter *a)
{
	struct tenant *t = &a->tenant[a->holder];

	if (t->state == LEASE_CLOSING)
		return;
	if (t->seen.stopped && !t->running) {
		a->last_end = (struct arbiter_lease_end){ .why = ARBITER_END_STOPPED };
		lease_hold(a, t);
	} else if (t->paused || t->seen.stopped || is_idle(a, t) ||
		   a->clock - a->granted_at >= a->config.token_quota_ns) {
		lease_close_for(a, t,
				t->paused         ? ARBITER_END_PAUSED
				: t->seen.stopped ? ARBITER_END_STOPPED
				: is_idle(a, t)   ? ARBITER_END_IDLE
						  : ARBITER_END_TURN);
	}
}

static uint64_t next_poll_ns(const struct arbiter *a)
{
	uint64_t left = a->config.poll_lease_ns;

	if (a->mode == ARBITER_IDLE)
		return a->config.poll_idle_ns;
	if (a->holder != NONE) {
		uint64_t held = a->clock - a->granted_at;

		left = held < a->config.token_quota_ns
			       ? min_u64(left, a->config.token_quota_ns - held)
			       : 0;
	}
	return left > a->config.poll_drain_ns ? left : a->config.poll_drain_ns;
}

uint64_t token_decide(struct arbiter *a)
{
	int next;

	a->mode = a->active_count ? ARBITER_LEASES : ARBITER_IDLE;
	for (int i = 0; i < a->active_count; i++)
		count_use(a, &a->tenant[a->active[i]]);
	if (a->holder != NONE)
		decide_on_holder(a);
	if (a->holder == NONE && !lease_any_drain(a)) {
		next = find_next(a);
		if (next != NONE)
			lease_grant(a, next);
	}
	return next_poll_ns(a);
}
