#include "policy/lease/arbiter_inside.h"

#include <limits.h>
#include <math.h>

/*
 * Once slices (arbiter.h) began, they continue while steps are shorter than slice_step_ns x STEP_KEEPS, and gaps are longer
 * than GAP_LEAST_NS / STEP_KEEPS.
 */
#define STEP_KEEPS 1.2
/*
 * Slices need gaps of at least this length between steps, in which the GPU is idle and other tenants can use it. A loop that
 * only launches and waits has much shorter gaps, a server in Python longer ones (docs/decisions/hardware-slices.md).
 */
#define GAP_LEAST_NS 3e4
/* more_ns (struct step_pace) is averaged over this many steps. A tenant pays back its lead over its share in about as many. */
#define STEPS_MEANT 16
#define HOLD_LEAST_NS 1e5 /* shorter holds are skipped */
/* After its step, a tenant that owes more than this is held even when hold_ns (struct step_pace) is over. */
#define DEBT_NS 2e7
/* A tenant without short steps is held when it is ahead of its share, or above its cap, by more than this. */
#define AHEAD_NS 1e6
#define AHEAD_LEFT_NS 5e5   /* a hold for a lead ends when the lead is less than this */
#define CAP_LEFT_NS 0       /* a hold for a cap ends when the tenant has this many tokens */
#define CREDIT_MOST_NS 50e6 /* bound of credit_ns, positive or negative */
#define SAVED_MOST_NS 5e6   /* limit of the credit that a tenant gathers while it wants nothing */
/*
 * The hardware's time slice. A process that begins work while another process runs waits this long
 * (docs/decisions/hardware-slices.md). The arbiter counts one such wait per tenant, not one per process.
 */
#define TIME_SLICE_NS 2100000

/* 0 if unknown, or more than `keeps` x slice_step_ns. */
static double short_step_ns(const struct arbiter *a, const struct tenant *t, double keeps)
{
	return steps_length_ns(&t->steps, keeps * (double)a->config.slice_step_ns);
}

static bool has_short_step(const struct arbiter *a, const struct tenant *t)
{
	double keeps = a->mode == ARBITER_SLICED ? STEP_KEEPS : 1;

	return short_step_ns(a, t, keeps) > 0 && keeps * t->steps.gap_ns >= GAP_LEAST_NS;
}

/*
 * With caps, slices are used if all tenants have short steps, or if a tenant with short steps outranks all tenants that have
 * none. Otherwise turns are better: they keep the caps of trainings more exactly and lose less work.
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

/* A stopped tenant cannot clear its flags, so they do not count. */
static bool runs(const struct tenant *t)
{
	return t->ran && !t->seen.stopped;
}

static bool wants(const struct tenant *t)
{
	return t->demand || runs(t);
}

/* True if the tenant has wanted nothing for longer than a pause between steps. */
static bool is_idle(const struct arbiter *a, const struct tenant *t)
{
	return !wants(t) && a->clock - t->worked_at > TIME_SLICE_NS;
}

/* Whether the tenant counts when GPU time is divided. While a tenant in debt pauses, it pays the debt back. */
static bool takes_part(const struct tenant *t)
{
	return wants(t) || t->credit_ns < 0;
}

/* The tenant's fraction of GPU time, by weight among the tenants that take part, if it wants the GPU now. */
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

/* Returns the running tenant that the hardware serves next; NULL if the hardware already serves a tenant, or none runs. */
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
 * Sets the delay after each step: more_ns plus a portion of lead_ns, so that all steps are slowed about equally. more_ns: how
 * much longer a usual step must be to keep within the tenant's share or cap. lead_ns: the GPU time by which the tenant is
 * ahead.
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

	/*
	 * A step during which other tenants were held for this one is shorter than usual, so step.share does not learn from it.
	 */
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

/* True if the tenant must still be held after its step, or its debt exceeds DEBT_NS. left_ns: credit or tokens. */
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
	return t->tokens_ns < (t->is_over_cap ? CAP_LEFT_NS : -AHEAD_NS);
}

/*
 * True if another tenant wants the GPU and is neither ahead nor above its cap. Only then is a tenant held for being ahead of
 * its share, so such a hold leaves the GPU to that other tenant. (A hold for a cap may leave the GPU idle.)
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

/* Credits grow even while no tenant runs. Otherwise a tenant would stay held if those for which it is held never launch. */
void sliced_count(struct arbiter *a, struct tenant *t, uint64_t dt_ns, double had_ns)
{
	/* A capped tenant is not owed the time that its cap keeps from it. */
	double most_ns = is_capped(t) ? 0 : wants(t) ? CREDIT_MOST_NS : fmax(t->credit_ns, 0);
	/* While others are held for this tenant and it has no work on the GPU, all GPU time counts as its own. */
	double used_ns = t->comes_first && !runs(t) && others_want(a, t) ? (double)dt_ns : had_ns;
	double credit_ns = t->credit_ns + due_part(a, t) * (double)dt_ns - used_ns;

	if (is_idle(a, t))
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
		/* A tenant comes first once its credit reaches half of SAVED_MOST_NS, until the credit is spent. */
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
	/* In-flight work that outlived its drain may wait for the held launch, so let the tenant launch and pay later. */
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
		    (other->comes_first || (is_idle(a, other) && other->credit_ns >= 0)))
			return true;
	}
	return false;
}

/*
 * The time until the tenant has waited long enough. left_ns: its credit or tokens, which grow at `part` of the time. end_ns:
 * the value of left_ns at which the hold of a tenant without short steps ends.
 */
static double pace_left_ns(const struct arbiter *a, const struct tenant *t,
			   const struct step_pace *pace, double left_ns, double end_ns, double part)
{
	if (!has_short_step(a, t))
		return (end_ns - left_ns) / part;
	if (left_ns < -DEBT_NS)
		return (-DEBT_NS - left_ns) / part;
	return pace->hold_ns - (double)(a->clock - t->worked_at);
}

uint64_t sliced_next_poll_ns(const struct arbiter *a)
{
	double next_ns = (double)a->config.poll_free_ns;

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];

		if (t->is_ahead)
			next_ns = fmin(next_ns, pace_left_ns(a, t, &t->step.share, t->credit_ns,
							     -AHEAD_LEFT_NS, due_part(a, t)));
		if (t->is_over_cap)
			next_ns = fmin(next_ns, pace_left_ns(a, t, &t->step.cap, t->tokens_ns,
							     CAP_LEFT_NS, t->share.limit_pct / 100));
	}
	return (uint64_t)fmax(next_ns, (double)a->config.poll_drain_ns);
}
