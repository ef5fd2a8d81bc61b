#include "policy/lease/arbiter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "policy/lease/arbiter_inside.h"

#define US 1000ULL
#define MS 1000000ULL
#define LIMIT_STEP_PCT 0.001 /* a smaller change of a cap is ignored */
/*
 * A library that finds no heartbeat for 250 ms takes the daemon for lost, and lets work pass. The last heartbeat is up to 90 ms
 * older than the last step.
 */
#define LATE_STEP_NS (100 * MS)
/* After a late step, work without a lease is no fault for this long: libraries may need REJOIN_ANSWER_NS (0.5 s) to rejoin. */
#define MISTRUST_NS (1000 * MS)

struct arbiter_config arbiter_default_config(void)
{
	return (struct arbiter_config){
		.quantum_ns = 50 * MS,
		.quantum_min_ns = 5 * MS,
		.gang_turn = { .quantum_ns = 100 * MS,
			       .quantum_min_ns = 40 * MS,
			       .depth_ns = 10 * MS },
		.switch_loss = 0.012,
		.min_lease_ns = 5 * MS,
		.step_most_ns = 40 * MS,
		.slice_step_ns = 15 * MS,
		.depth_ns = 2 * MS,
		.cap_slice_ns = 4 * MS,
		.cap_slice_most_ns = 100 * MS,
		.long_work_ns = 20 * MS,
		.window_ns = 500 * MS,
		.idle_window_ns = 100 * MS,
		.idle_min_ns = 200 * US,
		.idle_ns = 1 * MS,
		.free_after_ns = 100 * MS,
		.start_grace_ns = 300 * US,
		.start_limit_ns = 5 * MS,
		.drain_min_ns = 10 * MS,
		.drain_max_ns = 100 * MS,
		.switch_ns = 150 * US,
		.report_lag_ns = 100 * US,
		.need_ns = 100 * MS,
		.urgent_window_ns = 200 * MS,
		.urgent_slice_ns = 5 * MS,
		.urgent_margin = 1.25,
		.urgent_default_pct = 20,
		.debt_max_ns = 10000 * MS,
		.max_step_ns = 200 * MS,
		.poll_drain_ns = 50 * US,
		.poll_lease_ns = 200 * US,
		.poll_free_ns = 1 * MS,
		.poll_idle_ns = 5 * MS,
		.poll_rung_ns = 10 * MS,
		.token_quota_ns = 300 * MS,
		.token_window_ns = 10000 * MS,
		.feedback = feedback_default_config(),
	};
}

struct arbiter *arbiter_new(const struct arbiter_config *config)
{
	struct arbiter *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->config = *config;
	a->mode = ARBITER_IDLE;
	a->holder = a->last_holder = a->interrupted = NONE;
	quantum_init(a);
	return a;
}

struct arbiter *arbiter_free(struct arbiter *a)
{
	free(a);
	return NULL;
}

static struct tenant *find(struct arbiter *a, int tenant)
{
	return is_tenant(a, tenant) ? &a->tenant[tenant] : NULL;
}

static bool share_is_valid(struct arbiter_share share)
{
	/* NaN fails these comparisons. */
	return share.cores_pct >= 0 && share.limit_pct > 0 && share.limit_pct <= 100.0 &&
	       share.cores_pct <= share.limit_pct;
}

/* The weights of guarantees were multiplied by `factor`. Corrects virtual times so that no tenant gains or loses GPU time. */
static void rescale(struct arbiter *a, double factor)
{
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++) {
		struct tenant *t = &a->tenant[i];

		if (t->used && t->share.cores_pct > 0)
			t->vtime = a->vclock + (t->vtime - a->vclock) / factor;
	}
}

