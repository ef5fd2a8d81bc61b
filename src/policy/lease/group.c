/*
 * Groups that share space. To the rest of the arbiter a group is one tenant more, without processes: what it
 * shows is gathered here from its members, and the states that it gets are handed on to them. Which of them
 * may begin how much is space.c's to say.
 */
#include "policy/lease/arbiter.h"
#include "policy/lease/tenant.h"

#include <errno.h>
#include <limits.h>
#include <math.h>

#define BUCKET_NS UINT64_C(40000000)
/* Who has used up his cap goes on when there is so much of it again, or a part of the bucket: a start and an end cost microseconds. */
#define REFILL_NS 4e6
#define REFILL_PART 0.25
/*
 * Time that others ran alone is kept beside the bucket: so much of it, and used up in fifty times as long at the latest. In ten times,
 * with three trials a second, one of 45 % beside 30 and 15 lost 1.5 % of what it was owed, since all of them catch up then (H200).
 */
#define KEPT_MOST_NS 200e6
#define KEPT_FADE 50

/* The next member of a group at or after `from`; NONE: no more. */
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

/* ---- who belongs to it ---- */

void group_count(struct arbiter *a, int group)
{
	struct arbiter_share share = { .limit_pct = 100 };
	bool any = false, is_measured = false;

	FOR_EACH_MEMBER(i, a, group)
	{
		const struct arbiter_share *own = &a->tenant[i].share;

		share.cores_pct += own->cores_pct;
		if (!any || own->priority > share.priority)
			share.priority = own->priority;
		any = true;
		is_measured |= a->tenant[i].is_measured;
	}
	arbiter_set_measured(a, group, is_measured);
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
		a->tenant[index].part.trials = space_trials_new(a->clock);
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
	t->filled_at = a->clock;
	a->member_count++;
	space_trials_came(&a->tenant[of].part.trials);
	group_count(a, of);
}

