#include "policy/lease/tenant.h"

#include <limits.h>
#include <math.h>

#define STEP_KEEPS 1.5 /* times slice_step_ns a step may get before turns come back */
/* Of a thread's time in a step. A loop that only launches and waits leaves nothing to others, and slices would cost it work. */
#define THREAD_LEAST_NS 1e5
/* GPU time beyond its share that a tenant may have had before it is held ... */
#define AHEAD_NS 1e6
#define AHEAD_LEFT_NS 5e5 /* ... until that is less than this */
#define HOLD_PART 1.25
#define DEBT_NS 1e7         /* more than that is paid at once, however long it holds a tenant */
#define CREDIT_MOST_NS 50e6 /* of GPU time that is still owed, or was had beyond the share */

/* The length of a step, if that is short; 0: it is not, or not known. `keeps`: what is still short. */
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
 * With caps, only where all have short steps, or those without come after them by priority: turns keep the caps of trainings
 * better, and lose less work.
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

/* A stopped one's flags say nothing. */
static bool runs(const struct tenant *t)
{
	return t->ran && !t->seen.stopped;
}

/* Its part of the GPU time of all that run now: the hardware serves each process in turn. */
static double served_part(const struct tenant *t, unsigned running)
{
	return runs(t) ? (double)(t->seen.working > 1 ? t->seen.working : 1) / running : 0;
}

static bool wants(const struct tenant *t)
{
	return t->demand || runs(t);
}

/* A tenant that had more than its share makes up for it in its pauses, too. */
static bool takes_part(const struct tenant *t)
{
	return wants(t) || t->credit_ns < 0;
}

/* How much of the GPU's time it is due, beside the others that want it now. */
static double due_part(const struct arbiter *a, const struct tenant *t)
{
	double weights = 0;

	for (int i = 0; i < a->active_count; i++)
		if (takes_part(&a->tenant[a->active[i]]))
			weights += order_weight(a, &a->tenant[a->active[i]]);
	return takes_part(t) ? order_weight(a, t) / weights : 0;
}

unsigned sliced_running(const struct arbiter *a)
{
	unsigned running = 0;

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];

		if (runs(t))
			running += t->seen.working > 1 ? t->seen.working : 1;
	}
	return running;
}

void sliced_count(struct arbiter *a, uint64_t dt_ns)
{
	unsigned running = sliced_running(a);

	/* Where no tenant runs, time goes on all the same: a held tenant waits for it alone, should the others not come. */
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];
		double served = served_part(t, running);
		double ns = (due_part(a, t) - served) * (double)dt_ns;
		double most_ns = wants(t) ? CREDIT_MOST_NS : fmax(t->credit_ns, 0);

		t->served_part = served > 0 ? served : t->served_part;
		t->credit_ns = fmin(fmax(t->credit_ns + ns, -CREDIT_MOST_NS), most_ns);
	}
}

void sliced_begin(struct arbiter *a)
{
	for (int i = 0; i < ARBITER_MAX_TENANTS; i++) {
		a->tenant[i].credit_ns = 0;
		a->tenant[i].is_ahead = a->tenant[i].is_over_cap = false;
	}
}

/* For so long it is held at most: by as much as a step of it takes more of the GPU than its share, and a quarter more. */
static double hold_most_ns(const struct arbiter *a, const struct tenant *t)
{
	double step_ns = short_step_ns(a, t, STEP_KEEPS);
	double more_ns = step_ns / due_part(a, t) - step_ns / t->served_part;

	return step_ns > 0 ? HOLD_PART * fmax(more_ns, AHEAD_NS) : INFINITY;
}

static bool is_ahead(const struct arbiter *a, const struct tenant *t)
{
	double step_ns = short_step_ns(a, t, STEP_KEEPS);

	if (t->is_ahead)
		return t->credit_ns < -DEBT_NS ||
		       (t->credit_ns < -AHEAD_LEFT_NS &&
			(double)(a->clock - t->ahead_at) < hold_most_ns(a, t));
	return t->credit_ns < -AHEAD_NS && t->charged_ns - t->charged_then_ns >= step_ns / 2;
}

/* A tenant that is not ahead wants the GPU: of those that do, at least one is not. */
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
 * It has had more than its cap allows. A program with short steps is held where one of them ends, or once it is far above; then
 * until it is even.
 */
static bool is_over_cap(const struct arbiter *a, const struct tenant *t)
{
	double most_ns = !has_short_step(a, t) ? AHEAD_NS : t->running ? DEBT_NS : 0;

	return is_capped(t) && !t->paused && t->tokens_ns < (t->is_over_cap ? 0 : -most_ns);
}

void sliced_mark(struct arbiter *a)
{
	for (int i = 0; i < a->active_count; i++)
		a->tenant[a->active[i]].is_over_cap = is_over_cap(a, &a->tenant[a->active[i]]);
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];
		bool was_ahead = t->is_ahead;

		t->is_ahead = others_want(a, t) && is_ahead(a, t);
		/* What it has in flight runs on. */
		if (t->running || !was_ahead)
			t->ahead_at = a->clock;
		if (was_ahead && !t->is_ahead)
			t->charged_then_ns = t->charged_ns;
	}
}

bool sliced_wants_sync_point(const struct arbiter *a, const struct tenant *t)
{
	return a->mode == ARBITER_SLICED && has_short_step(a, t);
}

bool sliced_is_held(const struct arbiter *a, const struct tenant *t)
{
	if (t->is_ahead || t->is_over_cap)
		return true;
	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *other = &a->tenant[a->active[i]];

		/* Of a higher priority, and with a budget for it. */
		if (other->urgent && !other->is_ahead && other->share.priority > t->share.priority)
			return true;
	}
	return false;
}

uint64_t sliced_next_look_ns(const struct arbiter *a)
{
	double next_ns = (double)a->config.poll_free_ns;

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];

		if (t->is_ahead)
			next_ns = fmin(next_ns, (-AHEAD_LEFT_NS - t->credit_ns) / due_part(a, t));
		if (t->is_over_cap)
			next_ns = fmin(next_ns, -100 * t->tokens_ns / t->share.limit_pct);
	}
	return (uint64_t)fmax(next_ns, (double)a->config.poll_drain_ns);
}