/* Call when a tenant was added or removed, or changed its share. */
static void count_shares(struct arbiter *a)
{
	double scale = order_scale(a);

	a->promised_pct = 0;
	a->active_unpromised = 0;
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++) {
		const struct tenant *t = &a->tenant[i];

		if (!is_lessee(t))
			continue;
		a->promised_pct += t->share.cores_pct;
		a->active_unpromised += t->active && t->share.cores_pct <= 0;
	}
	if (order_scale(a) < scale || order_scale(a) > scale)
		rescale(a, order_scale(a) / scale);
	priority_count(a);
	a->shares_changed = true;
}

static void activate(struct arbiter *a, struct tenant *t)
{
	/* Fill the tokens before `active` is set, by the rule for absent tenants: the tenant was absent until now. */
	charge_fill_tokens(a, t);
	priority_fill(a, t);
	t->active = true;
	/* A tenant in STOP must get its state for free run again: shares_changed makes set_mode() do this. */
	a->shares_changed |= t->state == LEASE_STOP;
	t->active_index = a->active_count;
	t->present_at = t->active_since = a->clock;
	a->active[a->active_count++] = (int)(t - a->tenant);
	a->active_unpromised += t->share.cores_pct <= 0;
	t->candidate = false;
	t->credit_ns = 0;
	t->is_ahead = false;
	t->has_long_slices = false;
	charge_begin(t);
}

void arbiter_deactivate(struct arbiter *a, struct tenant *t)
{
	if (!t->active)
		return;
	int last = a->active[--a->active_count];
	a->active[t->active_index] = last;
	a->tenant[last].active_index = t->active_index;
	a->active_unpromised -= t->share.cores_pct <= 0;
	t->active = t->candidate = t->demand = t->running = t->urgent = false;
	t->reported_ns = 0;
}

/* A tenant that is new, or was not capped before, must not begin with more tokens than for one lease. */
static void limit_tokens(struct arbiter *a, struct tenant *t)
{
	double most = charge_tokens_kept(a, t);

	if (t->tokens_ns > most)
		t->tokens_ns = most;
}

static bool is_any_used(const struct arbiter *a)
{
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++)
		if (a->tenant[i].used)
			return true;
	return false;
}

int arbiter_add(struct arbiter *a, uint64_t now_ns, struct arbiter_share share)
{
	int index = 0;

	if (!share_is_valid(share))
		return -EINVAL;
	while (index < ARBITER_MAX_TENANTS && a->tenant[index].used)
		index++;
	if (index == ARBITER_MAX_TENANTS)
		return -ENOSPC;
	if (!a->stepped) {
		a->stepped = true;
		a->last_now_ns = now_ns;
	}
	/* Without tenants nobody calls arbiter_step(), but debts are paid and forgotten all the same. */
	if (!is_any_used(a) && now_ns > a->last_now_ns) {
		a->clock += now_ns - a->last_now_ns;
		a->last_now_ns = now_ns;
	}
	struct tenant *t = &a->tenant[index];
	*t = (struct tenant){
		.used = true,
		.share = share,
		.state = LEASE_STOP,
		.part = { .of = NONE },
		.vtime = a->vclock,
		.tokens_ns = (double)a->config.quantum_ns,
		.filled_at = a->clock,
		.held_at = a->clock,
	};
	a->polled_count++;
	limit_tokens(a, t);
	paced_add(a, t);
	token_add(a, t);
	count_shares(a);
	priority_begin(a, t);
	patience_begin(&t->patience, a->config.idle_min_ns);
	return index;
}

void arbiter_set_owner(struct arbiter *a, int tenant, uint64_t owner)
{
	struct tenant *t = find(a, tenant);

	if (!t)
		return;
	t->owner = owner;
	debts_take_over(a, t);
}

void arbiter_remove(struct arbiter *a, int tenant)
{
	struct tenant *t = find(a, tenant);

	if (!t)
		return;
	debts_note(a, t);
	if (t->part.of != NONE)
		group_leave(a, t);
	if (a->holder == tenant)
		a->holder = NONE;
	if (a->last_holder == tenant)
		a->last_holder = NONE;
	if (a->interrupted == tenant)
		a->interrupted = NONE;
	arbiter_deactivate(a, t);
	a->polled_count -= !t->seen.has_doorbell;
	arbiter_set_gang(a, tenant, (struct gang_command){ .order = GANG_NONE });
	*t = (struct tenant){ .used = false };
	count_shares(a);
}

