#include "policy/lease/turns.h"

#include "base/min.h"

#define FIRST_OFF_NS UINT64_C(100000000)
#define LAST_OFF_NS UINT64_C(60000000000)
/*
 * When turns are given up (turns.h), all processes run for off_ns: twice as long as the last time, at most LAST_OFF_NS. But it
 * is only FIRST_OFF_NS if turns have since been taken for FORGIVEN_AFTER x off_ns or LAST_OFF_NS, whichever is less.
 */
#define FORGIVEN_AFTER 8
/* Turns are given up once idleness lost this fraction (about the loss of hardware slicing), and LOST_LEAST_NS. */
#define LOST_PART 0.1
#define LOST_LEAST_NS UINT64_C(10000000)
#define LOST_WINDOW_NS UINT64_C(100000000) /* held_ns and lost_ns decay over this time */
#define PASS_NS UINT64_C(100000)           /* from a turn's end until the next process works */

/* 0 if the clock went back. */
static uint64_t since(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

static void note_work(struct turns_process *p, const struct turns_observation *seen, uint64_t now_ns)
{
	bool launched = seen->launches != p->seen.launches;

	if (seen->works)
		p->worked_at = now_ns;
	else if (launched)
		p->worked_at = now_ns - min_u64(seen->idle_ns, since(now_ns, p->worked_at));
	if (launched || !seen->works) {
		p->launched_at = now_ns;
		p->launched_inflight_ns = seen->inflight_ns;
	}
}

void turns_observe(const struct turns *t, struct turns_process *p,
		   const struct turns_observation *seen, uint64_t now_ns)
{
	bool was_present = p->is_present;

	note_work(p, seen, now_ns);
	p->seen = *seen;
	p->is_present = seen->waits || seen->works;
	if (!p->is_present || was_present)
		return;
	p->came_at = now_ns;
	p->served_ns = max_u64(p->served_ns, t->floor_ns);
}

static void learn_pauses(struct turns_process *process, size_t count,
			 const struct turns_lease *lease)
{
	struct patience_bounds bounds = { .least_ns = lease->config->idle_min_ns,
					  .most_ns = lease->config->idle_ns,
					  .worth_ns = 2 * lease->handover_ns };

	for (size_t i = 0; i < count; i++) {
		struct turns_process *p = &process[i];

		if (!p->has_patience)
			patience_begin(&p->patience, bounds.least_ns);
		p->has_patience = true;
		if (p->is_present)
			patience_learn(&p->patience, &bounds, p->came_at);
	}
}

struct view {
	/* the process with the turn; NULL if that process is gone, or every process has the turn */
	struct turns_process *own;
	struct turns_process *first; /* present process that was served least */
	/* waiting process that was served least, other than `own` */
	struct turns_process *waiter;
	unsigned present;
};

static bool comes_before(const struct turns_process *p, const struct turns_process *best)
{
	return !best || p->served_ns < best->served_ns;
}

static struct view view(const struct turns *t, struct turns_process *process, size_t count)
{
	struct view v = { 0 };

	for (size_t i = 0; i < count; i++) {
		struct turns_process *p = &process[i];

		if (t->turn && p->slot == t->turn - 1)
			v.own = p;
		else if (p->seen.waits && comes_before(p, v.waiter))
			v.waiter = p;
		if (p->is_present && comes_before(p, v.first))
			v.first = p;
		v.present += p->is_present;
	}
	return v;
}

static void give_turn(struct turns *t, struct turns_process *p, uint64_t now_ns)
{
	t->turn = p->slot + 1;
	t->given++;
	t->had_ns = 0;
	t->began_at = p->worked_at = p->launched_at = now_ns;
	p->launched_inflight_ns = p->seen.inflight_ns;
	t->stuck_before = p->seen.stuck;
	t->floor_ns = max_u64(t->floor_ns, p->served_ns);
}

static void choose(struct turns *t, const struct view *v, uint64_t now_ns)
{
	if (v->present > 1)
		give_turn(t, v->first, now_ns);
	else
		t->turn = 0;
}

static void give_up(struct turns *t, enum turns_reason reason, uint64_t now_ns)
{
	uint64_t forgiven_ns = min_u64(FORGIVEN_AFTER * t->off_ns, LAST_OFF_NS);

	if (!t->off_ns || since(now_ns, t->off_until) >= forgiven_ns)
		t->off_ns = FIRST_OFF_NS;
	else
		t->off_ns = min_u64(2 * t->off_ns, LAST_OFF_NS);
	t->off_until = now_ns + t->off_ns;
	t->turn = 0;
	t->given_up++;
	t->reason = reason;
	t->held_ns = t->lost_ns = 0;
}

static uint64_t late_at(const struct turns_process *p, const struct arbiter_config *config)
{
	uint64_t inflight = min_u64(p->launched_inflight_ns, config->drain_max_ns);

	return p->launched_at +
	       max_u64(config->drain_min_ns, min_u64(4 * inflight, config->drain_max_ns));
}

/* If the process with the turn may be waiting for another process's held launch, gives turns up and returns true. */
static bool needs_others(struct turns *t, const struct view *v, const struct turns_lease *lease)
{
	const struct turns_process *own = v->own;

	if (!own || !v->waiter)
		return false;
	if (own->seen.stuck != t->stuck_before)
		give_up(t, TURNS_STUCK, lease->now_ns);
	else if (own->seen.works && lease->now_ns >= late_at(own, lease->config))
		give_up(t, TURNS_LATE, lease->now_ns);
	else
		return false;
	return true;
}

static void charge(struct turns *t, struct turns_process *own, uint64_t dt_ns)
{
	own->served_ns += dt_ns;
	t->had_ns += dt_ns;
	t->held_ns += dt_ns;
	if (t->held_ns >= LOST_WINDOW_NS) {
		t->held_ns /= 2;
		t->lost_ns /= 2;
	}
}

/* If idleness has now lost too much time, gives turns up for a while and returns true. */
static bool has_lost(struct turns *t, uint64_t idle_ns, uint64_t now_ns)
{
	t->lost_ns += idle_ns + PASS_NS;
	if (t->lost_ns < LOST_LEAST_NS || (double)t->lost_ns < LOST_PART * (double)t->held_ns)
		return false;
	give_up(t, TURNS_IDLE, now_ns);
	return true;
}

static uint64_t start_limit_ns(const struct turns_lease *lease)
{
	/* Half of the arbiter's limit, after which the arbiter takes the lease from the whole tenant. */
	return lease->config->start_limit_ns / 2;
}

static uint64_t length_ns(const struct turns_lease *lease)
{
	return max_u64(lease->quantum_ns, TURNS_LEAST_NS);
}

static void pass_on(struct turns *t, const struct view *v, const struct turns_lease *lease)
{
	struct turns_process *own = v->own, *next = v->waiter;
	uint64_t now_ns = lease->now_ns, idle_ns = since(now_ns, own->worked_at);

	if (own->seen.works) {
		if (t->had_ns < length_ns(lease))
			return;
		if (next && next->served_ns <= own->served_ns)
			give_turn(t, next, now_ns);
		else
			t->had_ns = 0;
	} else if (own->seen.waits) {
		if (idle_ns < start_limit_ns(lease) || !next || has_lost(t, idle_ns, now_ns))
			return;
		/* The process got the turn but is stopped, or no CPU is free. So every process gets the turn. */
		t->is_open = true;
		t->turn = 0;
	} else if (idle_ns >= own->patience.ns) {
		if (!next) {
			t->turn = 0;
			return;
		}
		patience_lost(&own->patience, own->worked_at);
		if (!has_lost(t, idle_ns, now_ns))
			give_turn(t, next, now_ns);
	}
}

static void decide(struct turns *t, const struct view *v, const struct turns_lease *lease)
{
	bool is_new = lease->number != t->lease;

	t->lease = lease->number;
	if (is_new && lease->is_again && v->own && v->own->is_present &&
	    t->had_ns < length_ns(lease) && since(lease->now_ns, t->began_at) < TURNS_LONGEST_NS) {
		v->own->worked_at = lease->now_ns;
		pass_on(t, v, lease);
	} else if (is_new) {
		t->is_open = false;
		choose(t, v, lease->now_ns);
	} else if (t->is_open) {
		t->turn = 0;
	} else if (!v->own) {
		choose(t, v, lease->now_ns);
	} else {
		pass_on(t, v, lease);
	}
}

static uint64_t next_poll(const struct turns *t, const struct view *v,
			  const struct turns_lease *lease)
{
	const struct turns_process *own = v->own;

	if (!own || !v->waiter)
		return UINT64_MAX;
	uint64_t late = late_at(own, lease->config);
	if (lease->state == TURNS_AWAY)
		return own->seen.works ? late : UINT64_MAX;
	if (own->seen.works)
		return min_u64(late, lease->now_ns + length_ns(lease) -
					     min_u64(t->had_ns, length_ns(lease)));
	if (own->seen.waits)
		return own->worked_at + start_limit_ns(lease);
	return own->worked_at + own->patience.ns;
}

uint64_t turns_step(struct turns *t, struct turns_process *process, size_t count,
		    const struct turns_lease *lease)
{
	uint64_t dt_ns = min_u64(since(lease->now_ns, t->stepped_at), lease->config->max_step_ns);
	struct view v = view(t, process, count);

	learn_pauses(process, count, lease);
	if (t->was_in_use && v.own)
		charge(t, v.own, dt_ns);
	t->stepped_at = lease->now_ns;
	/* The drain counts as use too: under a cap, a lease may consist of little else. */
	t->was_in_use = lease->state == TURNS_HELD ||
			(lease->state == TURNS_AWAY && v.own && v.own->seen.works);
	if (lease->state == TURNS_OPEN || lease->now_ns < t->off_until) {
		t->turn = 0;
		return UINT64_MAX;
	}
	if (needs_others(t, &v, lease))
		return UINT64_MAX;
	if (lease->state == TURNS_HELD)
		decide(t, &v, lease);
	v = view(t, process, count);
	return next_poll(t, &v, lease);
}

uint64_t turns_patience_ns(const struct turns *t, const struct turns_process *process, size_t count)
{
	for (size_t i = 0; i < count && t->turn; i++)
		if (process[i].slot == t->turn - 1)
			return process[i].patience.ns;
	return UINT64_MAX;
}