int arbiter_set_space_group(struct arbiter *a, int tenant, uint32_t group, double part_pct)
{
	struct tenant *t;
	int of = NONE;

	if (tenant < 0 || tenant >= ARBITER_MAX_TENANTS || !a->tenant[tenant].used ||
	    a->tenant[tenant].part.is_group || a->config.policy != ARBITER_POLICY_LEASE)
		return -EINVAL;
	t = &a->tenant[tenant];
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

/* ---- what its members show ---- */

/* Runs alone, beside others that are held. */
static bool is_tried(const struct arbiter *a, const struct tenant *t)
{
	const struct space_trials *trials = &a->tenant[t->part.of].part.trials;

	return trials->runs && trials->whose == t - a->tenant;
}

/* Another does. */
static bool is_held_for_trial(const struct arbiter *a, const struct tenant *t)
{
	const struct space_trials *trials = &a->tenant[t->part.of].part.trials;

	return trials->whose != SPACE_TRIAL_NOBODY && trials->whose != t - a->tenant;
}

/* What a trial took from it is not made up for as long as others do the same, and leave it less than its cap. */
static bool catches_up(const struct tenant *t)
{
	return t->part.kept_ns > 0 && (t->running || t->seen.waiting);
}

/*
 * A member's bucket, as charge.c has one: but nothing here depends on leases, and it is small. Nobody has to wait for a turn, so there is
 * little to catch up; and what is in a large one when a window begins is had on top of the cap there.
 */
static void fill_tokens(const struct arbiter *a, struct tenant *t)
{
	double limit = t->share.limit_pct / 100.0;
	uint64_t window_ns = min_u64(
		t->part.is_there ? a->config.window_ns : a->config.idle_window_ns, BUCKET_NS);
	double most = limit * (double)window_ns, ns = limit * (double)(a->clock - t->filled_at);

	t->tokens_ns += ns;
	if (t->part.is_there && (is_held_for_trial(a, t) || catches_up(t)))
		t->part.kept_ns = fmin(t->part.kept_ns + ns, limit * KEPT_MOST_NS);
	if (t->part.is_there)
		t->part.unused_ns += fmax(t->tokens_ns - most - t->part.kept_ns, 0);
	t->tokens_ns = fmin(t->tokens_ns, most + t->part.kept_ns);
	t->part.kept_ns = fmax(fmin(t->part.kept_ns - ns / KEPT_FADE, t->tokens_ns - most), 0);
	if (t->tokens_ns >= REFILL_NS || t->tokens_ns >= REFILL_PART * most)
		t->part.is_out = false;
	t->filled_at = a->clock;
}

static void book(const struct arbiter *a, struct tenant *t, double amount_ns)
{
	t->charged_ns += amount_ns;
	if (t->charged_ns > t->charged_peak_ns)
		t->charged_peak_ns = t->charged_ns;
	t->tokens_ns -= amount_ns;
	if (t->tokens_ns < -(double)a->config.debt_max_ns)
		t->tokens_ns = -(double)a->config.debt_max_ns;
	if (t->tokens_ns <= 0)
		t->part.is_out = true;
}

static bool is_out_of_tokens(const struct tenant *t)
{
	return is_capped(t) && t->part.is_out;
}

static void read_demand(struct arbiter *a, struct tenant *t)
{
	const struct arbiter_observation *seen = &t->seen;
	struct group_part *p = &t->part;

	if (!seen->stopped)
		p->stopped_at = a->clock;
	t->running = seen->busy || seen->launching;
	/* A stopped one can't lower its flags: past any drain they say nothing. */
	if (a->clock - p->stopped_at > a->config.drain_max_ns)
		t->running = false;
	t->demand = !t->paused && !seen->stopped && (seen->waiting || seen->busy || seen->launching);
	if (t->demand || t->running || (t->launched && !t->paused && !seen->stopped)) {
		p->there_at = a->clock;
		p->is_there = true;
	}
	if (a->clock - p->there_at >= a->config.free_after_ns || t->paused ||
	    (seen->stopped && !t->running))
		p->is_there = false;
}

/* What it would use alone, as far as this look tells. */
static void see_needs(const struct arbiter *a, struct tenant *t)
{
	const struct group_part *p = &t->part;
	bool is_there = t->running || t->seen.waiting || t->launched;

	if (t->state == LEASE_FREE)
		demand_skip(&t->needs, is_there);
	else if (p->pays)
		demand_see(&t->needs, is_there, t->reported_ns, p->member.begun_ns,
			   p->member.filled_ns, a->clock);
	else
		demand_see(&t->needs, is_there, t->reported_ns, t->reported_ns, t->filled_ns,
			   a->clock);
	t->filled_ns = 0;
}

uint64_t group_depth_ns(const struct arbiter *a, const struct tenant *t)
{
	const struct space_member *m = &t->part.member;
	uint64_t work_ns = a->terms.depth_ns;

	/* A length that is timed beside seven other streams of its own is seven times as long. */
	if (is_tried(a, t) && !m->is_learned)
		return work_ns;
	/* How fast it is, it is as it runs alone: with all of its streams at once, and a thread that may lose its CPU for a while. */
	if (is_tried(a, t))
		work_ns = SPACE_TRIAL_DEPTH_NS;
	return space_member_told_ns(m, work_ns);
}

/* Its processes can use but a part of the SMs. */
static bool has_part(const struct tenant *t)
{
	return t->part.member.part > 0 && t->part.member.part < 1;
}

/*
 * What a cap is charged. Where its processes can use but a part of the SMs, or nobody else is there, that part for the time with work in
 * flight, by the member's own count and no more than there was: however wrong lengths are, it has had no more. Beside others
 * that time says little, and it is what it began, as work; that time, until its speed is known.
 */
static double charge_of_cap(const struct tenant *t, double busy_ns, bool is_alone)
{
	const struct space_member *m = &t->part.member;

	if (has_part(t))
		return busy_ns * space_member_part(m);
	return is_alone || !space_member_is_judged(m) ? busy_ns : m->begun_ns;
}

/* Paced without a cap it is charged what it began; alone, the time that it worked. */
static void charge_member(struct arbiter *a, struct tenant *t, bool is_alone, uint64_t dt_ns)
{
	struct group_part *p = &t->part;
	bool is_stopped = t->state == LEASE_STOP;
	enum space_speed_basis basis = p->member.speed.basis;
	double busy_ns;
	struct space_seen seen = {
		.works = t->running,
		.waits = t->seen.waiting,
		.is_paced = p->pays,
		.is_tried = is_tried(a, t),
		.is_barred = t->paused || t->seen.stopped,
		.is_spent = is_out_of_tokens(t) && !is_tried(a, t),
		.paid_ns = t->seen.spent,
		.work_ns = t->seen.work_ns,
		.untried_ns = t->seen.untried_ns,
		.inflight_ns = t->seen.inflight_ns,
		.rests = t->seen.rests,
	};

	p->wall_ns += (double)dt_ns;
	p->held_ns += p->is_there && is_held_for_trial(a, t) ? dt_ns : 0;
	if (seen.is_tried)
		p->trial_ns = (p->member.is_tried ? p->trial_ns : 0) + (double)dt_ns;
	busy_ns = t->reported_ns < p->wall_ns ? t->reported_ns : p->wall_ns;
	/* The time without its group's lease says nothing of what it could use. */
	space_member_see(&p->member, &seen, a->clock, p->pays && !is_stopped ? dt_ns : 0);
	/* By another measure it may have had less; but in its trial it had all of the card. */
	if (p->member.speed.basis != basis)
		t->tokens_ns = fmax(t->tokens_ns, (t->share.limit_pct / 100 - 1) * p->trial_ns);
	if (is_capped(t)) {
		book(a, t, charge_of_cap(t, busy_ns, is_alone));
		p->wall_ns -= busy_ns;
	} else if (p->pays) {
		book(a, t, p->member.filled_ns);
		p->wall_ns = 0;
	} else {
		book(a, t, busy_ns);
		p->wall_ns -= busy_ns;
	}
	if (t->seen.waiting && !lets_through(t->state))
		t->waited_ns += dt_ns;
	see_needs(a, t);
	t->reported_ns = t->filled_ns = 0;
}

/* What it does for its group's gain, after a look at it. */
static struct space_gain_seen see_gain(const struct arbiter *a, struct tenant *t)
{
	double limit = t->share.limit_pct / 100.0, turn = demand_busy(&t->needs);

	return (struct space_gain_seen){ .gain = &t->part.gain,
					 .is_there = demand_is_there(&t->needs, a->clock),
					 .turn = turn < limit ? turn : limit,
					 .done_ns = t->part.member.done_alone_ns };
}

/* The part of the card that its work fills, by its grids. */
static double part_of_card(const struct tenant *t)
{
	const struct space_sums *s = &t->part.member.sums;

	return s->work_ns > 0 && s->paid_ns < s->work_ns ? s->paid_ns / s->work_ns : 1;
}

static void see_group(struct arbiter *a, int group, uint64_t dt_ns)
{
	struct tenant *g = &a->tenant[group];
	struct arbiter_observation sum = { .stopped = true,
					   .rings = true,
					   .idle_ns = UINT64_MAX,
					   .busy_ns = g->seen.busy_ns,
					   .launches = g->seen.launches };
	struct space_gain_seen seen[ARBITER_MAX_TENANTS];
	double inflight_ns = 0;
	uint64_t longest_ns = 0;
	int there = 0;
	size_t count = 0;

	FOR_EACH_MEMBER(i, a, group)
	{
		struct tenant *t = &a->tenant[i];

		read_demand(a, t);
		fill_tokens(a, t);
		sum.busy_ns += (uint64_t)t->reported_ns;
		sum.launches += t->launched;
		there += t->part.is_there;
	}
	FOR_EACH_MEMBER(i, a, group)
	{
		struct tenant *t = &a->tenant[i];
		uint64_t own_ns = min_u64(space_member_work_ns(&t->part.member, t->seen.inflight_ns),
					  a->config.drain_max_ns);

		charge_member(a, t, there < 2, dt_ns);
		seen[count++] = see_gain(a, t);
		t->launched = false;
		sum.rings = sum.rings && t->seen.rings;
		if (!t->part.is_there)
			continue;
		sum.waiting |= t->demand && t->seen.waiting && !is_out_of_tokens(t);
		sum.busy |= t->running && !t->seen.launching;
		sum.launching |= t->running && t->seen.launching;
		sum.stopped = sum.stopped && t->seen.stopped;
		sum.idle_ns = min_u64(sum.idle_ns, t->seen.idle_ns);
		/* All at once: no sooner than the longest, nor than the card can do them. */
		longest_ns = own_ns > longest_ns ? own_ns : longest_ns;
		inflight_ns += (double)own_ns * part_of_card(t);
	}
	space_gain_see(seen, count, lets_through(g->state) ? dt_ns : 0);
	sum.stopped = sum.stopped && there > 0;
	sum.inflight_ns = (uint64_t)inflight_ns > longest_ns ? (uint64_t)inflight_ns : longest_ns;
	arbiter_observe(a, group, &sum);
}

void group_observe(struct arbiter *a, uint64_t dt_ns)
{
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++)
		if (a->tenant[i].used && a->tenant[i].part.is_group)
			see_group(a, i, dt_ns);
}

