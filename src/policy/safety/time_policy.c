#include "policy/safety/time_policy.h"

#include <math.h>

#include "base/min.h"

double time_paid(const struct time_reading *r)
{
	if (!(r->unauthorized > 0))
		return r->peak;
	return r->unauthorized < r->charged ? r->peak * (1 - r->unauthorized / r->charged) : 0;
}

/*
 * Adds `rate` times the passed time to *unpaid_ns. Returns true if the rate is positive and *unpaid_ns is now at least
 * `bound_ns`.
 */
static bool add(uint64_t *unpaid_ns, double rate, uint64_t passed_ns, uint64_t bound_ns)
{
	/* A tenant that no longer exceeds its charge must soon be out of violation. */
	const double most_ns = (double)(bound_ns + TIME_LONGEST_NS);
	double unpaid = (double)*unpaid_ns + rate * (double)passed_ns;
	if (unpaid > most_ns)
		unpaid = most_ns;
	*unpaid_ns = unpaid > 0 ? (uint64_t)unpaid : 0;
	return rate > 0 && *unpaid_ns >= bound_ns;
}

bool time_is_over(struct time_account *account, const struct time_reading *reading)
{
	uint64_t passed_ns = min_u64(reading->passed_ns, TIME_LONGEST_NS);
	double paid = fmax(time_paid(reading) + TIME_SLACK, reading->share);
	bool is_certain = add(&account->certain_ns, reading->certain - paid, passed_ns,
			      TIME_CERTAIN_NS);
	bool is_likely = add(&account->likely_ns, reading->likely - paid, passed_ns, TIME_LIKELY_NS);
	return is_certain || is_likely;
}

static double above_slack(double share)
{
	return share > TIME_SLACK ? share : 0;
}

double time_unexplained(const struct time_claim *claim, unsigned count, double busy)
{
	for (unsigned i = 0; i < count; i++)
		busy -= fmax(claim[i].sampled, claim[i].peak_150ms);
	return above_slack(busy);
}

/* Returns the largest share charged in any 150 ms of the last second, for work that the tenant was allowed to begin. */
static double authorized_peak(const struct time_claim *k)
{
	const struct time_reading reading = { .peak = k->peak_150ms,
					      .charged = k->charged,
					      .unauthorized = k->unauthorized };
	return time_paid(&reading);
}

static bool uses_gpu(const struct time_claim *k)
{
	return k->sampled > TIME_SLACK || (!k->is_excused && k->peak_600ms > TIME_NOTHING);
}

/* Sets the share of tenant `t` (time_policy.h). */
static void divide(struct time_claim *claim, unsigned count, struct time_claim *t)
{
	double lent = 1, promised = 0, unpromised = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct time_claim *k = &claim[i];

		if (k != t)
			lent -= k->is_excused ? k->sampled : fmax(k->peak_600ms, k->sampled);
		if (k == t || uses_gpu(k)) {
			promised += k->cores;
			unpromised += k->cores > 0 ? 0 : 1;
		}
	}
	double part = t->cores / fmax(promised, unpromised > 0 ? 1 : TIME_NOTHING);

	if (!(t->cores > 0))
		part = fmax(1 - promised, 0) / unpromised;
	t->share = fmin(fmax(part, lent), t->limit);
}

/*
 * Tenant A lacks samples if its charge is more than its samples. Then either A's work was counted in tenant B's samples, or A
 * only claims to work while B pays too little. So B's `certain` is its samples minus all that tenants lack. B's `likely` is its
 * samples minus what tenants without any sample lack, because tenants with samples rarely lack some for long.
 */
void time_weigh(struct time_claim *claim, unsigned count, double busy, bool is_any_foreign)
{
	/* busy time that no charge explains, time that tenants lack, and time that tenants without a sample lack */
	double rest = busy, missing = 0, unlisted = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct time_claim *k = &claim[i];
		double lacks = fmax(k->peak_600ms - k->sampled, 0);

		rest -= k->peak_150ms;
		missing += lacks;
		unlisted += k->sampled > TIME_SLACK ? 0 : lacks;
	}
	rest = is_any_foreign ? 0 : above_slack(rest);
	for (unsigned i = 0; i < count; i++) {
		struct time_claim *k = &claim[i];
		/* The rest is not other tenants' work. So samples up to charge + rest show this tenant's own work. */
		double uncharged = fmin(k->sampled, k->peak_600ms + rest);
		bool may_be_chance = authorized_peak(k) >= TIME_NOTHING;
		double certain = k->sampled;

		if (may_be_chance)
			certain = is_any_foreign ? 0 : certain - missing;
		k->certain = fmax(certain, uncharged);
		k->likely = fmax(k->sampled - unlisted, uncharged);
		divide(claim, count, k);
	}
}
