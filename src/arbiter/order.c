#include "arbiter/tenant.h"

double order_weight(const struct arbiter *a, const struct tenant *t)
{
	double left;
	int sharers;

	if (t->share.cores_pct > 0)
		return t->share.cores_pct;
	left = 100.0 - a->promised_pct;
	sharers = a->active_unpromised + !t->active;
	if (sharers > 0)
		left /= sharers;
	return left > 1.0 ? left : 1.0;
}

void order_read_demand(struct arbiter *a)
{
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];
		const struct arbiter_observation *seen = &t->seen;

		t->running = seen->busy || seen->launching;
		/* A stopped tenant can't lower its flags: past the deadline they say nothing. */
		if (seen->stopped && t->overrunning)
			t->running = false;
		t->demand = !t->paused && !seen->stopped &&
			    (seen->waiting || seen->busy || seen->launching);
		if (t->demand || t->running || (t->launched && !t->paused))
			t->present_at = a->clock;
		if (t->running || t->launched)
			t->worked_at = a->clock;
	}
}

bool order_in_need(const struct arbiter *a, const struct tenant *t)
{
	return t->overrunning && t->seen.waiting && t->demand && t->state == LEASE_STOP &&
	       a->clock - t->held_at >= a->config.need_ns;
}

static bool may_compete(struct arbiter *a, struct tenant *t)
{
	if (!t->demand)
		return false;
	return !is_capped(t) || t->tokens_ns >= charge_tokens_needed(a, t) || order_in_need(a, t);
}

void order_mark_candidates(struct arbiter *a)
{
	double least = 0;
	bool any = false;

	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];
		bool holds = a->active[i] == a->holder;
		bool competes = holds || (may_compete(a, t) && !t->draining);

		if (competes && !t->candidate) {
			double back = a->vclock - (double)a->config.quantum_ns / order_weight(a, t);

			if (t->vtime < back)
				t->vtime = back;
		}
		t->candidate = competes;
		if (competes && (!any || t->vtime < least)) {
			least = t->vtime;
			any = true;
		}
	}
	if (any && least > a->vclock)
		a->vclock = least;
}

/* Before the others come those in need, the one held longest first. */
static int find_in_need(const struct arbiter *a, int except)
{
	int best = NONE;

	for (int i = 0; i < a->active_count; i++) {
		int index = a->active[i];
		const struct tenant *t = &a->tenant[index];

		if (index != except && t->candidate && order_in_need(a, t) &&
		    (best == NONE || t->held_at < a->tenant[best].held_at))
			best = index;
	}
	return best;
}

int order_best(const struct arbiter *a, int except)
{
	int best = find_in_need(a, except);

	if (best != NONE)
		return best;

	for (int i = 0; i < a->active_count; i++) {
		int index = a->active[i];

		if (index == except || !a->tenant[index].candidate)
			continue;
		/* Ties go to the one that has waited longest since it was held. */
		if (best == NONE || a->tenant[index].vtime < a->tenant[best].vtime ||
		    (a->tenant[index].vtime == a->tenant[best].vtime &&
		     a->tenant[index].held_at < a->tenant[best].held_at))
			best = index;
	}
	return best;
}
