#include "daemon/space/threads.h"

#include <math.h>

#define PAIR 2

struct mps_threads mps_threads_for(double limit_pct, unsigned sms)
{
	/* Take the nearest pair of SMs, the smaller if two are equally near: so limits with a sum of 100 share no SM. */
	double wanted = fmax(ceil(limit_pct * sms / 100 / PAIR - 0.5 - 1e-6), 1) * PAIR;

	if (!sms)
		return (struct mps_threads){ limit_pct, limit_pct };
	if (wanted >= sms)
		return (struct mps_threads){ 100, 100 };
	/* With at most 100 pairs of SMs, a whole percentage suffices: MPS rounds it down to a pair. */
	return (struct mps_threads){ .pct = sms <= PAIR * 100 ? ceil(100 * wanted / sms)
							      : ceil(10000 * wanted / sms) / 100,
				     .part_pct = 100 * wanted / sms };
}
