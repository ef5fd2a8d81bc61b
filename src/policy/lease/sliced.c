#include "policy/lease/arbiter_inside.h"

#include <limits.h>
#include <math.h>

#define STEP_KEEPS \
	1.5 /* under slices, steps of up to slice_step_ns times this still count as short */
/*
 * The least thread_ns of a step for slices. A loop that only launches and waits leaves no GPU time to others, and would lose
 * work in slices.
 */
#define THREAD_LEAST_NS 1e5
#define STEPS_MEANT \
	16 /* the number of steps over which more_ns is averaged, and over which a lead is paid back */
#define HOLD_LEAST_NS 1e5 /* a shorter hold is not worth a wait */
#define DEBT_NS 2e7       /* a larger debt is paid back at once, however long that holds a tenant */
/* A tenant without short steps is held once it is ahead by more than AHEAD_NS ... */
#define AHEAD_NS 1e6
#define AHEAD_LEFT_NS 5e5   /* ... until it is ahead by less than this */
#define CREDIT_MOST_NS 50e6 /* bound of credit_ns, positive or negative */
#define SAVED_MOST_NS 5e6   /* the most credit that a tenant gathers while it wants nothing */
/* The hardware's time slice: a process that begins while another runs waits this long (docs/decisions/hardware-slices.md). */
#define TIME_SLICE_NS 2100000

/* Returns the length of the tenant's steps; 0 if it is unknown, or more than `keeps` x slice_step_ns. */
static double short_step_ns(const struct arbiter *a, const struct tenant *t, double keeps)
{
	return steps_length_ns(&t->steps, keeps * (double)a->config.slice_step_ns);
}

static bool has_short_step(const struct arbiter *a, const struct tenant *t)
{
	double keeps = a->mode == ARBITER_SLICED ? STEP_KEEPS : 1;

	return short_step_ns(a, t, keeps) > 0 && keeps * t->steps.thread_ns >= THREAD_LEAST_NS;
}

/*
 * If any tenant has a cap, slices are due only if all tenants have short steps, or if one with short steps outranks all those
 * without. Turns keep the caps of trainings better, and lose less work.
 */
bool sliced_is_due(const struct arbiter *a)
{
	int best_short = INT_MIN, best_long = INT_MIN;
	bool any_capped = false;

	if (a->active_count < 2 || a->gang_count || a->member_count)
		return false;
	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];
		int *best = has_short_step(a, t) ? &best_short : &best_long;

		*best = t->share.priority > *best ? t->share.priority : *best;
		any_capped = any_capped || is_capped(t);
	}
	return best_short > (any_capped ? best_long : INT_MIN);
}

/* Whether the tenant runs. The flags of a stopped tenant say nothing. */
static bool runs(const struct tenant *t)
{
	return t->ran && !t->seen.stopped;
}

static bool wants(const struct tenant *t)
{
	return t->demand || runs(t);
}

/* Whether the tenant has wanted nothing for longer than a pause between two steps. */
static bool is_resting(const struct arbiter *a, const struct tenant *t)
{
	return !wants(t) && a->clock - t->worked_at > TIME_SLICE_NS;
}

/*
 * Whether the tenant counts when the GPU's time is divided. A tenant that had more than its share counts in its pauses too, and
 * so pays that back.
 */
static bool takes_part(const struct tenant *t)
{
	return wants(t) || t->credit_ns < 0;
}

/* Returns the part of the GPU's time that the tenant is due by weight, or would be due if it wanted the GPU now. */
static double due_part(const struct arbiter *a, const struct tenant *t)
{
	double weights = 0;

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *other = &a->tenant[a->active[i]];

		if (other == t || takes_part(other))
			weights += order_weight(a, other);
	}
	return order_weight(a, t) / weights;
}

static unsigned running_processes(const struct tenant *t)
{
	return !runs(t) ? 0 : t->seen.working > 1 ? t->seen.working : 1;
}