/* ---- what they may do ---- */

struct priorities {
	int lowest, highest;
};

/* Of those that are there. */
static struct priorities priorities_of(const struct arbiter *a, int group)
{
	struct priorities p = { .lowest = INT_MAX, .highest = INT_MIN };

	FOR_EACH_MEMBER(i, a, group)
	{
		const struct tenant *t = &a->tenant[i];

		if (t->part.is_there && t->share.priority < p.lowest)
			p.lowest = t->share.priority;
		if (t->part.is_there && t->share.priority > p.highest)
			p.highest = t->share.priority;
	}
	return p;
}

/* As the arbiter weighs tenants: those without a guarantee share what all guarantees leave. */
static void set_weights(struct arbiter *a, int group)
{
	int unpromised = 0, lowest = priorities_of(a, group).lowest;
	double rest = 100.0 - a->promised_pct;

	FOR_EACH_MEMBER(i, a, group)
	unpromised += a->tenant[i].part.is_there && a->tenant[i].share.cores_pct <= 0;
	if (unpromised > 1)
		rest /= unpromised;
	FOR_EACH_MEMBER(i, a, group)
	{
		struct tenant *t = &a->tenant[i];
		double cores = t->share.cores_pct * order_scale(a);

		t->part.member.limit = t->share.limit_pct / 100.0;
		t->part.member.is_promised = cores > 0;
		t->part.member.comes_first = t->share.priority > lowest;
		t->part.member.weight = cores > 0 ? cores : (rest > 1.0 ? rest : 1.0);
	}
}

