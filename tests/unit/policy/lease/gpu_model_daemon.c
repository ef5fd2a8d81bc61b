#include "gpu_model_inside.h"

#include <math.h>
#include <stdio.h>

#define IDLE_MOST_NS (12 * MS) /* longest that a sliced tenant may be held while the GPU is idle */

/* Adds up a tenant's processes as the daemon does (src/daemon/arbitrate/observe.c). */
static void add_process(struct gpu_model *m, struct model_process *p,
			struct arbiter_observation *sum)
{
	struct arbiter_observation seen = {
		.waiting = p->thread == THREAD_HELD || p->thread == THREAD_WAKES,
		.launching = p->thread == THREAD_LAUNCHES,
		.busy = p->busy,
		.inflight_ns = p->inflight_ns,
		.busy_ns = p->busy_shown_ns,
		.launches = p->launches,
		.ramp_ns = p->ramp_ns,
		.behind_ns = p->behind_ns,
		.sync_points = p->sync_points,
		.gap_ns = p->gap_ns,
		.waits = p->load.never_waits ? 0 : p->bursts,
	};

	switch (p->load.lie) {
	case LIE_IDLE:
		seen.busy = seen.launching = false;
		seen.busy_ns = seen.launches = seen.inflight_ns = 0;
		break;
	case LIE_BUSY: seen.busy = true; break;
	case LIE_INFLIGHT: seen.inflight_ns = UINT64_MAX; break;
	case LIE_GARBAGE:
		seen.inflight_ns = random_next(&m->random);
		seen.busy_ns = random_next(&m->random);
		sum->spent = random_next(&m->random);
		seen.sync_points = (uint32_t)random_next(&m->random);
		seen.launches = random_next(&m->random);
		break;
	case LIE_NONE: break;
	}
	p->tenant->has_lied |= p->load.lie != LIE_NONE;
	sum->waiting |= seen.waiting;
	sum->launching |= seen.launching;
	sum->busy |= seen.busy;
	sum->inflight_ns += seen.inflight_ns;
	sum->working += seen.busy || seen.launching;
	sum->busy_ns += seen.busy_ns;
	sum->launches += seen.launches;
	sum->ramp_ns += seen.ramp_ns;
	sum->behind_ns += seen.behind_ns;
	sum->sync_points += seen.sync_points;
	sum->gap_ns += seen.gap_ns;
	sum->waits += seen.waits;
	turns_observe(&p->tenant->turns, &p->tenant->member[p->member],
		      &(struct turns_observation){ .waits = seen.waiting,
						   .works = seen.busy || seen.launching,
						   .idle_ns = p->reported_idle_ns,
						   .inflight_ns = seen.inflight_ns,
						   .launches = seen.launches },
		      m->now);
	/* Of several processes: the one that worked last. */
	if (p->reported_idle_ns < sum->idle_ns)
		sum->idle_ns = p->reported_idle_ns;
}

static void observe_all(struct gpu_model *m)
{
	struct arbiter_observation seen[ARBITER_MAX_TENANTS];

	for (int i = 0; i < m->tenants; i++)
		if (m->tenant[i] && m->tenant[i]->used)
			seen[i] = (struct arbiter_observation){ .stopped = m->tenant[i]->stopped,
								.spent = m->tenant[i]->spent,
								.work_ns = m->tenant[i]->paid_work_ns,
								.has_doorbell = m->config.rings,
								.idle_ns = UINT64_MAX };
	for (int k = 0; k < m->processes; k++)
		if (m->process[k]->used)
			add_process(m, m->process[k], &seen[m->process[k]->tenant->index]);
	for (int i = 0; i < m->tenants; i++)
		if (m->tenant[i] && m->tenant[i]->used)
			arbiter_observe(m->arbiter, i, &seen[i]);
}

static void violation(struct gpu_model *m, const char *what)
{
	if (m->violations++ < 5)
		fprintf(stderr, "violation at %.6f s: %s\n",
			(double)(m->now - BEGIN_NS) / (double)SECOND, what);
}

