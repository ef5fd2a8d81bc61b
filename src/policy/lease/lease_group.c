/*
 * Space groups (space.h): tenants that run at the same time. To the rest of the arbiter, a group is one additional tenant,
 * without processes. This file computes the group's observation from its members', and the members' states from the group's.
 * space.c decides how much each member may begin.
 */
#include "policy/lease/arbiter.h"
#include "policy/lease/arbiter_inside.h"

#include <errno.h>
#include <math.h>

/*
 * Most in-flight work of a member while the group has the GPU alone. DEPTH_NS is large, because lengths are guesses and the GPU
 * must not run dry. PACED_DEPTH_NS, for a paced member, is small, because its work delays the member that the pace protects.
 */
#define DEPTH_NS UINT64_C(20000000)
#define PACED_DEPTH_NS UINT64_C(5000000)
/* least pace of a member without a guarantee, in percent of the GPU */
#define LEAST_PCT 1.0

static int next_member(const struct arbiter *a, int group, int from)
{
	for (int i = from; i < ARBITER_MAX_TENANTS; i++)
		if (a->tenant[i].used && a->tenant[i].part.of == group)
			return i;
	return NONE;
}

#define FOR_EACH_MEMBER(i, a, group) \
	for (int i = next_member(a, group, 0); i != NONE; i = next_member(a, group, i + 1))

static int find_group(const struct arbiter *a, uint32_t group)
{
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++)
		if (a->tenant[i].used && a->tenant[i].part.is_group &&
		    a->tenant[i].part.group == group)
			return i;
	return NONE;
}

void group_count(struct arbiter *a, int group)
{
	struct arbiter_share share = { .limit_pct = 100 };
	bool any = false;

	FOR_EACH_MEMBER(i, a, group) {
		const struct arbiter_share *own = &a->tenant[i].share;

		share.cores_pct += own->cores_pct;
		if (!any || own->priority > share.priority)
			share.priority = own->priority;
		any = true;
	}
	if (share.cores_pct > 100)
		share.cores_pct = 100;
	arbiter_set_share(a, group, share);
}

void group_leave(struct arbiter *a, struct tenant *t)
{
	int group = t->part.of;

	t->part = (struct group_part){ .of = NONE };
	t->demand = t->running = false;
	t->reported_ns = 0;
	t->vtime = a->vclock;
	t->filled_at = a->clock;
	lease_hold(a, t);
	a->member_count--;
	if (next_member(a, group, 0) == NONE)
		arbiter_remove(a, group);
	else
		group_count(a, group);
}

static int make_group(struct arbiter *a, uint32_t group)
{
	int index = arbiter_add(a, a->last_now_ns, (struct arbiter_share){ .limit_pct = 100 });

	if (index >= 0) {
		a->tenant[index].part.group = group;
		a->tenant[index].part.is_group = true;
	}
	return index;
}

static void join(struct arbiter *a, struct tenant *t, uint32_t group, int of)
{
	int index = (int)(t - a->tenant);

	if (a->interrupted == index)
		a->interrupted = NONE;
	if (a->last_holder == index)
		a->last_holder = NONE;
	lease_hold(a, t);
	arbiter_deactivate(a, t);
	t->overrunning = false;
	t->part = (struct group_part){ .group = group, .of = of };
	a->member_count++;
	group_count(a, of);
}

int arbiter_set_space_group(struct arbiter *a, int tenant, uint32_t group, double part_pct)
{
	int of = NONE;

	if (!is_tenant(a, tenant) || a->tenant[tenant].part.is_group ||
	    a->config.policy != ARBITER_POLICY_LEASE)
		return -EINVAL;
	struct tenant *t = &a->tenant[tenant];
	if (t->part.group == group) {
		t->part.member.part = part_pct / 100;
		return 0;
	}
	if (group) {
		of = find_group(a, group);
		if (of == NONE)
			of = make_group(a, group);
		if (of < 0)
			return of;
	}
	if (t->part.of != NONE)
		group_leave(a, t);
	if (group)
		join(a, t, group, of);
	t->part.member.part = part_pct / 100;
	a->shares_changed = true;
	return 0;
}

static void read_demand(struct arbiter *a, struct tenant *t)
{
	const struct arbiter_observation *seen = &t->seen;
	struct group_part *p = &t->part;

	if (!seen->stopped)
		p->stopped_at = a->clock;
	t->running = seen->busy || seen->launching;
	/* A stopped tenant cannot clear its flags, so they are ignored after the longest drain. */
	if (a->clock - p->stopped_at > a->config.drain_max_ns)
		t->running = false;
	t->demand = !t->paused && !seen->stopped && (seen->waiting || seen->busy || seen->launching);
	if (t->demand || t->running || (t->launched && !t->paused && !seen->stopped)) {
		p->last_present_at = a->clock;
		p->is_present = true;
	}
	if (a->clock - p->last_present_at >= a->config.free_after_ns || t->paused ||
	    (seen->stopped && !t->running))
		p->is_present = false;
}

