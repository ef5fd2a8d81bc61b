#include "policy/lease/rules/lend.h"

#include <math.h>

#define MS UINT64_C(1000000)
#define END_PCT 1e-6 /* tolerance for sums of floating-point shares */
/* The most rounds of find_level(); each round but the last satisfies at least one tenant. */
#define ROUNDS_MOST 256

struct lend_config lend_default_config(void)
{
	return (struct lend_config){ .period_ns = 100 * MS,
				     .fade_ns = 300 * MS,
				     .most_pct = 100,
				     .step_pct = 30,
				     .reserve_pct = 10 };
}

const char *lend_reason_name(enum lend_reason reason)
{
	static const char *const names[] = {
		[LEND_OFF] = "off", [LEND_UNNEEDED] = "unneeded", [LEND_LENT] = "lent", [LEND_RECLAIMED] = "reclaimed"
	};
	return names[reason];
}

void lend_reset(struct lend_tenant *tenant)
{
	tenant->limit_now_pct = tenant->limit_pct;
	tenant->reason = tenant->may_borrow ? LEND_UNNEEDED : LEND_OFF;
}

static double part_pct(uint64_t now_ns, uint64_t before_ns, uint64_t dt_ns)
{
	return now_ns > before_ns ? 100.0 * (double)(now_ns - before_ns) / (double)dt_ns : 0;
}

/* `now` if demand has risen, else a value that decays slowly from `before` to `now`. */
static double fade(const struct lend_config *config, double before, double now, uint64_t dt_ns)
{
	if (now >= before)
		return now;
	double kept = exp(-(double)dt_ns / (double)(config->fade_ns ? config->fade_ns : 1));
	return now + (before - now) * kept;
}

static void update_demand(const struct lend_config *config, struct lend_tenant *t, uint64_t dt_ns)
{
	double demand = 0;

	if (!t->known) {
		t->known = true;
		lend_reset(t);
	} else if (!t->absent) {
		demand = part_pct(t->charged_ns, t->charged_before_ns, dt_ns) +
			 part_pct(t->waited_ns, t->waited_before_ns, dt_ns);
	}
	t->charged_before_ns = t->charged_ns;
	t->waited_before_ns = t->waited_ns;
	if (demand > 100)
		demand = 100;
	t->demand_pct = fade(config, t->demand_pct, demand, dt_ns);
	if (demand > t->cores_pct)
		demand = t->cores_pct;
	t->own_demand_pct = fade(config, t->own_demand_pct, demand, dt_ns);
}

/* How much of `owned` percent may be lent if `demand` percent are wanted. */
static double spare_of(const struct lend_config *config, double owned, double demand)
{
	return owned > demand ? (owned - demand) * (1 - config->reserve_pct / 100) : 0;
}

/* Sets each tenant's spare_pct. Returns their sum plus the unpromised time that may be lent, in percent of the GPU. */
static double find_spare(const struct lend_config *config, struct lend_tenant *const *tenants,
			 size_t count)
{
	double promised = 0, sum = 0, unpromised_demand = 0, scale, left;
	bool any_unpromised = false;

	for (size_t i = 0; i < count; i++)
		promised += tenants[i]->cores_pct;
	scale = promised > 100 ? 100 / promised : 1;
	left = promised < 100 ? 100 - promised : 0;
	for (size_t i = 0; i < count; i++) {
		struct lend_tenant *t = tenants[i];

		t->spare_pct = spare_of(config, t->cores_pct * scale, t->own_demand_pct);
		sum += t->spare_pct;
		if (t->cores_pct <= 0) {
			any_unpromised = true;
			unpromised_demand += t->demand_pct;
		}
	}
	return sum + (any_unpromised ? spare_of(config, left, unpromised_demand) : left);
}

static double wanted_pct(const struct lend_config *config, const struct lend_tenant *t)
{
	double wanted = t->demand_pct * LEND_HEADROOM + LEND_HEADROOM_PCT;

	if (!t->may_borrow)
		return 0;
	if (wanted > config->most_pct)
		wanted = config->most_pct;
	return wanted > t->limit_pct ? wanted - t->limit_pct : 0;
}

/* Each tenant may borrow at most `level` times its guarantee. */
static double loan_at_level(const struct lend_config *config, const struct lend_tenant *t,
			    double level)
{
	double wanted = wanted_pct(config, t);
	double part = level * t->cores_pct;

	return part < wanted ? part : wanted;
}

/*
 * Returns the level (loan_at_level()) at which all of `spare` is lent or no tenant wants more. Each round raises the level for
 * the tenants that want more, until at least one of them is satisfied.
 */
static double find_level(const struct lend_config *config, struct lend_tenant *const *tenants,
			 size_t count, double spare)
{
	double level = 0;

	for (int round = 0; round < ROUNDS_MOST; round++) {
		double lent = 0, weight = 0, next = 0;

		for (size_t i = 0; i < count; i++) {
			const struct lend_tenant *t = tenants[i];
			double wanted = wanted_pct(config, t);
			double satisfied_at = t->cores_pct > 0 ? wanted / t->cores_pct : 0;

			lent += loan_at_level(config, t, level);
			if (satisfied_at <= level)
				continue;
			weight += t->cores_pct;
			if (next <= 0 || satisfied_at < next)
				next = satisfied_at;
		}
		if (weight <= 0 || lent >= spare)
			return level;
		if (level + (spare - lent) / weight <= next)
			return level + (spare - lent) / weight;
		level = next;
	}
	return level;
}

static void move_limit(const struct lend_config *config, struct lend_tenant *t, double target,
		       bool is_wanted)
{
	double by = target - t->limit_now_pct;

	if (!t->may_borrow) {
		lend_reset(t);
		return;
	}
	/* Skip small moves, except to the tenant's own cap or to most_pct (by default 100: no cap). */
	if (fabs(by) < LEND_BAND_PCT && target > t->limit_pct && target < config->most_pct - END_PCT)
		return;
	if (by > config->step_pct)
		by = config->step_pct;
	else if (by < -config->step_pct)
		by = -config->step_pct;
	t->limit_now_pct += by;
	/* Rounding may have put the limit slightly out of its range. */
	if (t->limit_now_pct > config->most_pct)
		t->limit_now_pct = config->most_pct;
	if (t->limit_now_pct < t->limit_pct)
		t->limit_now_pct = t->limit_pct;
	if (by > 0)
		t->reason = LEND_LENT;
	else if (by < 0)
		t->reason = is_wanted ? LEND_RECLAIMED : LEND_UNNEEDED;
}

void lend_decide(const struct lend_config *config, struct lend_tenant *const *tenants, size_t count,
		 uint64_t dt_ns)
{
	if (!dt_ns)
		return;
	for (size_t i = 0; i < count; i++)
		update_demand(config, tenants[i], dt_ns);
	double level = find_level(config, tenants, count, find_spare(config, tenants, count));
	for (size_t i = 0; i < count; i++) {
		struct lend_tenant *t = tenants[i];
		double lent = loan_at_level(config, t, level);

		/* If the limit falls although the tenant wants more, the owners want their time back (LEND_RECLAIMED). */
		move_limit(config, t, t->limit_pct + lent, lent < wanted_pct(config, t));
	}
}
