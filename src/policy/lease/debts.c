#include <math.h>

#include "policy/lease/arbiter_inside.h"

/* A tenant that inherited more debt than this, in ns of GPU time, waits even while the other tenants pause. */
#define WAITS_NS 250000000

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

/* Returns the owner's entry. If there is none, replaces the entry whose debt will be paid first, such as an unused one. */
static struct debt *entry_for(struct arbiter *a, uint64_t owner)
{
	struct debt *oldest = &a->debt[0];
	for (unsigned i = 0; i < DEBTS_MAX; i++) {
		struct debt *d = &a->debt[i];
		if (d->owner == owner)
			return d;
		if (max_u64(d->turn_until, d->cap_until) <
		    max_u64(oldest->turn_until, oldest->cap_until))
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
	if (!is_ahead && !is_overdrawn)
		return;
	struct debt *d = entry_for(a, t->owner);
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
	t->has_inherited_debt = d->turn_until > a->clock;
	if (t->has_inherited_debt)
		t->vtime += (double)(d->turn_until - a->clock) / 100;
	if (is_capped(t) && d->cap_until > a->clock)
		t->tokens_ns = fmin(t->tokens_ns,
				    -(double)(d->cap_until - a->clock) / 100 * t->share.limit_pct);
}