uint64_t group_depth_ns(const struct arbiter *a, const struct tenant *t)
{
	uint64_t work_ns = t->part.member.pace > 0 ? PACED_DEPTH_NS : DEPTH_NS;

	if (a->mode == ARBITER_LEASES)
		work_ns = a->terms.depth_ns;
	return mps_client_reported_work_ns(&t->part.member, work_ns);
}

static bool has_part(const struct tenant *t)
{
	return t->part.member.part > 0 && t->part.member.part < 1;
}

static bool has_worked(const struct tenant *t)
{
	return t->running || t->part.was_running || t->launched || t->reported_ns > 0;
}

/*
 * The charge for busy_ns, the time with work in flight. A member that can use only a part of the SMs pays that part of busy_ns.
 * A member that can use all SMs pays busy_ns if no other member worked. Otherwise it pays its counted work. If the library
 * counted no work, or the member's speed is unknown, it pays an equal part of busy_ns.
 */
static double charge_of(const struct tenant *t, double busy_ns, int working)
{
	const struct mps_client *m = &t->part.member;

	if (has_part(t))
		return busy_ns * m->part;
	if (working < 2)
		return busy_ns;
	return m->is_counted && mps_client_is_known(m) ? m->work_ns : busy_ns / working;
}

/*
 * Charges a member, and passes its observation to mps_client_observe(). `working`: the number of members with work since the
 * last arbiter_step(). `goes`: the group could run. Returns how much of the reported busy time is accepted.
 */
static uint64_t observe_member(struct arbiter *a, struct tenant *t, int working, bool goes,
			       uint64_t dt_ns)
{
	struct group_part *p = &t->part;
	struct mps_client_observation seen = {
		/* under LEASE_FREE the library predicts no lengths, so counts nothing */
		.is_counted = t->state != LEASE_FREE,
		.is_alone = working - has_worked(t) == 0,
		.works = t->running,
		.waits = t->seen.waiting,
		.is_barred = t->paused || t->seen.stopped,
		.reported_work_ns = t->seen.work_ns,
		.untried_ns = t->seen.untried_ns,
		.inflight_ns = t->seen.inflight_ns,
	};

	/* Reported busy time counts only up to the wall time that passed. */
	p->wall_ns += (double)dt_ns;
	double busy_ns = fmin(t->reported_ns, p->wall_ns);
	p->wall_ns -= busy_ns;
	seen.busy_ns = busy_ns;
	seen.wanted_ns = goes && t->seen.waiting && !t->running ? fmax(busy_ns, (double)dt_ns)
								: busy_ns;
	mps_client_observe(&p->member, &seen, a->clock, goes ? dt_ns : 0);
	double charged_ns = charge_of(t, busy_ns, working);
	t->charged_ns += charged_ns;
	t->charged_peak_ns = fmax(t->charged_peak_ns, t->charged_ns);
	if (t->seen.waiting && !permits_launch(t->state))
		t->waited_ns += dt_ns;
	if (p->member.is_held && t->seen.waiting)
		p->held_ns += dt_ns;
	p->was_running = t->running;
	t->reported_ns = 0;
	t->launched = false;
	return (uint64_t)busy_ns;
}

static void observe_group(struct arbiter *a, int group, uint64_t dt_ns)
{
	struct tenant *g = &a->tenant[group];
	bool goes = permits_launch(g->state);
	struct arbiter_observation sum = { .stopped = true,
					   .has_doorbell = true,
					   .idle_ns = UINT64_MAX,
					   .busy_ns = g->seen.busy_ns,
					   .launches = g->seen.launches };
	double inflight_ns = 0, longest_ns = 0;
	int there = 0, working = 0;

	FOR_EACH_MEMBER(i, a, group) {
		struct tenant *t = &a->tenant[i];

		read_demand(a, t);
		sum.launches += t->launched;
		there += t->part.is_present;
		working += has_worked(t);
	}
	FOR_EACH_MEMBER(i, a, group) {
		struct tenant *t = &a->tenant[i];
		double own_ns = (double)min_u64(mps_client_work_ns(&t->part.member,
								   t->seen.inflight_ns),
						a->config.drain_max_ns);

		sum.busy_ns += observe_member(a, t, working, goes, dt_ns);
		sum.has_doorbell = sum.has_doorbell && t->seen.has_doorbell;
		if (!t->part.is_present)
			continue;
		sum.waiting |= t->demand && t->seen.waiting;
		sum.busy |= t->running && !t->seen.launching;
		sum.launching |= t->running && t->seen.launching;
		sum.stopped = sum.stopped && t->seen.stopped;
		sum.idle_ns = min_u64(sum.idle_ns, t->seen.idle_ns);
		/* Members run at once: their work takes as long as the longest, or as all of it on the whole GPU if longer. */
		longest_ns = fmax(longest_ns, own_ns);
		inflight_ns += own_ns * (has_part(t) ? t->part.member.part : 1);
	}
	sum.stopped = sum.stopped && there > 0;
	sum.inflight_ns = (uint64_t)fmax(inflight_ns, longest_ns);
	arbiter_observe(a, group, &sum);
}

