#include "policy/safety/time_policy.h"

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
	uint64_t passed_ns = reading->passed_ns < TIME_LONGEST_NS ? reading->passed_ns
								  : TIME_LONGEST_NS;
	double paid = time_paid(reading) + TIME_SLACK;
	bool is_certain = add(&account->certain_ns, reading->certain - paid, passed_ns,
			      TIME_CERTAIN_NS);
	bool is_likely = add(&account->likely_ns, reading->likely - paid, passed_ns, TIME_LIKELY_NS);
	return is_certain || is_likely;
}

double time_unexplained(double busy, double explained)
{
	double rest = busy - explained;
	return rest > TIME_SLACK ? rest : 0;
}
