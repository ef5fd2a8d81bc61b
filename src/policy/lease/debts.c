#include <math.h>

#include "policy/lease/arbiter.h"
#include "policy/lease/arbiter_inside.h"

/* A tenant that inherited more debt than this, in ns of GPU time, waits even while the other tenants pause. */
#define WAITS_NS 250000000
#define FORGET_NS 60e9 /* see time_to_forget() */
/* A new tenant inherits at most this fraction of the unpaid time that makes a violation, so one wrong sample makes none. */
#define INHERITED_MOST 0.7
/* After a violation, the tenant's owner gets no new tenant for this long. */
#define REFUSE_NS UINT64_C(30000000000)

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
		       max_u64(max_u64(d->certain_until, d->likely_until), d->refused_until));
}

static int find_entry(const struct arbiter *a, uint64_t owner)
{
	for (int i = 0; owner && i < DEBTS_MAX; i++)
		if (a->debt[i].owner == owner)
			return i;
	return NONE;
}

/* Returns the owner's entry. If there is none, replaces the entry whose debt will be paid first, such as an unused one. */
static struct debt *entry_for(struct arbiter *a, uint64_t owner)
{
	struct debt *oldest = &a->debt[0];
	int known = find_entry(a, owner);
	if (known != NONE)
		return &a->debt[known];
	for (unsigned i = 1; i < DEBTS_MAX; i++)
		if (paid_at(&a->debt[i]) < paid_at(oldest))
			oldest = &a->debt[i];
	*oldest = (struct debt){ .owner = owner };
	return oldest;
}

/*
 * Unpaid time of bound_ns, with which a tenant is in violation, is forgotten in FORGET_NS after the tenant's removal. Less
 * unpaid time is forgotten sooner in proportion, and a tenth of bound_ns or less at once.
 */
static uint64_t time_to_forget(uint64_t unpaid_ns, uint64_t bound_ns)
{
	double part = (double)min_u64(unpaid_ns, bound_ns) / (double)bound_ns;

	return part > 0.1 ? (uint64_t)(part * FORGET_NS) : 0;
}

/* The unpaid time with which a new tenant begins, if time_to_forget() ends at `until`. */
static uint64_t unpaid_left(const struct arbiter *a, uint64_t until, uint64_t bound_ns)
{
	double left_ns = until > a->clock ? (double)(until - a->clock) : 0;

	return (uint64_t)(fmin(left_ns / FORGET_NS, INHERITED_MOST) * (double)bound_ns);
}

void debts_note(struct arbiter *a, struct tenant *t)
{
	if (!t->owner || t->part.of != NONE)
		return;
	charge_fill_tokens(a, t);
	bool is_ahead = ahead_ns(a, t) > (double)a->quantum_ns;
	bool is_overdrawn = is_capped(t) && -t->tokens_ns > (double)a->quantum_ns;
	/* The owner's entry still has what the tenant inherited, and forgets it. */
	uint64_t certain_ns = t->unpaid.certain_ns > t->inherited.certain_ns
				      ? time_to_forget(t->unpaid.certain_ns, TIME_CERTAIN_NS)
				      : 0;
	uint64_t likely_ns = t->unpaid.likely_ns > t->inherited.likely_ns
				     ? time_to_forget(t->unpaid.likely_ns, TIME_LIKELY_NS)
				     : 0;
	if (!is_ahead && !is_overdrawn && !certain_ns && !likely_ns)
		return;
	struct debt *d = entry_for(a, t->owner);
	if (certain_ns)
		d->certain_until = max_u64(d->certain_until, a->clock + certain_ns);
	if (likely_ns)
		d->likely_until = max_u64(d->likely_until, a->clock + likely_ns);
	if (is_ahead)
		d->turn_until = max_u64(d->turn_until, a->clock + time_to_pay(a, ahead_ns(a, t),
									      order_weight(a, t)));
	if (is_overdrawn)
		d->cap_until = max_u64(d->cap_until,
				       a->clock + time_to_pay(a, -t->tokens_ns, t->share.limit_pct));
}

void debts_take_over(struct arbiter *a, struct tenant *t)
{
	int entry = find_entry(a, t->owner);
	if (entry == NONE)
		return;
	const struct debt *d = &a->debt[entry];
	t->unpaid.certain_ns = unpaid_left(a, d->certain_until, TIME_CERTAIN_NS);
	t->unpaid.likely_ns = unpaid_left(a, d->likely_until, TIME_LIKELY_NS);
	t->inherited = t->unpaid;
	t->has_inherited_debt = d->turn_until > a->clock;
	if (t->has_inherited_debt)
		t->vtime += (double)(d->turn_until - a->clock) / 100;
	if (is_capped(t) && d->cap_until > a->clock)
		t->tokens_ns = fmin(t->tokens_ns,
				    -(double)(d->cap_until - a->clock) / 100 * t->share.limit_pct);
}

void debts_refuse(struct arbiter *a, const struct tenant *t)
{
	if (t->owner && t->part.of == NONE)
		entry_for(a, t->owner)->refused_until = a->clock + REFUSE_NS;
}

uint64_t arbiter_refused_ns(const struct arbiter *a, int tenant)
{
	int entry = is_tenant(a, tenant) ? find_entry(a, a->tenant[tenant].owner) : NONE;
	if (entry == NONE || a->debt[entry].refused_until <= a->clock)
		return 0;
	return a->debt[entry].refused_until - a->clock;
}
