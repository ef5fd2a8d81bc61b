/*
 * ARBITER_POLICY_FEEDBACK: Lu et al., Algorithm 2 (docs/reference/seeds.md). At the end of each period, this file compares a
 * tenant's share of the device with its target. The control law (feedback.h) then computes how much the tenant may begin in the
 * next period, which is granted as tokens. The gate in the tenant's processes consumes tokens: a launch pays by its grid and
 * block.
 *
 * Tenants are PACED and run at the same time; the device's own slicing divides the device among tenants with work. Only a
 * tenant that is alone and has no cap is FREE, because nothing needs to be limited.
 *
 *   Price     The number of tokens for a nanosecond of the device differs by orders of magnitude from kernel to kernel. The
 *             price is the tokens that the tenant paid, divided by the time that it was charged for. Both decay as the charge
 *             grows. Until the price is known, one launch may pass, and then twice as much in each period.
 *   Grant     A grant is rate x period at that price. Tokens are not saved up beyond one grant. Grants pay off a debt (a
 *             launch may cost more tokens than there are); debt beyond debt_max_ns is forgiven.
 *   Target    The target is the tenant's part of the device by weight among the active tenants, at most its limit. The time
 *             that a limit keeps from its tenant goes to the others. A part that its owner does not use is lent to no other
 *             tenant: this is the paper's policy.
 */
#include "policy/lease/arbiter_inside.h"

/* time constant by which samples of the price (tokens per ns) decay; counts charged time, so nothing decays while idle */
#define WORTH_FADE_NS 300e6
#define WORTH_KNOWN_NS 2e6 /* the price counts as known from this charge on */
#define GRANT_MAX 1e18     /* far above a real grant, far below overflow */

void paced_add(struct arbiter *a, struct tenant *t)
{
	/* One token, so that the new tenant's first launch passes the gate and shows that the tenant is at work. */
	t->paced = (struct paced_account){ .granted = 1, .grant = 1, .began_at = a->clock };
}

/* The tenant may launch if positive. The tenant writes `spent`, so any value is possible. */
static int64_t balance(const struct tenant *t)
{
	return (int64_t)(t->paced.granted - t->seen.spent);
}

/* 0 to 1: by weight among active tenants, none above its limit. */
static double target(const struct arbiter *a, const struct tenant *of)
{
	bool is_fixed[ARBITER_MAX_TENANTS] = { false };
	double left = 1, weights = 0;
	bool again = true;

	for (int i = 0; i < a->active_count; i++)
		weights += order_weight(a, &a->tenant[a->active[i]]);
	while (again) {
		again = false;
		for (int i = 0; i < a->active_count; i++) {
			const struct tenant *t = &a->tenant[a->active[i]];
			double weight = order_weight(a, t), limit = t->share.limit_pct / 100.0;

			if (is_fixed[i] || limit * weights > left * weight)
				continue;
			if (t == of)
				return limit;
			is_fixed[i] = again = true;
			left -= limit;
			weights -= weight;
		}
	}
	return left * order_weight(a, of) / weights;
}

static void begin_period(struct arbiter *a, struct tenant *t)
{
	t->paced.began_at = a->clock;
	t->paced.spent_before = t->seen.spent;
	t->paced.charged_before = t->charged_ns;
}

static void learn_worth(struct paced_account *p, double paid, double charged_ns)
{
	double keep = 1 / (1 + charged_ns / WORTH_FADE_NS);

	p->paid_tokens = p->paid_tokens * keep + paid;
	p->paid_for_ns = p->paid_for_ns * keep + charged_ns;
}

static bool worth_is_known(const struct paced_account *p)
{
	return p->paid_for_ns >= WORTH_KNOWN_NS && p->paid_tokens > 0;
}

/* Afterwards, the tenant has at most one grant of tokens, or a debt of at most debt_max_ns. */
static void grant(const struct arbiter *a, struct tenant *t, double tokens)
{
	struct paced_account *p = &t->paced;
	int64_t now = balance(t);

	p->grant = (uint64_t)(tokens < GRANT_MAX ? tokens : GRANT_MAX);
	if (now < 0) {
		double debt_max = (double)a->config.debt_max_ns * p->paid_tokens / p->paid_for_ns;

		p->granted += p->grant;
		if (!worth_is_known(p))
			p->granted = t->seen.spent + p->grant;
		else if (-(double)balance(t) > debt_max && debt_max < GRANT_MAX)
			p->granted = t->seen.spent - (uint64_t)debt_max;
		return;
	}
	uint64_t most = p->grant > (uint64_t)now ? p->grant - (uint64_t)now : 0;
	p->granted += most;
}