/* Returns the running tenant that the hardware will serve first; NULL if it serves a tenant already, or none runs. */
static struct tenant *first_waiting(struct arbiter *a)
{
	struct tenant *first = NULL;

	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];

		if (!t->running || t->began || t->seen.stopped)
			continue;
		if (a->clock >= t->served_from)
			return NULL;
		if (!first || t->served_from < first->served_from)
			first = t;
	}
	return first;
}

static bool others_run(const struct arbiter *a, const struct tenant *t)
{
	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *other = &a->tenant[a->active[i]];

		if (other != t && other->running && !other->seen.stopped)
			return true;
	}
	return false;
}

/*
 * Sets how long the tenant is held after each step: for as long as a usual step takes more than the tenant's part of the GPU,
 * and for a portion of lead_ns, the time that the tenant had beyond its part so far. So all its steps take about as long.
 */
static void pace_step(struct step_pace *pace, double more_ns, double lead_ns)
{
	double hold_ns;

	pace->more_ns += (more_ns - pace->more_ns) / STEPS_MEANT;
	hold_ns = pace->more_ns + lead_ns / STEPS_MEANT;
	pace->hold_ns = hold_ns < HOLD_LEAST_NS ? 0 : hold_ns;
}

static void note_step(const struct arbiter *a, struct tenant *t)
{
	double charged_ns = t->charged_ns - t->step.charged_before_ns;

	/* A step for which other tenants were held is not a usual one. */
	if (!t->comes_first)
		pace_step(&t->step.share, charged_ns / due_part(a, t) - t->step.ran_ns,
			  -t->credit_ns);
	if (is_capped(t))
		pace_step(&t->step.cap, 100 * charged_ns / t->share.limit_pct - t->step.ran_ns,
			  -t->tokens_ns);
	t->step.ran_ns = 0;
	t->step.charged_before_ns = t->charged_ns;
}

void sliced_note_begins(struct arbiter *a)
{
	struct tenant *first = first_waiting(a);

	if (first)
		first->served_from = a->clock;
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];

		if (t->has_synced)
			note_step(a, t);
		if (t->began)
			t->step.share.hold_ns = t->step.cap.hold_ns = 0;
		if (!t->began || t->charged_ns - t->charged_at_wait_ns < TIME_SLICE_NS ||
		    !others_run(a, t))
			continue;
		t->served_from = a->clock + TIME_SLICE_NS;
		t->charged_at_wait_ns = t->charged_ns;
	}
}

double sliced_served_part(const struct arbiter *a, const struct tenant *t)
{
	unsigned served = 0, waiting = 0;
	bool is_waiting = a->clock < t->served_from;

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *one = &a->tenant[a->active[i]];

		*(a->clock < one->served_from ? &waiting : &served) += running_processes(one);
	}
	if (!running_processes(t) || (is_waiting && served))
		return 0;
	return (double)running_processes(t) / (served ? served : waiting);
}

void sliced_begin(struct arbiter *a)
{
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++) {
		struct tenant *t = &a->tenant[i];

		t->credit_ns = 0;
		t->is_ahead = t->is_over_cap = t->comes_first = false;
		t->served_from = 0;
		t->step = (struct step_account){ .charged_before_ns = t->charged_ns };
	}
}

/*
 * Whether the tenant has to wait: its hold after a step is not over, or it owes more than DEBT_NS. left_ns: its credit or
 * tokens.
 */
static bool is_paced(const struct arbiter *a, const struct tenant *t, const struct step_pace *pace,
		     double left_ns)
{
	return left_ns < -DEBT_NS || (double)(a->clock - t->worked_at) < pace->hold_ns;
}

static bool is_ahead(const struct arbiter *a, const struct tenant *t)
{
	if (has_short_step(a, t))
		return is_paced(a, t, &t->step.share, t->credit_ns);
	return t->credit_ns < (t->is_ahead ? -AHEAD_LEFT_NS : -AHEAD_NS);
}

static bool is_over_cap(const struct arbiter *a, const struct tenant *t)
{
	if (!is_capped(t) || t->paused)
		return false;
	if (has_short_step(a, t))
		return is_paced(a, t, &t->step.cap, t->tokens_ns);
	return t->tokens_ns < (t->is_over_cap ? 0 : -AHEAD_NS);
}