int arbiter_set_share(struct arbiter *a, int tenant, struct arbiter_share share)
{
	struct tenant *t = find(a, tenant);

	if (!t || !share_is_valid(share))
		return -EINVAL;
	charge_fill_tokens(a, t);
	priority_fill(a, t);
	double ahead_ns = (t->vtime - a->vclock) * order_weight(a, t);
	bool was_capped = is_capped(t);
	t->share = share;
	count_shares(a);
	t->vtime = a->vclock + ahead_ns / order_weight(a, t);
	if (!was_capped)
		limit_tokens(a, t);
	charge_fill_tokens(a, t);
	priority_fill(a, t);
	if (t->part.of != NONE)
		group_count(a, t->part.of);
	return 0;
}

int arbiter_set_limit(struct arbiter *a, int tenant, double limit_pct)
{
	struct tenant *t = find(a, tenant);
	struct arbiter_share share;

	if (!t)
		return -EINVAL;
	share = t->share;
	share.limit_pct = limit_pct;
	if (!share_is_valid(share))
		return -EINVAL;
	/* The caller sets the limit in each period of rules/lend.h, so an unchanged limit must cost nothing. */
	if (fabs(limit_pct - t->share.limit_pct) < LIMIT_STEP_PCT)
		return 0;
	charge_fill_tokens(a, t);
	bool was_capped = is_capped(t);
	t->share = share;
	if (!was_capped)
		limit_tokens(a, t);
	charge_fill_tokens(a, t);
	a->shares_changed = true;
	return 0;
}

void arbiter_set_paused(struct arbiter *a, int tenant, bool paused)
{
	struct tenant *t = find(a, tenant);

	if (!t || t->paused == paused)
		return;
	t->paused = paused;
	a->shares_changed = true;
}

static bool shows_activity(const struct tenant *t)
{
	if (t->seen.stopped)
		return (t->seen.busy || t->seen.launching) && !t->overrunning;
	return t->seen.busy || t->seen.launching || t->launched || (t->seen.waiting && !t->paused);
}

void arbiter_observe(struct arbiter *a, int tenant, const struct arbiter_observation *seen)
{
	struct tenant *t = find(a, tenant);

	if (!t)
		return;
	if (t->counters_known) {
		if (seen->busy_ns > t->seen.busy_ns)
			t->reported_ns += (double)(seen->busy_ns - t->seen.busy_ns);
		if (seen->launches > t->seen.launches)
			t->launched = true;
	}
	t->counters_known = true;
	a->polled_count += t->seen.has_doorbell - seen->has_doorbell;
	t->seen = *seen;
	t->seen_since_close = true;
	if (!t->active && t->part.of == NONE && shows_activity(t))
		activate(a, t);
}

bool arbiter_add_reading(struct arbiter *a, int tenant, const struct time_reading *reading,
			 struct time_account *ret)
{
	struct tenant *t = find(a, tenant);
	bool is_over = t && time_is_over(&t->unpaid, reading);

	if (is_over)
		debts_refuse(a, t);
	*ret = t ? t->unpaid : (struct time_account){ 0 };
	return is_over;
}

static bool is_absent(const struct arbiter *a, const struct tenant *t)
{
	if (t->demand || t->running || t->draining)
		return false;
	return t->paused || t->seen.stopped || a->clock - t->present_at >= a->config.free_after_ns;
}

static void drop_absent(struct arbiter *a)
{
	for (int i = a->active_count - 1; i >= 0; i--) {
		struct tenant *t = &a->tenant[a->active[i]];

		if (!is_absent(a, t))
			continue;
		if (a->mode == ARBITER_LEASES) {
			if (a->holder == a->active[i])
				a->last_end = (struct arbiter_lease_end){ .why = ARBITER_END_IDLE };
			lease_hold(a, t);
		}
		arbiter_deactivate(a, t);
	}
}