static double utilization(const struct arbiter *a, const struct tenant *t, double charged_ns,
			  uint64_t dt_ns)
{
	if (a->config.feedback_sensor == ARBITER_SENSOR_NVML && t->seen.has_utilization)
		return t->seen.utilization;
	return charged_ns / (double)dt_ns;
}

static void end_period(struct arbiter *a, struct tenant *t)
{
	struct paced_account *p = &t->paced;
	uint64_t dt_ns = a->clock - p->began_at;
	double charged_ns = t->charged_ns - p->charged_before;
	double paid = t->seen.spent > p->spent_before ? (double)(t->seen.spent - p->spent_before)
						      : 0;

	/* charged_ns is negative if a settlement took back a charge of an earlier period. */
	if (charged_ns < 0)
		charged_ns = 0;
	learn_worth(p, paid, charged_ns);
	double rate = feedback_update(&a->config.feedback, &p->loop, target(a, t),
				      utilization(a, t, charged_ns, dt_ns), dt_ns,
				      t->seen.waiting || balance(t) <= 0);
	if (worth_is_known(p))
		grant(a, t, rate * (double)p->loop.period_ns * p->paid_tokens / p->paid_for_ns);
	else
		grant(a, t, paid > 0 ? 2 * paid : 1);
	begin_period(a, t);
}

/* After a pause or after FREE: keeps the size of the last grant and the learned price. */
static void begin_again(struct arbiter *a, struct tenant *t)
{
	t->paced.loop.has_measured = false;
	t->paced.loop.measured = 0;
	if (t->paced.grant < 1)
		t->paced.grant = 1;
	if (balance(t) < (int64_t)t->paced.grant)
		t->paced.granted = t->seen.spent + t->paced.grant;
	begin_period(a, t);
}

/* Ends the tenant's period if its time is over. Returns the time until the next end of a period. */
static uint64_t poll_tenant(struct arbiter *a, struct tenant *t)
{
	uint64_t period = t->paced.loop.period_ns;
	uint64_t age = a->clock - t->paced.began_at;

	if (t->state != LEASE_PACED)
		return UINT64_MAX;
	/* A stopped tenant cannot clear its flags, so it is not charged for them any more. */
	if (t->seen.stopped)
		t->overrunning = true;
	if (period < a->config.feedback.period_min_ns)
		period = a->config.feedback.period_min_ns;
	if (age > period + 2 * a->config.feedback.period_max_ns) {
		begin_again(a, t);
	} else if (age >= period) {
		end_period(a, t);
		period = t->paced.loop.period_ns;
	} else {
		return period - age;
	}
	return period;
}

static void set_state(struct arbiter *a, struct tenant *t, bool is_alone)
{
	bool goes = t->state == LEASE_PACED || t->state == LEASE_FREE;

	if (t->paused) {
		if (goes && t->active && t->running)
			lease_close(a, t);
		else if (!t->draining)
			lease_hold(a, t);
		return;
	}
	/* Work under FREE paid no tokens, so it tells nothing about the price of GPU time. */
	if (t->state != LEASE_PACED && !is_alone)
		begin_again(a, t);
	t->state = is_alone ? LEASE_FREE : LEASE_PACED;
	t->draining = false;
	/* A stopped tenant's processes cannot clear their busy flags. `overrunning` keeps these from counting as work. */
	t->overrunning = t->overrunning && t->seen.stopped;
}

static int find_free(const struct arbiter *a)
{
	if (a->active_count != 1)
		return NONE;
	const struct tenant *only = &a->tenant[a->active[0]];
	return is_capped(only) || only->paused ? NONE : a->active[0];
}

/* last_holder is the previous FREE tenant. */
static void set_states(struct arbiter *a)
{
	int free_one = find_free(a);

	if (free_one == a->last_holder && !a->shares_changed)
		return;
	a->last_holder = free_one;
	a->shares_changed = false;
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++) {
		if (a->tenant[i].used)
			set_state(a, &a->tenant[i], i == free_one);
	}
}

uint64_t paced_decide(struct arbiter *a)
{
	uint64_t left = a->config.poll_lease_ns;

	set_states(a);
	a->mode = !a->active_count       ? ARBITER_IDLE
		  : find_free(a) != NONE ? ARBITER_FREE
					 : ARBITER_PACED;
	for (int i = 0; i < a->active_count; i++)
		left = min_u64(left, poll_tenant(a, &a->tenant[a->active[i]]));
	if (a->mode != ARBITER_PACED)
		return a->mode == ARBITER_FREE ? a->config.poll_free_ns : a->config.poll_idle_ns;
	return left > a->config.poll_drain_ns ? left : a->config.poll_drain_ns;
}
