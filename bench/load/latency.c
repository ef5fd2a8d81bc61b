#include "latency.h"

#include <math.h>
#include <stdlib.h>

void latency_add(struct latency *l, uint64_t ns)
{
	if (l->count < LATENCY_MAX)
		l->ns[l->count++] = ns;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

uint64_t latency_percentile(struct latency *l, double pct)
{
	if (l->count == 0)
		return 0;
	qsort(l->ns, l->count, sizeof l->ns[0], compare);
	double rank = ceil(pct / 100 * l->count);
	unsigned i = rank < 1 ? 0 : (unsigned)rank - 1;
	return l->ns[i < l->count ? i : l->count - 1];
}
