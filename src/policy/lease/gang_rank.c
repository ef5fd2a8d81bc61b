/*
 * One device's part in gangs (policy/gang/device_gang.h). Makes the device's reports on tenants, and applies a gang's orders to
 * the device's lease.
 */
#include "policy/lease/arbiter.h"
#include "policy/lease/arbiter_inside.h"

/* While a gang gathers its devices, another tenant gets a lease only if the gang needs this device at least this much later. */
#define SHORT_LEASE_NS UINT64_C(2000000)
/* The most quanta by which a gang's virtual time may fall behind on one device while the gang waits for another device. */
#define LAG_QUANTA 4.0

bool gang_rank_is_held(const struct arbiter *a, const struct tenant *t)
{
	return t->gang.order != GANG_NONE && t->gang.order != GANG_GO && !order_in_need(a, t);
}

/* Returns a gang for which the device is kept free, or whose turn is ending on all its devices; or NONE. */
static int find_reserving(const struct arbiter *a)
{
	for (int i = 0; i < a->active_count; i++) {
		enum gang_order order = a->tenant[a->active[i]].gang.order;

		if (order == GANG_GATHER || order == GANG_CLOSE)
			return a->active[i];
	}
	return NONE;
}

/* Returns the gang that should have the lease and does not have it, or NONE. */
static int find_entitled(const struct arbiter *a)
{
	for (int i = 0; i < a->active_count; i++) {
		int index = a->active[i];
		const struct tenant *t = &a->tenant[index];

		if (t->gang.order != GANG_GO || index == a->holder || t->draining)
			continue;
		/* A slip (device_gang.h), a short GO that lets the turn end on another device, must not wait for tokens. */
		if (t->candidate || (t->gang.is_slip && t->demand))
			return index;
	}
	return NONE;
}

static bool is_time_to_close(const struct arbiter *a, const struct tenant *holder, uint64_t at_ns)
{
	uint64_t ahead_ns = min_u64(holder->seen.inflight_ns, GANG_GATHER_MAX_NS);

	return a->last_now_ns + ahead_ns >= at_ns;
}

static void close_holder(struct arbiter *a, struct tenant *t)
{
	a->close_reason = CLOSE_FOR_GANG;
	lease_close_for(a, t, ARBITER_END_GANG);
}

bool gang_rank_is_awaited(const struct arbiter *a)
{
	return a->gang_count && (find_reserving(a) != NONE || find_entitled(a) != NONE);
}

bool gang_rank_decide_on_holder(struct arbiter *a, struct tenant *holder)
{
	int reserving = find_reserving(a), entitled = find_entitled(a);

	if (a->out_of_turn && a->clock - a->granted_at < a->config.min_lease_ns)
		return false;
	if (reserving != NONE) {
		if (is_time_to_close(a, holder, a->tenant[reserving].gang.at_ns))
			close_holder(a, holder);
		return holder->state == LEASE_CLOSING;
	}
	if (entitled == NONE || a->urgent_lease || a->ran_ns < a->config.min_lease_ns)
		return false;
	close_holder(a, holder);
	return true;
}

/* There is time for another tenant's lease before the gang's other devices are free. */
static bool has_time_for_others(const struct arbiter *a, const struct gang_command *command)
{
	return command->order == GANG_GATHER && command->at_ns > a->last_now_ns + SHORT_LEASE_NS;
}

int gang_rank_choose(const struct arbiter *a, int next)
{
	int entitled = find_entitled(a), reserving = find_reserving(a);

	if (next != NONE && order_in_need(a, &a->tenant[next]))
		return next;
	if (reserving != NONE)
		return has_time_for_others(a, &a->tenant[reserving].gang) ? next : NONE;
	if (entitled == NONE)
		return next;
	if (next != NONE && a->tenant[next].urgent &&
	    a->tenant[next].share.priority > a->tenant[entitled].share.priority)
		return next;
	return entitled;
}

