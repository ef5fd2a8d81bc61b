#include <math.h>

#include "policy/lease/arbiter_inside.h"

/*
 * The fraction of GPU time in which a tenant may push ahead: its guarantee plus a margin, because a burst is charged for longer
 * than its work takes. The margins are smaller if the guarantees leave too little room: guarantees with their margins never
 * exceed the GPU in sum. A tenant without a guarantee gets a small part of the remaining time, at least 1 %.
 */
static double rate(const struct arbiter *a, const struct tenant *t)
{
	double margin = a->config.urgent_margin, left;

	if (a->promised_pct * margin > 100.0)
		margin = 100.0 / a->promised_pct;
	if (t->share.cores_pct > 0)
		return t->share.cores_pct * margin / 100.0;
	left = 100.0 - a->promised_pct * margin;
	if (a->active_unpromised > 1)
		left /= a->active_unpromised;
	return fmin(fmax(left, 1.0), a->config.urgent_default_pct) / 100.0;
}

static double bucket_ns(const struct arbiter *a, const struct tenant *t)
{
	return rate(a, t) * (double)a->config.urgent_window_ns;
}

void priority_begin(struct arbiter *a, struct tenant *t)
{
	t->budget_ns = bucket_ns(a, t);
	t->budget_at = a->clock;
}

void priority_fill(struct arbiter *a, struct tenant *t)
{
	double most, slice_ns = (double)a->config.urgent_slice_ns;

	/* Budgets matter only while priorities differ. When they begin to, the first call fills the budget. */
	if (!a->priorities_differ)
		return;
	most = bucket_ns(a, t);
	t->budget_ns += rate(a, t) * (double)(a->clock - t->budget_at);
	if (t->budget_ns > most)
		t->budget_ns = most;
	/* Without a whole slice saved, a tenant that never stops would cause a switch at every moment. */
	if (t->budget_ns >= fmin(slice_ns, most / 2) &&
	    (!is_capped(t) || t->tokens_ns >= fmin(slice_ns, charge_tokens_needed(a, t))))
		t->budget_spent = false;
	t->budget_at = a->clock;
}

/* Time that no other tenant wanted is free. The debt is limited, so that the tenant can pay it back. */
void priority_charge(struct arbiter *a, struct tenant *t, double amount_ns)
{
	double slice_ns = (double)a->config.urgent_slice_ns, least;

	if (!a->priorities_differ || a->wanting <= (t->demand || t->running))
		return;
	least = -bucket_ns(a, t) - slice_ns;
	t->budget_ns -= amount_ns;
	if (t->budget_ns < least)
		t->budget_ns = least;
	if (fmin(t->budget_ns, is_capped(t) ? t->tokens_ns : 0) <= -slice_ns)
		t->budget_spent = true;
}

void priority_count(struct arbiter *a)
{
	const struct tenant *first = NULL;

	a->priorities_differ = false;
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++) {
		const struct tenant *t = &a->tenant[i];

		if (!is_lessee(t))
			continue;
		if (first && t->share.priority != first->share.priority)
			a->priorities_differ = true;
		first = t;
	}
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++)
		a->tenant[i].urgent = a->tenant[i].urgent && a->priorities_differ;
}

bool priority_is_outranked(const struct arbiter *a, const struct tenant *t)
{
	if (!a->priorities_differ)
		return false;
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++) {
		const struct tenant *other = &a->tenant[i];

		if (is_lessee(other) && !other->paused && other->seen.launches > 0 &&
		    other->share.priority > t->share.priority)
			return true;
	}
	return false;
}

static bool may_push(const struct tenant *t)
{
	return t->demand && !t->draining && !t->budget_spent && t->budget_ns > 0 &&
	       (!is_capped(t) || t->tokens_ns > 0);
}

void priority_mark(struct arbiter *a)
{
	int least = 0;
	bool any = false;

	if (!a->priorities_differ)
		return;
	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];

		if (t->demand && (!any || t->share.priority < least)) {
			least = t->share.priority;
			any = true;
		}
	}
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];

		t->urgent = any && t->share.priority > least && may_push(t);
	}
}

int priority_best(const struct arbiter *a, int except, int64_t least)
{
	int best = NONE;

	for (int i = 0; i < a->active_count; i++) {
		int index = a->active[i];
		const struct tenant *t = &a->tenant[index], *b = &a->tenant[best < 0 ? 0 : best];

		if (index == except || !t->urgent || t->share.priority < least ||
		    gang_rank_is_held(a, t))
			continue;
		if (best == NONE || t->share.priority > b->share.priority ||
		    (t->share.priority == b->share.priority && t->vtime < b->vtime))
			best = index;
	}
	return best;
}