static void set_state(struct arbiter *a, struct tenant *t, enum lease_state state)
{
	bool went = t->state == LEASE_STOP || t->state == LEASE_CLOSING;
	bool goes = state != LEASE_STOP && state != LEASE_CLOSING;

	if (state == LEASE_CLOSING && t->state == LEASE_STOP)
		return;
	t->leases += goes && went;
	if (goes)
		t->part.pays = state == LEASE_PACED || is_tried(a, t);
	if (went != !goes)
		t->held_at = a->clock;
	t->state = state;
}

static void set_grant(struct tenant *t)
{
	uint64_t allowed_ns = t->part.member.allowance_ns;

	if (is_capped(t))
		allowed_ns = min_u64(allowed_ns, is_out_of_tokens(t) ? 0 : (uint64_t)t->tokens_ns);
	t->part.granted = t->seen.spent + space_member_tokens(&t->part.member, allowed_ns);
}

/* Where but a part of the SMs is its own, it can't be seen how fast it is on the card. */
static bool may_be_tried(const struct tenant *t)
{
	if (has_part(t))
		return false;
	/* A cap may be used up: what the trial takes is charged. */
	return t->part.member.is_present ||
	       (is_capped(t) && t->part.is_there && !t->paused && !t->seen.stopped);
}

/*
 * What its trials took beyond its cap is paid first, once it is known how fast it is. Else one of 15 % whose steps differ, which is tried
 * again and again for that, had its cap for seconds ahead, and nothing for seconds then (virtual time: 48 % of a second, then 0).
 */
static bool pays_for_trials(const struct tenant *t)
{
	return is_capped(t) && t->part.member.speed.basis == SPACE_SPEED_KNOWN &&
	       t->tokens_ns < -REFILL_NS;
}