void group_observe(struct arbiter *a, uint64_t dt_ns)
{
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++)
		if (a->tenant[i].used && a->tenant[i].part.is_group)
			observe_group(a, i, dt_ns);
}

/*
 * Sets each member's guarantee and least pace, as parts of the whole GPU or, if the group takes turns with other tenants, of
 * the group's guarantee. Present members without a guarantee share equally what the guarantees of all tenants leave, at least
 * LEAST_PCT each.
 */
static void set_parts(struct arbiter *a, int group)
{
	double whole = a->mode == ARBITER_LEASES ? a->tenant[group].share.cores_pct : 0;
	double rest = 100.0 - a->promised_pct;
	int unpromised = 0;

	FOR_EACH_MEMBER(i, a, group)
		unpromised += a->tenant[i].part.is_present && a->tenant[i].share.cores_pct <= 0;
	if (unpromised > 1)
		rest /= unpromised;
	rest = fmax(rest, LEAST_PCT);
	whole = whole > 0 ? whole * order_scale(a) : 100;
	FOR_EACH_MEMBER(i, a, group) {
		struct tenant *t = &a->tenant[i];
		double cores = t->share.cores_pct * order_scale(a);

		t->part.weight = cores > 0 ? cores : rest;
		t->part.member.guarantee = fmin(cores / whole, 1);
		t->part.member.least = fmin(t->part.weight / whole, 1);
		t->part.member.priority = t->share.priority;
	}
}

static void set_state(struct arbiter *a, struct tenant *t, enum lease_state state)
{
	bool went = t->state == LEASE_STOP || t->state == LEASE_CLOSING;
	bool goes = state != LEASE_STOP && state != LEASE_CLOSING;

	if (state == LEASE_CLOSING && t->state == LEASE_STOP)
		return;
	t->leases += goes && went;
	if (went != !goes)
		t->held_at = a->clock;
	t->state = state;
}

/*
 * About a group's members for which part.is_present holds, except one member. any_present: such a member had work or a waiting
 * thread within the last SPACE_AWAY_NS. any_promised: such a member has a guarantee.
 */
struct others {
	bool any_there, any_present, any_promised;
	double limits; /* sum of their caps, as parts of the GPU */
};

static struct others others_of(const struct arbiter *a, int group, int member)
{
	struct others o = { 0 };

	FOR_EACH_MEMBER(i, a, group) {
		const struct tenant *t = &a->tenant[i];

		if (i == member || !t->part.is_present)
			continue;
		o.any_there = true;
		o.any_present |= t->part.member.is_present;
		o.any_promised |= t->share.cores_pct > 0;
		o.limits += t->share.limit_pct / 100;
	}
	return o;
}

/*
 * A member that is alone has GO while its speed is learned, then the group's state. Beside others it has the group's state if
 * the caps leave room for all, or no member has a guarantee. Otherwise its work must be measured: PACED beside members that
 * want to run (any_present), else GO.
 */
static enum lease_state state_of(const struct arbiter *a, int group, int member)
{
	const struct tenant *t = &a->tenant[member];
	enum lease_state state = a->tenant[group].state;
	struct others o = others_of(a, group, member);

	if (t->paused)
		return LEASE_STOP;
	if (!permits_launch(state))
		return state;
	if (!o.any_there)
		return mps_client_learns(&t->part.member) ? LEASE_GO : state;
	if (o.limits + t->share.limit_pct / 100 < 1 + 1e-6 ||
	    (!o.any_promised && t->share.cores_pct <= 0))
		return state;
	return o.any_present ? LEASE_PACED : LEASE_GO;
}

static uint64_t decide_on_members(struct arbiter *a, int group, uint64_t dt_ns)
{
	const struct tenant *g = &a->tenant[group];
	struct mps_client *member[ARBITER_MAX_TENANTS];
	size_t count = 0;
	uint64_t next_ns = UINT64_MAX;

	FOR_EACH_MEMBER(i, a, group)
		member[count++] = &a->tenant[i].part.member;
	set_parts(a, group);
	space_set_paces(member, count, permits_launch(g->state) ? dt_ns : 0);
	FOR_EACH_MEMBER(i, a, group) {
		struct tenant *t = &a->tenant[i];
		struct mps_client *m = &t->part.member;

		set_state(a, t, state_of(a, group, i));
		t->part.granted = t->seen.spent + mps_client_granted_ns(m);
		if (t->state != LEASE_FREE && permits_launch(g->state) && m->is_present)
			next_ns = min_u64(next_ns, m->is_held ? SPACE_HELD_POLL_NS : SPACE_POLL_NS);
	}
	return next_ns;
}

uint64_t group_decide(struct arbiter *a, uint64_t dt_ns, uint64_t next_ns)
{
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++)
		if (a->tenant[i].used && a->tenant[i].part.is_group)
			next_ns = min_u64(next_ns, decide_on_members(a, i, dt_ns));
	return next_ns;
}
