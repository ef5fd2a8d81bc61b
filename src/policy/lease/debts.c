#include <math.h>

#include "policy/lease/arbiter_inside.h"

/* A tenant that inherited more debt than this, in ns of GPU time, waits even while the other tenants pause. */
#define WAITS_NS 250000000
#define FORGET_NS 60e9 /* see end_of_unpaid() */

static double ahead_ns(const struct arbiter *a, const struct tenant *t)
{
	return (t->vtime - a->vclock) * order_weight(a, t);
}

bool debts_must_wait(const struct arbiter *a, const struct tenant *t)
{
	return t->has_inherited_debt && a->config.policy == ARBITER_POLICY_LEASE &&
	       ahead_ns(a, t) > WAITS_NS;
}

/* How long a share of rate_pct percent takes to pay for the debt, which is limited to debt_max_ns. */
static uint64_t time_to_pay(const struct arbiter *a, double debt_ns, double rate_pct)
{
	return (uint64_t)(fmin(debt_ns, (double)a->config.debt_max_ns) * 100 / rate_pct);
}

static uint64_t paid_at(const struct debt *d)
{
	return max_u64(max_u64(d->turn_until, d->cap_until),
		       max_u64(d->certain_until, d->likely_until));
}

/* Unpaid time of bound_ns, with which the tenant was in violation, is forgotten in FORGET_NS. Returns when unpaid_ns is 0. */
static uint64_t end_of_unpaid(const struct arbiter *a, uint64_t unpaid_ns, uint64_t bound_ns)
{
	return a->clock + (uint64_t)((double)unpaid_ns * FORGET_NS / (double)bound_ns);
}

/* Returns what is left of unpaid time that is 0 at `until`. */
static uint64_t unpaid_left_ns(const struct arbiter *a, uint64_t until, uint64_t bound_ns)
{
	if (until <= a->clock)
		return 0;
	return (uint64_t)((double)(until - a->clock) * (double)bound_ns / FORGET_NS);
}

/* Returns the owner's entry. If there is none, replaces the entry whose debt will be paid first, such as an unused one. */
static struct debt *entry_for(struct arbiter *a, uint64_t owner)
{
	struct debt *oldest = &a->debt[0];
	for (unsigned i = 0; i < DEBTS_MAX; i++) {
		struct debt *d = &a->debt[i];
		if (d->owner == owner)
			return d;
		if (paid_at(d) < paid_at(oldest))
			oldest = d;
	}
	*oldest = (struct debt){ .owner = owner };
	return oldest;
}

void debts_note(struct arbiter *a, struct tenant *t)
{
	if (!t->owner || t->part.of != NONE)
		return;
	charge_fill_tokens(a, t);
	bool is_ahead = ahead_ns(a, t) > (double)a->quantum_ns;
	bool is_overdrawn = is_capped(t) && -t->tokens_ns > (double)a->quantum_ns;
	if (!is_ahead && !is_overdrawn && !t->unpaid.certain_ns && !t->unpaid.likely_ns)
		return;
	struct debt *d = entry_for(a, t->owner);
	d->certain_until = max_u64(d->certain_until,
				   end_of_unpaid(a, t->unpaid.certain_ns, TIME_CERTAIN_NS));
	d->likely_until = max_u64(d->likely_until,
				  end_of_unpaid(a, t->unpaid.likely_ns, TIME_LIKELY_NS));
	if (is_ahead)
		d->turn_until = max_u64(d->turn_until, a->clock + time_to_pay(a, ahead_ns(a, t),
									      order_weight(a, t)));
	if (is_overdrawn)
		d->cap_until = max_u64(d->cap_until,
				       a->clock + time_to_pay(a, -t->tokens_ns, t->share.limit_pct));
}

void debts_take_over(struct arbiter *a, struct tenant *t)
{
	const struct debt *d = NULL;
	for (unsigned i = 0; i < DEBTS_MAX && t->owner; i++)
		if (a->debt[i].owner == t->owner)
			d = &a->debt[i];
	if (!d)
		return;
	t->unpaid.certain_ns = unpaid_left_ns(a, d->certain_until, TIME_CERTAIN_NS);
	t->unpaid.likely_ns = unpaid_left_ns(a, d->likely_until, TIME_LIKELY_NS);
	t->has_inherited_debt = d->turn_until > a->clock;
	if (t->has_inherited_debt)
		t->vtime += (double)(d->turn_until - a->clock) / 100;
	if (is_capped(t) && d->cap_until > a->clock)
		t->tokens_ns = fmin(t->tokens_ns,
				    -(double)(d->cap_until - a->clock) / 100 * t->share.limit_pct);
}
