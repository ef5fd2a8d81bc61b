#include "arbiter/tenant.h"

/*
 * How long a holder may rest before others get the lease: a prediction of what its pauses are like.
 * Waiting costs the pause, giving way a hand-over and another one back. So it begins with little patience;
 * each time that the tenant came back sooner than that is worth, it gets twice as much, up to idle_ns; each
 * time that it stayed away, less.
 */

void patience_begin(const struct arbiter *a, struct tenant *t)
{
	t->patience_ns = a->config.idle_min_ns;
	t->gave_up = false;
}

void patience_lost(struct tenant *t)
{
	t->gave_up = true;
	t->rests_since = t->worked_at;
}

void patience_learn(const struct arbiter *a, struct tenant *t)
{
	uint64_t least = a->config.idle_min_ns, most = a->config.idle_ns;
	double worth_ns = 2 * a->handover_ns;

	if (!t->gave_up || !t->demand)
		return;
	t->gave_up = false;
	if ((double)(a->clock - t->rests_since) < worth_ns)
		t->patience_ns = min_u64(2 * t->patience_ns, most > least ? most : least);
	else
		t->patience_ns -= (t->patience_ns - least) / 8;
}