static bool is_held(const struct gpu_model *m, const struct model_tenant *t)
{
	for (int k = 0; k < m->processes; k++)
		if (m->process[k]->used && m->process[k]->tenant == t &&
		    m->process[k]->thread == THREAD_HELD)
			return true;
	return false;
}

static void check_member(struct gpu_model *m, const struct model_tenant *t, enum lease_state state)
{
	bool goes = state != LEASE_STOP && state != LEASE_CLOSING;

	if (goes && !arbiter_has_lease(m->arbiter, t->index))
		violation(m, "a member goes without its group's lease");
	if (state == LEASE_FREE)
		violation(m, "a member is FREE under leases");
}

/* While tenants are sliced, none is held if the GPU is idle. Not checked for a tenant that reports falsely. */
static void check_slices(struct gpu_model *m)
{
	bool any_held = false, any_works = false;

	for (int k = 0; k < m->processes; k++) {
		const struct model_process *p = m->process[k];

		if (!p->used || p->tenant->stopped)
			continue;
		/* A cap is enforced also while the GPU is idle. */
		any_held |= p->thread == THREAD_HELD && p->tenant->share.limit_pct >= 100;
		any_works |= process_queued(p) || p->thread == THREAD_LAUNCHES ||
			     p->thread == THREAD_WAKES || p->load.lie != LIE_NONE;
	}
	if (!any_held || any_works || !m->idle_since)
		m->idle_since = m->now;
	if (m->now - m->idle_since > IDLE_MOST_NS)
		violation(m, "a tenant is held while the GPU is idle");
}

static bool reports_steps(const struct gpu_model *m, const struct model_tenant *t)
{
	for (int k = 0; k < m->processes; k++) {
		const struct model_process *p = m->process[k];

		if (p->used && p->tenant == t && p->load.reports_sync_points)
			return true;
	}
	return false;
}

static void check_obedience(struct gpu_model *m)
{
	for (int i = 0; i < m->tenants; i++)
		if (m->tenant[i] && m->tenant[i]->used && !m->tenant[i]->has_lied &&
		    arbiter_unauthorized_ns(m->arbiter, i))
			violation(m, "an honest tenant counts as disobedient");
}

static void check(struct gpu_model *m)
{
	int going = 0, closing = 0, starved = 0, draining = 0;
	double window = (double)m->config.arbiter.window_ns;
	double most = (double)m->config.arbiter.cap_slice_most_ns;
	double slice = fmax((double)m->config.arbiter.cap_slice_ns,
			    (double)arbiter_quantum_ns(m->arbiter) / 2);

	if (!m->config.is_native)
		check_obedience(m);
	if (!m->config.is_native && arbiter_mode(m->arbiter) == ARBITER_SLICED)
		check_slices(m);
	else
		m->idle_since = 0;
	if (m->config.is_native || arbiter_mode(m->arbiter) != ARBITER_LEASES) {
		m->lost_since = 0;
		return;
	}
	for (int i = 0; i < m->tenants; i++) {
		const struct model_tenant *t = m->tenant[i];
		struct arbiter_account account;
		double needed;

		if (!t || !t->used)
			continue;
		account = arbiter_account(m->arbiter, i);
		/* A tenant that is alone and reports no steps may have long slices. */
		needed = fmin(t->share.limit_pct / 100 * window,
			      reports_steps(m, t) ? slice : fmax(slice, most));
		/* Any number of members of one group may run. */
		if (t->group) {
			check_member(m, t, account.state);
			going += going == 0 && arbiter_has_lease(m->arbiter, i);
			draining += account.draining;
			continue;
		}
		going += account.state == LEASE_GO || account.state == LEASE_FREE;
		closing += account.state == LEASE_CLOSING;
		draining += account.draining;
		if (account.state == LEASE_GO && arbiter_holder(m->arbiter) != i)
			violation(m, "GO without the lease");
		if (account.state == LEASE_FREE)
			violation(m, "FREE under leases");
		starved += is_held(m, t) && !t->stopped && account.state == LEASE_STOP &&
			   (t->share.limit_pct >= 100 || (double)account.tokens_ns >= needed);
	}
	if (going > 1)
		violation(m, "two tenants in GO");
	/* The next rule is not for the token policy, which gives the token by windows, whatever a cap's account holds. */
	if (m->config.arbiter.policy != ARBITER_POLICY_LEASE)
		return;
	if (!starved || going || closing || draining) {
		m->lost_since = 0;
	} else if (!m->lost_since) {
		m->lost_since = m->steps;
	} else if (m->steps > m->lost_since + 1) {
		violation(m, "a lease was lost");
	}
}

