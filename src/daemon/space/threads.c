#include "daemon/space/threads.h"

#include <math.h>

#define PAIR 2

struct mps_threads mps_threads_for(double limit_pct, unsigned sms)
{
	/* What a percentage with two decimals, times the SMs, may be off by. */
	double wanted = ceil((limit_pct * sms / 100 - 1e-6) / PAIR) * PAIR;

	if (!sms)
		return (struct mps_threads){ limit_pct, limit_pct };
	if (wanted >= sms)
		return (struct mps_threads){ 100, 100 };
	/* A whole percentage where one of those that are rounded down to this is one. */
	return (struct mps_threads){ .pct = sms <= PAIR * 100 ? ceil(100 * wanted / sms)
							      : ceil(10000 * wanted / sms) / 100,
				     .part_pct = 100 * wanted / sms };
}