/*
 * Whether another tenant wants the GPU that is neither ahead nor above its cap. A tenant is marked as ahead only if there is
 * such another, so at least one that wants the GPU is not ahead.
 */
static bool others_want(const struct arbiter *a, const struct tenant *t)
{
	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *other = &a->tenant[a->active[i]];

		if (other != t && wants(other) && !other->is_ahead && !other->is_over_cap)
			return true;
	}
	return false;
}

/*
 * Counts dt_ns even if no tenant ran. So a held tenant gets on after some time even if the tenants that it waits for never
 * come.
 */
void sliced_count(struct arbiter *a, struct tenant *t, uint64_t dt_ns, double had_ns)
{
	/* A capped tenant is not owed the time that its cap keeps from it. */
	double most_ns = is_capped(t) ? 0 : wants(t) ? CREDIT_MOST_NS : fmax(t->credit_ns, 0);
	/* While other tenants are held for this one, all of the GPU's time counts as its own. */
	double used_ns = t->comes_first && others_want(a, t) ? (double)dt_ns : had_ns;
	double credit_ns = t->credit_ns + due_part(a, t) * (double)dt_ns - used_ns;

	if (is_resting(a, t))
		most_ns = fmax(most_ns, SAVED_MOST_NS);

	if (runs(t))
		t->step.ran_ns += (double)dt_ns;
	t->credit_ns = fmin(fmax(credit_ns, -CREDIT_MOST_NS), most_ns);
}

void sliced_mark(struct arbiter *a)
{
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];

		t->is_over_cap = is_over_cap(a, t);
	}
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];

		t->is_ahead = others_want(a, t) && is_ahead(a, t);
		/* A tenant begins to come first once it has saved half of SAVED_MOST_NS, and goes on until that is spent. */
		t->comes_first = wants(t) && !t->is_ahead && !t->is_over_cap &&
				 t->credit_ns >= (t->comes_first ? 0 : SAVED_MOST_NS / 2);
	}
}

bool sliced_wants_sync_point(const struct arbiter *a, const struct tenant *t)
{
	return a->mode == ARBITER_SLICED && has_short_step(a, t);
}

bool sliced_is_held(const struct arbiter *a, const struct tenant *t)
{
	/*
	 * In-flight work that outlived its drain may wait for the launch that is held. So the tenant goes on, and pays later.
	 */
	if (t->overrunning && t->seen.waiting)
		return false;
	if (t->is_ahead || t->is_over_cap)
		return true;
	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *other = &a->tenant[a->active[i]];

		if (other->comes_first && other->share.priority > t->share.priority)
			return true;
	}
	return false;
}

bool sliced_is_bounded(const struct arbiter *a, const struct tenant *t)
{
	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *other = &a->tenant[a->active[i]];

		if (other->share.priority > t->share.priority &&
		    (other->comes_first || (is_resting(a, other) && other->credit_ns >= 0)))
			return true;
	}
	return false;
}

/*
 * Returns the time until the tenant has waited long enough. left_ns is its credit or tokens, a debt that is paid back at `part`
 * of the time that passes.
 */
static double pace_left_ns(const struct arbiter *a, const struct tenant *t,
			   const struct step_pace *pace, double left_ns, double part)
{
	if (!has_short_step(a, t))
		return (-AHEAD_LEFT_NS - left_ns) / part;
	if (left_ns < -DEBT_NS)
		return (-DEBT_NS - left_ns) / part;
	return pace->hold_ns - (double)(a->clock - t->worked_at);
}

uint64_t sliced_next_look_ns(const struct arbiter *a)
{
	double next_ns = (double)a->config.poll_free_ns;

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];

		if (t->is_ahead)
			next_ns = fmin(next_ns, pace_left_ns(a, t, &t->step.share, t->credit_ns,
							     due_part(a, t)));
		if (t->is_over_cap)
			next_ns = fmin(next_ns, pace_left_ns(a, t, &t->step.cap, t->tokens_ns,
							     t->share.limit_pct / 100));
	}
	return (uint64_t)fmax(next_ns, (double)a->config.poll_drain_ns);
}
