#include "policy/lease/rules/share_delta.h"

#include <math.h>

double share_delta_pct(double guarantee_pct, double limit_pct, double wanted_pct, double got_pct)
{
	double missing_pct = fmin(guarantee_pct, wanted_pct) - got_pct;

	return fmax(fmax(missing_pct, got_pct - limit_pct), 0);
}