static enum arbiter_mode choose_mode(const struct arbiter *a)
{
	if (a->active_count == 0)
		return ARBITER_IDLE;
	if (sliced_is_due(a))
		return ARBITER_SLICED;
	const struct tenant *only = &a->tenant[a->active[0]];
	if (a->active_count > 1 || (is_capped(only) && !only->paused))
		return ARBITER_LEASES;
	/* In free run, more work would be in flight than a tenant of higher priority should wait for. */
	return priority_is_outranked(a, only) && !only->paused ? ARBITER_LEASES : ARBITER_FREE;
}

/* Sets the tenant's state in free run and in slices (ARBITER_SLICED). */
static void set_free_state(struct arbiter *a, struct tenant *t)
{
	/* A tenant of higher priority may begin at any time. So this one gets GO: less in-flight work than under FREE. */
	bool is_bounded = a->mode == ARBITER_SLICED && sliced_is_bounded(a, t);
	enum lease_state state = is_bounded ? LEASE_GO : LEASE_FREE;

	if (t->paused) {
		if (t->active && t->running && permits_launch(t->state))
			lease_close(a, t);
		else if (!t->draining)
			lease_hold(a, t);
		return;
	}
	if (is_capped(t) && a->mode != ARBITER_SLICED) {
		charge_fill_tokens(a, t);
		state = t->tokens_ns >= charge_tokens_needed(a, t) ? LEASE_GO : LEASE_STOP;
	}
	if (!t->active && debts_must_wait(a, t))
		state = LEASE_STOP;
	if (state == LEASE_STOP) {
		lease_hold(a, t);
	} else {
		t->state = state;
		t->draining = false;
		/* A stopped process cannot clear its busy flag; `overrunning` keeps the flag from counting as work. */
		t->overrunning = t->overrunning && t->seen.stopped;
	}
}

static void enter_free_run(struct arbiter *a)
{
	if (a->holder != NONE)
		a->last_end = (struct arbiter_lease_end){ .why = ARBITER_END_ALONE };
	a->holder = a->interrupted = NONE;
	a->shares_changed = false;
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++) {
		if (is_lessee(&a->tenant[i]))
			set_free_state(a, &a->tenant[i]);
	}
}

static void enter_slices(struct arbiter *a)
{
	if (a->holder != NONE)
		a->last_end = (struct arbiter_lease_end){ .why = ARBITER_END_SLICED };
	a->holder = a->interrupted = NONE;
	sliced_begin(a);
}

static void decide_slices(struct arbiter *a)
{
	sliced_mark(a);
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++) {
		struct tenant *t = &a->tenant[i];

		if (!is_lessee(t))
			continue;
		if (!t->active || !sliced_is_held(a, t))
			set_free_state(a, t);
		else if (permits_launch(t->state) && t->running)
			lease_close(a, t);
		else if (permits_launch(t->state))
			lease_hold(a, t);
	}
}

/* NONE if there is none, or several. If it has demand and tokens, enter_leases() makes it the holder without a drain. */
static int find_only_present(const struct arbiter *a)
{
	int only = NONE;

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];

		if (!t->demand && !t->running)
			continue;
		if (only != NONE)
			return NONE;
		only = a->active[i];
	}
	return only;
}

static void enter_leases(struct arbiter *a)
{
	int only = find_only_present(a);

	for (int i = 0; i < ARBITER_MAX_TENANTS; i++) {
		struct tenant *t = &a->tenant[i];

		if (!is_lessee(t) || !permits_launch(t->state))
			continue;
		if (i == only && t->demand && (!is_capped(t) || t->tokens_ns > 0))
			lease_grant(a, i);
		else if (t->active && t->running)
			lease_close(a, t);
		else
			lease_hold(a, t);
	}
}

