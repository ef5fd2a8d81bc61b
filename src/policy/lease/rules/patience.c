#include "policy/lease/rules/patience.h"

void patience_begin(struct patience *p, uint64_t least_ns)
{
	p->ns = least_ns;
	p->gave_up = false;
}

void patience_lost(struct patience *p, uint64_t idle_since_ns)
{
	p->gave_up = true;
	p->idle_since = idle_since_ns;
}

void patience_learn(struct patience *p, const struct patience_bounds *bounds, uint64_t now_ns)
{
	uint64_t most = bounds->most_ns > bounds->least_ns ? bounds->most_ns : bounds->least_ns;

	/* The bounds may have changed since the last call. */
	if (p->ns < bounds->least_ns)
		p->ns = bounds->least_ns;
	if (p->ns > most)
		p->ns = most;
	if (!p->gave_up)
		return;
	p->gave_up = false;
	if ((double)(now_ns - p->idle_since) >= bounds->worth_ns)
		p->ns -= (p->ns - bounds->least_ns) / 8;
	else
		p->ns = 2 * p->ns < most ? 2 * p->ns : most;
}