static void write_words(struct gpu_model *m)
{
	for (int i = 0; i < m->tenants; i++) {
		struct model_tenant *t = m->tenant[i];
		enum lease_state word;

		if (!t || !t->used)
			continue;
		word = m->config.is_native ? LEASE_FREE : arbiter_state(m->arbiter, i);
		t->closings += word == LEASE_CLOSING && t->word != LEASE_CLOSING;
		t->leases += word == LEASE_GO && t->word != LEASE_GO;
		t->word = word;
	}
	for (int k = 0; k < m->processes; k++) {
		struct model_process *p = m->process[k];

		if (p->used && p->tenant->word == LEASE_STOP)
			process_end_ramp(m, p);
		if (p->used)
			process_watch_behind(m, p);
		if (p->used && p->thread == THREAD_HELD && !p->tenant->stopped &&
		    process_is_let_through(m, p)) {
			p->thread = THREAD_WAKES;
			p->thread_at = m->now + random_between(&m->random, 20 * US, 80 * US);
		}
	}
}

/* Chooses which process has the turn, as src/daemon/arbitrate/arbitration_turns.c does. Returns when to choose again. */
static uint64_t choose_turn(struct gpu_model *m, struct model_tenant *t)
{
	enum lease_state state = arbiter_state(m->arbiter, t->index);
	bool is_holder = arbiter_holder(m->arbiter) == t->index;
	struct turns_lease lease = { .state = TURNS_OPEN,
				     .number = arbiter_leases(m->arbiter, t->index),
				     .is_again = m->last_holder == t->index,
				     .now_ns = m->now,
				     .quantum_ns = arbiter_quantum_ns(m->arbiter),
				     .handover_ns = (double)arbiter_handover_ns(m->arbiter),
				     .config = &m->config.arbiter };
	uint32_t before = t->turns.turn;
	uint64_t next;

	if (m->config.has_turns && (state == LEASE_STOP || state == LEASE_CLOSING))
		lease.state = TURNS_AWAY;
	else if (m->config.has_turns && state == LEASE_GO && is_holder)
		lease.state = TURNS_HELD;
	next = turns_step(&t->turns, t->member, t->members, &lease);
	t->leases += t->turns.turn != before;
	return next;
}

static uint64_t choose_turns(struct gpu_model *m)
{
	uint64_t next = UINT64_MAX;

	for (int i = 0; i < m->tenants; i++) {
		struct model_tenant *t = m->tenant[i];
		uint64_t own;

		if (!t || !t->used || (t->members < 2 && !t->turns.turn))
			continue;
		own = choose_turn(m, t);
		next = own < next ? own : next;
	}
	if (arbiter_holder(m->arbiter) >= 0)
		m->last_holder = arbiter_holder(m->arbiter);
	return next;
}

void daemon_poll(struct gpu_model *m)
{
	uint64_t next, turns_next;

	observe_all(m);
	next = arbiter_step(m->arbiter, m->now);
	if (next <= m->now)
		violation(m, "asked to be stepped in the past");
	turns_next = choose_turns(m);
	if (turns_next < next)
		next = turns_next > m->now ? turns_next : m->now + m->config.arbiter.poll_drain_ns;
	m->steps++;
	write_words(m);
	check(m);
	m->poll_at = next + random_between(&m->random, 0, m->config.poll_jitter_ns);
	if (m->config.stall_every_ns &&
	    random_next(&m->random) % m->config.stall_every_ns < next - m->now)
		m->poll_at += random_between(&m->random, 0, m->config.stall_ns);
}