static void decide_on_trial(struct arbiter *a, int group, bool is_arbitrating, uint64_t dt_ns)
{
	struct group_part *g = &a->tenant[group].part;
	bool goes = lets_through(a->tenant[group].state);
	struct space_trial_seen seen[ARBITER_MAX_TENANTS];
	size_t count = 0;
	/* Who comes before others is not held for their trials. */
	int priority = priorities_of(a, group).highest, whose;

	FOR_EACH_MEMBER(i, a, group)
	{
		const struct tenant *t = &a->tenant[i];

		seen[count++] = (struct space_trial_seen){
			.who = i,
			.may = goes && is_arbitrating && may_be_tried(t) &&
			       t->share.priority >= priority,
			.asks = (g->space.is_crowded || is_capped(t)) && !pays_for_trials(t) &&
				space_member_asks_for_trial(&t->part.member,
							    g->space.is_scarce || is_capped(t),
							    a->clock),
			/* A thread that looks whether it may go on now is none that works. */
			.works = g->trials.runs ? t->seen.busy : t->running,
			.is_clear = space_speed_is_clear(&t->part.member.speed),
			.came_at = t->part.member.came_at,
			.tried_ns = t->part.member.speed.tried_ns +
				    t->part.attempts * SPACE_TRIAL_ATTEMPT_NS,
		};
	}
	whose = g->trials.whose;
	space_trials_step(&g->trials, seen, count, a->clock, goes ? dt_ns : 0);
	if (g->trials.whose != whose && g->trials.whose != SPACE_TRIAL_NOBODY)
		a->tenant[g->trials.whose].part.attempts++;
}

/* Whether somebody's promise is to be kept, or what the members do together is measured: else the card is theirs. */
static bool is_arbitrated(const struct arbiter *a, int group)
{
	bool any_promised = false;
	int there = 0;

	FOR_EACH_MEMBER(i, a, group)
	{
		const struct tenant *t = &a->tenant[i];

		there += t->part.is_there;
		any_promised |= t->part.is_there && t->share.cores_pct > 0;
	}
	return there > 1 && (any_promised || a->tenant[group].is_measured);
}

/* Returns how soon to look again. */
static uint64_t decide_on_members(struct arbiter *a, int group, uint64_t dt_ns)
{
	struct tenant *g = &a->tenant[group];
	struct space_member *member[ARBITER_MAX_TENANTS];
	size_t count = 0;
	bool is_arbitrating = is_arbitrated(a, group), is_paced = false, any_waits = false,
	     any_works = false;
	const struct space_trials *trials = &g->part.trials;

	FOR_EACH_MEMBER(i, a, group)
	member[count++] = &a->tenant[i].part.member;
	set_weights(a, group);
	g->part.space.is_trial = trials->whose != SPACE_TRIAL_NOBODY;
	if (lets_through(g->state))
		space_set_allowances(&g->part.space, member, count, dt_ns);
	decide_on_trial(a, group, is_arbitrating, dt_ns);
	FOR_EACH_MEMBER(i, a, group)
	{
		struct tenant *t = &a->tenant[i];
		enum lease_state state = g->state;

		if (t->paused)
			state = LEASE_STOP;
		else if (is_tried(a, t))
			state = LEASE_GO;
		else if (lets_through(state) && (is_arbitrating || is_capped(t)))
			state = LEASE_PACED;
		set_state(a, t, state);
		if (trials->whose != SPACE_TRIAL_NOBODY && trials->whose != i)
			t->part.member.allowance_ns = 0;
		if (state == LEASE_PACED)
			set_grant(t);
		is_paced |= state == LEASE_PACED && t->part.is_there;
		any_waits |= t->seen.waiting;
		any_works |= t->running;
	}
	if (trials->whose != SPACE_TRIAL_NOBODY)
		return SPACE_TRIAL_LOOK_NS;
	return is_paced && (any_works || any_waits) ? SPACE_LOOK_NS : UINT64_MAX;
}

uint64_t group_decide(struct arbiter *a, uint64_t dt_ns, uint64_t next_ns)
{
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++)
		if (a->tenant[i].used && a->tenant[i].part.is_group)
			next_ns = min_u64(next_ns, decide_on_members(a, i, dt_ns));
	return next_ns;
}
