#include <math.h>

#include "policy/lease/arbiter.h"
#include "policy/lease/arbiter_inside.h"

enum lease_state arbiter_state(const struct arbiter *a, int tenant)
{
	return is_tenant(a, tenant) ? a->tenant[tenant].state : LEASE_STOP;
}

/* Processes may report any values, whose sums may not fit 64 bits. */
static uint64_t to_ns(double ns)
{
	return ns >= 0x1p64 ? UINT64_MAX : ns > 0 ? (uint64_t)ns : 0;
}

struct arbiter_account arbiter_account(const struct arbiter *a, int tenant)
{
	if (!is_tenant(a, tenant))
		return (struct arbiter_account){ .state = LEASE_STOP };
	const struct tenant *t = &a->tenant[tenant];
	return (struct arbiter_account){
		.charged_ns = to_ns(t->charged_peak_ns),
		.overrun_ns = to_ns(t->overrun_ns),
		.unauthorized_ns = to_ns(t->unauthorized_ns),
		.waited_ns = t->waited_ns,
		.leases = t->leases,
		.step_turns = t->step_turns,
		.expired = t->expired,
		.tokens_ns = (int64_t)t->tokens_ns,
		.weight = t->part.of == NONE ? order_weight(a, t) : t->part.weight,
		.budget_ns = (int64_t)t->budget_ns,
		.state = t->state,
		.active = t->active || t->part.is_present,
		.draining = arbiter_is_draining(a, tenant),
	};
}

struct arbiter_pace arbiter_pace(const struct arbiter *a, int tenant)
{
	if (!is_tenant(a, tenant) || a->tenant[tenant].part.of == NONE)
		return (struct arbiter_pace){ .speed = 1 };
	const struct group_part *p = &a->tenant[tenant].part;
	return (struct arbiter_pace){
		.is_member = true,
		.is_known = mps_client_is_known(&p->member),
		.is_held = p->member.is_held,
		.speed = mps_client_speed(&p->member),
		.share = mps_client_share(&p->member),
		.pace = p->member.is_held ? p->member.pace : 0,
		.reported_work_ns = p->member.reported_work_ns,
		.held_ns = p->held_ns,
	};
}

enum arbiter_mode arbiter_mode(const struct arbiter *a)
{
	return a->mode;
}

uint64_t arbiter_granted(const struct arbiter *a, int tenant)
{
	if (!is_tenant(a, tenant))
		return 0;
	const struct tenant *t = &a->tenant[tenant];
	return t->part.of != NONE ? t->part.granted : t->paced.granted;
}

uint64_t arbiter_quantum_ns(const struct arbiter *a)
{
	return a->quantum_ns;
}

uint64_t arbiter_handover_ns(const struct arbiter *a)
{
	return (uint64_t)a->handover_ns;
}

int arbiter_holder(const struct arbiter *a)
{
	return a->holder;
}

struct arbiter_lease_end arbiter_last_end(const struct arbiter *a)
{
	return a->last_end;
}

bool arbiter_has_lease(const struct arbiter *a, int tenant)
{
	return is_tenant(a, tenant) && a->holder == group_of(a, tenant);
}

static const struct tenant *tenant_or_empty(const struct arbiter *a, int tenant)
{
	static const struct tenant nobody;

	return tenant < 0 || tenant >= ARBITER_MAX_TENANTS ? &nobody : &a->tenant[tenant];
}

uint64_t arbiter_leases(const struct arbiter *a, int tenant)
{
	return tenant_or_empty(a, tenant)->leases;
}

uint64_t arbiter_charged_ns(const struct arbiter *a, int tenant)
{
	return to_ns(tenant_or_empty(a, tenant)->charged_peak_ns);
}

uint64_t arbiter_unauthorized_ns(const struct arbiter *a, int tenant)
{
	return to_ns(tenant_or_empty(a, tenant)->unauthorized_ns);
}

uint64_t arbiter_depth_ns(const struct arbiter *a, int tenant, uint64_t free_depth_ns)
{
	const struct tenant *t = tenant_or_empty(a, tenant);
	double most_ns = (double)a->config.step_most_ns;

	if (t->part.of != NONE)
		return group_depth_ns(a, t);
	uint64_t step_ns = (uint64_t)steps_length_ns(&t->steps, most_ns);

	/* A tenant that outranks this one may return at any moment. It should wait for depth_ns of work at most. */
	if (priority_is_outranked(a, t))
		return a->config.depth_ns;
	/*
	 * Beside a gang no tenant gets a greater depth, because the gang's other devices would wait for that work. It would
	 * also spoil the trial by which steps.h finds out whether a greater depth shortens steps.
	 */
	if (a->gang_count)
		return a->terms.depth_ns;
	/* While no other tenant is active, as much work may be in flight as without a cap: the program keeps its lead. */
	if (is_capped(t) && a->active_count == 1 && (turn_step_ns(a, t) > 0 || t->has_long_slices))
		return max_u64(free_depth_ns, a->terms.depth_ns);
	if (!steps_may_be_ahead(&t->steps, most_ns))
		return a->terms.depth_ns;
	/* Lengths of short kernels are overestimated, so allow twice a step's length: the step's end is then the limit. */
	return 2 * step_ns > a->terms.depth_ns ? 2 * step_ns : a->terms.depth_ns;
}

uint64_t arbiter_step_ns(const struct arbiter *a, int tenant)
{
	return (uint64_t)steps_length_ns(&tenant_or_empty(a, tenant)->steps, INFINITY);
}

enum region_sync_point arbiter_wants_sync_point(const struct arbiter *a, int tenant)
{
	if (sliced_wants_sync_point(a, tenant_or_empty(a, tenant)))
		return SYNC_POINT_ENDS_USE;
	return a->wants_sync_point && a->holder == tenant ? SYNC_POINT_RUNG : SYNC_POINT_UNTOLD;
}

uint64_t arbiter_patience_ns(const struct arbiter *a, int tenant)
{
	const struct tenant *t = tenant_or_empty(a, tenant);

	return t->used ? a->tenant[group_of(a, tenant)].patience.ns : 0;
}

bool arbiter_is_active(const struct arbiter *a, int tenant)
{
	const struct tenant *t = tenant_or_empty(a, tenant);

	return t->active || t->part.is_present;
}

bool arbiter_is_draining(const struct arbiter *a, int tenant)
{
	const struct tenant *t = tenant_or_empty(a, tenant);

	if (t->used)
		t = &a->tenant[group_of(a, tenant)];
	return t->draining || t->overrunning;
}