static bool all_idle(const struct tenant *t)
{
	return t->gang.idle_elsewhere_ns >= t->patience.ns;
}

/*
 * Another tenant would keep the device for the shortest lease and its drain. So an idle rank keeps its lease for that long in
 * two cases: the gang's other ranks work, or have only just become idle, as at a step's end; or the rank slips.
 */
uint64_t gang_rank_idle_limit_ns(const struct arbiter *a, const struct tenant *t)
{
	if (t->gang.order == GANG_NONE || (!t->gang.is_slip && all_idle(t)))
		return 0;
	return a->config.min_lease_ns + a->terms.depth_ns;
}

/* A gang's pause deserves more patience: giving up its turn costs a change of tenants on all its devices, twice. */
void gang_rank_widen_patience(const struct arbiter *a, const struct tenant *t,
			      struct patience_bounds *bounds)
{
	if (t->gang.order == GANG_NONE)
		return;
	bounds->least_ns = a->config.idle_ns;
	bounds->most_ns = GANG_COME_NS;
	bounds->worth_ns += (double)a->config.min_lease_ns;
}

bool gang_rank_end_turn(struct tenant *t)
{
	if (t->gang.order == GANG_NONE)
		return false;
	t->gang_over = true;
	return true;
}

bool gang_rank_idle(const struct arbiter *a, struct tenant *t)
{
	if (!a->worked || t->gang.order == GANG_NONE || t->gang.idle_elsewhere_ns == UINT64_MAX ||
	    !all_idle(t))
		return false;
	t->gang_idle = true;
	return true;
}

void gang_rank_bound_lag(struct arbiter *a)
{
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];
		double least = 0;
		bool any = false;

		if (t->gang.order != GANG_WAIT || !t->candidate)
			continue;
		for (int k = 0; k < a->active_count; k++) {
			const struct tenant *other = &a->tenant[a->active[k]];

			if (other != t && other->candidate && (!any || other->vtime < least)) {
				least = other->vtime;
				any = true;
			}
		}
		least -= LAG_QUANTA * (double)a->quantum_ns / order_weight(a, t);
		if (any && t->vtime < least)
			t->vtime = least;
	}
}

uint64_t gang_rank_next_poll_ns(const struct arbiter *a, uint64_t next_ns)
{
	int reserving = find_reserving(a);

	if (a->holder != NONE && a->tenant[a->holder].gang.is_slip)
		return a->config.poll_drain_ns;
	if (reserving == NONE)
		return next_ns;
	next_ns = min_u64(next_ns, a->config.poll_lease_ns);
	if (a->holder == NONE || a->tenant[a->holder].state != LEASE_GO)
		return a->config.poll_drain_ns;
	uint64_t due_at = a->tenant[reserving].gang.at_ns -
			  min_u64(a->tenant[a->holder].seen.inflight_ns, GANG_GATHER_MAX_NS);
	uint64_t left = due_at > a->last_now_ns ? due_at - a->last_now_ns : 0;
	return min_u64(next_ns, max_u64(left, a->config.poll_drain_ns));
}

/* The holder does not count, nor do ranks that wait for their gang's turn (gang_rank_is_held()). */
static bool comes_later(const struct arbiter *a, int index)
{
	const struct tenant *t = &a->tenant[index];

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *other = &a->tenant[a->active[i]];

		if (a->active[i] == index || a->active[i] == a->holder || !other->candidate ||
		    gang_rank_is_held(a, other))
			continue;
		if (order_in_need(a, other) || order_comes_before(a, other, t))
			return true;
	}
	return false;
}

