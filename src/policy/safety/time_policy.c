#include "policy/safety/time_policy.h"

bool time_is_over(uint64_t *unpaid_ns, const struct time_reading *reading)
{
	/* A tenant that has stopped must not stay in violation for long. */
	const double most_ns = 2.0 * (double)TIME_UNPAID_NS;
	uint64_t passed_ns = reading->passed_ns < TIME_LONGEST_NS ? reading->passed_ns
								  : TIME_LONGEST_NS;
	double unpaid = (double)*unpaid_ns +
			(reading->measured - reading->peak - TIME_SLACK) * (double)passed_ns;
	if (unpaid > most_ns)
		unpaid = most_ns;
	*unpaid_ns = unpaid > 0 ? (uint64_t)unpaid : 0;
	return *unpaid_ns >= TIME_UNPAID_NS;
}

double time_unexplained(double busy, double explained)
{
	double rest = busy - explained;
	return rest > TIME_SLACK ? rest : 0;
}