static void set_mode(struct arbiter *a, enum arbiter_mode mode)
{
	if (mode == ARBITER_LEASES) {
		if (a->mode != ARBITER_LEASES)
			enter_leases(a);
	} else if (mode == ARBITER_SLICED) {
		if (a->mode != ARBITER_SLICED)
			enter_slices(a);
	} else if (a->mode == ARBITER_LEASES || a->mode == ARBITER_SLICED || a->shares_changed) {
		enter_free_run(a);
	}
	a->mode = mode;
}

static uint64_t advance(struct arbiter *a, uint64_t now_ns)
{
	uint64_t dt_ns = 0;

	if (a->stepped && now_ns > a->last_now_ns + LATE_STEP_NS)
		a->trusted_from = a->clock + MISTRUST_NS;
	if (a->stepped && now_ns > a->last_now_ns)
		dt_ns = min_u64(now_ns - a->last_now_ns, a->config.max_step_ns);
	if (!a->stepped || now_ns > a->last_now_ns)
		a->last_now_ns = now_ns;
	a->stepped = true;
	a->clock += dt_ns;
	return dt_ns;
}

static void note_sync_points(struct arbiter *a)
{
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];

		uint32_t steps = t->seen.sync_points - t->steps.sync_points;

		t->has_synced = steps != 0;
		steps_observe(&t->steps, t->seen.sync_points, t->seen.gap_ns, t->charged_ns,
			      a->mode == ARBITER_LEASES && a->active_count > 1 && !a->gang_count);
		if (steps)
			charge_pauses(a, t, steps);
	}
}

static uint64_t decide_by_lease(struct arbiter *a)
{
	uint64_t next_ns;

	set_mode(a, choose_mode(a));
	quantum_set(a);
	priority_mark(a);
	order_mark_candidates(a);
	if (a->gang_count)
		gang_rank_bound_lag(a);
	if (a->mode == ARBITER_LEASES) {
		lease_decide(a);
		next_ns = lease_next_poll_ns(a);
		return a->gang_count ? gang_rank_next_poll_ns(a, next_ns) : next_ns;
	}
	if (a->mode == ARBITER_SLICED) {
		decide_slices(a);
		return sliced_next_poll_ns(a);
	}
	if (a->mode == ARBITER_FREE)
		return arbiter_must_poll(a) ? a->config.poll_free_ns : a->config.poll_idle_ns;
	return arbiter_must_poll(a) ? a->config.poll_idle_ns : a->config.max_step_ns;
}

static uint64_t decide(struct arbiter *a)
{
	switch (a->config.policy) {
	case ARBITER_POLICY_TOKEN: return token_decide(a);
	case ARBITER_POLICY_FEEDBACK: return paced_decide(a);
	case ARBITER_POLICY_LEASE: break;
	}
	return decide_by_lease(a);
}

uint64_t arbiter_step(struct arbiter *a, uint64_t now_ns)
{
	uint64_t dt_ns = advance(a, now_ns);

	if (a->member_count)
		group_observe(a, dt_ns);
	order_read_demand(a);
	charge_step(a, dt_ns);
	note_sync_points(a);
	if (a->mode == ARBITER_SLICED)
		sliced_note_begins(a);
	lease_end_drains(a, dt_ns);
	drop_absent(a);
	uint64_t next_ns = decide(a);
	if (a->member_count)
		next_ns = group_decide(a, dt_ns, next_ns);
	for (int i = 0; i < a->active_count; i++)
		a->tenant[a->active[i]].launched = false;

	if (lease_any_drain(a)) {
		/*
		 * If a tenant holds the lease or runs in slices, the earlier of two polls comes next: the one that decide()
		 * asked for, and the drain's. Otherwise nothing but the drain is awaited.
		 */
		bool is_held = a->mode == ARBITER_SLICED ||
			       (a->holder != NONE && a->tenant[a->holder].state == LEASE_GO);
		uint64_t drain_ns = lease_drain_poll_ns(a);

		next_ns = is_held ? min_u64(next_ns, drain_ns) : drain_ns;
	}
	return a->last_now_ns + next_ns;
}