/* True if the tenant would take the lease from the holder (lease.c). Ignores min_lease_ns, which free_in_ns() adds. */
static bool takes_from(const struct arbiter *a, const struct tenant *holder, const struct tenant *t)
{
	double end = order_turn_end(a, t, t->vtime);
	double ahead_ns = (double)min_u64(holder->seen.inflight_ns, a->terms.depth_ns);

	if (holder->state == LEASE_CLOSING || lease_is_idle(a, holder))
		return true;
	if (a->urgent_lease && holder->share.priority > t->share.priority)
		return false;
	if (end < order_turn_end(a, holder, a->vtime_at_start))
		return true;
	return (double)a->ran_ns + ahead_ns >= (double)a->quantum_ns &&
	       order_turn_end(a, holder, holder->vtime + ahead_ns / order_weight(a, holder)) >= end;
}

static bool is_due(const struct arbiter *a, int index)
{
	const struct tenant *t = &a->tenant[index];
	int64_t above = (int64_t)t->share.priority + 1;

	if (index == a->holder)
		return true;
	if (!t->candidate || priority_best(a, index, above) != NONE)
		return false;
	if (t->urgent && a->holder != NONE && a->tenant[a->holder].share.priority < t->share.priority)
		return true;
	if (a->interrupted != NONE && a->interrupted != index && a->tenant[a->interrupted].candidate)
		return false;
	if (comes_later(a, index))
		return false;
	return a->holder == NONE || takes_from(a, &a->tenant[a->holder], t);
}

static double mean_vtime(const struct arbiter *a)
{
	double sum = 0, weights = 0;

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];
		double weight = order_weight(a, t);

		if (!t->candidate)
			continue;
		sum += weight * (t->vtime - a->vclock);
		weights += weight;
	}
	return weights > 0 ? a->vclock + sum / weights : a->vclock;
}

static uint64_t free_in_ns(const struct arbiter *a)
{
	if (a->holder == NONE)
		return 0;
	uint64_t inflight_ns = a->tenant[a->holder].seen.inflight_ns;
	uint64_t left_ns = a->config.min_lease_ns - min_u64(a->ran_ns, a->config.min_lease_ns);
	if (a->tenant[a->holder].state != LEASE_GO || lease_is_idle(a, &a->tenant[a->holder]))
		return inflight_ns;
	return max_u64(inflight_ns, left_ns);
}

struct gang_report arbiter_gang_report(const struct arbiter *a, int tenant)
{
	if (!is_tenant(a, tenant))
		return (struct gang_report){ .order = GANG_NONE };
	const struct tenant *t = &a->tenant[tenant];
	if (a->config.policy != ARBITER_POLICY_LEASE || a->mode != ARBITER_LEASES || !t->active)
		return (struct gang_report){ .order = t->gang.order };
	return (struct gang_report){
		.is_present = true,
		.wants = t->demand,
		.idle_ns = a->clock - t->present_at,
		.waits = t->seen.waiting && t->demand,
		.is_due = is_due(a, tenant),
		.holds = a->holder == tenant && t->state == LEASE_GO,
		.drains = t->draining,
		.is_late = t->draining && a->clock - t->held_at > t->closing_ns + GANG_SLIP_NS,
		.is_stuck = t->overrunning,
		.may_yield = a->holder == tenant && a->clock - a->granted_at >= a->quantum_ns,
		.is_over = t->gang_over,
		.is_idle = t->gang_idle,
		.is_vacant = a->holder == NONE && !lease_any_drain(a),
		.behind = mean_vtime(a) - order_turn_end(a, t, t->vtime),
		.free_in_ns = free_in_ns(a),
		.drain_ns = t->seen.inflight_ns,
		.order = t->gang.order,
	};
}

bool arbiter_set_gang(struct arbiter *a, int tenant, struct gang_command command)
{
	if (!is_tenant(a, tenant))
		return false;
	struct tenant *t = &a->tenant[tenant];
	bool changes = t->gang.order != command.order || t->gang.at_ns != command.at_ns;
	a->gang_count += (command.order != GANG_NONE) - (t->gang.order != GANG_NONE);
	t->gang = command;
	return changes;
}
