#include <math.h>

#include "policy/lease/arbiter_inside.h"

/*
 * Most tokens needed for a lease beside other tenants. A tenant that was absent (arbiter.h) keeps this many, so that it need
 * not wait for tokens when it returns.
 */
#define SLICE_MAX_NS 10000000
/* largest part of a step's length that may be charged for the pause after the step */
#define PAUSE_PART (1.0 / 16)

double charge_bucket_ns(const struct arbiter *a, const struct tenant *t)
{
	return t->share.limit_pct / 100.0 * (double)a->config.window_ns;
}

bool charge_streams(const struct arbiter *a, const struct tenant *t)
{
	double most_ns = (double)a->config.step_most_ns;

	return a->config.policy == ARBITER_POLICY_LEASE && most_ns > 0 && turn_step_ns(a, t) <= 0 &&
	       t->charged_ns - t->charged_at_pause_ns >= most_ns;
}

double charge_long_slice_ns(const struct arbiter *a, const struct tenant *t)
{
	double most_ns = fmin((double)a->config.cap_slice_most_ns, charge_bucket_ns(a, t));

	return fmax((double)a->config.cap_slice_ns, most_ns);
}

uint64_t charge_alone_slice_ns(const struct arbiter *a, const struct tenant *t)
{
	return t->has_long_slices ? (uint64_t)charge_long_slice_ns(a, t) : a->config.cap_slice_ns;
}

uint64_t charge_alone_debt_ns(const struct arbiter *a, const struct tenant *t)
{
	return a->active_count > 1 ? 0 : (charge_alone_slice_ns(a, t) - a->config.cap_slice_ns) / 2;
}

double charge_tokens_needed(const struct arbiter *a, const struct tenant *t)
{
	uint64_t slice_ns = a->active_count > 1
				    ? min_u64(a->quantum_ns / 2, SLICE_MAX_NS)
				    : charge_alone_slice_ns(a, t) - charge_alone_debt_ns(a, t);

	return fmin((double)slice_ns, charge_bucket_ns(a, t));
}

double charge_tokens_kept(const struct arbiter *a, const struct tenant *t)
{
	return fmin(SLICE_MAX_NS, charge_bucket_ns(a, t));
}

/* The most tokens of an idle tenant: those of a pause between two training steps, or enough for a lease if that is more. */
static double tokens_of_pause(const struct arbiter *a, const struct tenant *t)
{
	double pause_ns = t->share.limit_pct / 100.0 * (double)a->config.idle_window_ns;

	return fmax(fmax(charge_tokens_kept(a, t), charge_tokens_needed(a, t)),
		    fmin(pause_ns, charge_bucket_ns(a, t)));
}

void charge_fill_tokens(struct arbiter *a, struct tenant *t)
{
	double filled = t->tokens_ns +
			t->share.limit_pct / 100.0 * (double)(a->clock - t->filled_at);
	double most = charge_bucket_ns(a, t);

	/*
	 * A waiting tenant saves up tokens. An idle tenant keeps the tokens of a pause between two steps; after a longer pause,
	 * only enough for a lease. With a full bucket after each pause, it would visibly exceed its cap.
	 */
	if ((!t->demand && !t->running) || t->arrived) {
		double keeps = charge_tokens_kept(a, t);

		/*
		 * A tenant that was active before filled_at has been idle for less than free_after_ns. It keeps the tokens that
		 * it gathers in the pause between two training steps, or all its tokens if they are more.
		 */
		if (t->active && t->filled_at > t->active_since)
			keeps = fmax(tokens_of_pause(a, t), t->tokens_ns);
		most = fmin(most, keeps);
	}
	t->tokens_ns = fmin(filled, most);
	t->filled_at = a->clock;
}

/* Also takes the amount from the tenant's tokens and budget. A negative amount gives time back. */
static void add_charge(struct arbiter *a, struct tenant *t, double amount_ns)
{
	double weight = order_weight(a, t);
	double debt_max = (double)a->config.debt_max_ns;

	t->charged_ns += amount_ns;
	if (t->charged_ns > t->charged_peak_ns)
		t->charged_peak_ns = t->charged_ns;
	t->tokens_ns -= amount_ns;
	if (t->tokens_ns < -debt_max)
		t->tokens_ns = -debt_max;
	else if (t->tokens_ns > charge_bucket_ns(a, t))
		t->tokens_ns = charge_bucket_ns(a, t);
	priority_charge(a, t, amount_ns);
	t->vtime += amount_ns / weight;
	if (t->overrunning && t->vtime > a->vclock + debt_max / weight)
		t->vtime = a->vclock + debt_max / weight;
}

void charge_begin(struct tenant *t)
{
	t->sampled_ns = t->wall_ns = t->claimed_ns = 0;
	t->uncharged_ns = 0;
	t->overlapped = false;
}

void charge_settle(struct arbiter *a, struct tenant *t, uint64_t last_dt_ns)
{
	if (!t->overlapped) {
		double due = t->claimed_ns;
		double least = t->sampled_ns - (double)(last_dt_ns + a->config.report_lag_ns);

		if (due < least)
			due = least;
		if (due > t->wall_ns)
			due = t->wall_ns;
		due = fmax(due - t->uncharged_ns, 0);
		add_charge(a, t, due - t->sampled_ns);
	}
	charge_begin(t);
}

void charge_unused_lease(struct arbiter *a, struct tenant *t)
{
	/* The lease's length, plus depth_ns for work that may run after the lease, plus depth_ns for other tenants' delay. */
	double least = (double)(a->clock - a->granted_at + 2 * a->terms.depth_ns);

	if (!a->worked && t->sampled_ns < least) {
		add_charge(a, t, least - t->sampled_ns);
		t->overlapped = true;
	}
}

/*
 * Natively, the GPU also idles for a moment after each step. So this pause counts as a part of the step: then a cap of 50 %
 * makes a step take twice as long. As in switch_cost_ns(), the time that the GPU needs to begin again is charged to no tenant.
 * Pauses longer than ARBITER_PAUSE_NS on average leave time to other tenants, so they cost nothing. The charge is at most
 * idle_ns, because one process may pause while another works.
 */
void charge_pauses(struct arbiter *a, struct tenant *t, uint32_t steps)
{
	double pause_ns = fmax(t->steps.gap_ns - (double)a->config.switch_ns, 0);
	double most_ns = PAUSE_PART * steps_length_ns(&t->steps, INFINITY);

	if (is_capped(t) && a->config.policy == ARBITER_POLICY_LEASE && a->mode == ARBITER_LEASES &&
	    a->active_count == 1 && !a->gang_count && t->steps.gap_ns <= ARBITER_PAUSE_NS)
		add_charge(a, t, fmin(steps * fmin(pause_ns, most_ns), t->idle_ns));
	t->idle_ns = 0;
}

/* For how much of the last dt_ns the present work ran: at most poll_lease_ns if a doorbell reported its begin. */
static double ran_of(const struct arbiter *a, const struct tenant *t, uint64_t dt_ns)
{
	if (t->began && t->seen.has_doorbell)
		return (double)min_u64(dt_ns, a->config.poll_lease_ns);
	return (double)dt_ns;
}

/* `parts` tenants ran in dt_ns. */
static void charge_holder(struct arbiter *a, struct tenant *t, uint64_t dt_ns, bool contended,
			  int parts)
{
	bool worked = t->running || t->launched;
	double amount = 0;

	if (!a->worked && t->seen.busy)
		quantum_watch_start(a, t);
	a->worked = a->worked || worked;
	if (!a->started) {
		/*
		 * The work began at an unknown moment within dt_ns: charge half of that time until charge_settle() knows more.
		 */
		if (worked)
			amount = (double)dt_ns / 2;
		a->started = worked ||
			     (contended && a->clock - a->granted_at >= a->config.start_grace_ns);
	} else if (contended || t->seen.busy) {
		amount = contended ? (double)dt_ns : ran_of(a, t, dt_ns);
	}
	if (a->started)
		a->ran_ns += dt_ns;
	if (parts > 1)
		t->overlapped = true;
	t->sampled_ns += amount;
	add_charge(a, t, amount / parts);
	if (!contended && !t->running)
		charge_settle(a, t, dt_ns);
}

static void charge_leases(struct arbiter *a, uint64_t dt_ns)
{
	int running = 0, wanting = 0;

	for (int i = 0; i < a->active_count; i++) {
		const struct tenant *t = &a->tenant[a->active[i]];

		running += t->ran || (a->active[i] == a->holder && a->started);
		wanting += t->demand || t->running;
	}
	a->wanting = wanting;
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];

		if (a->active[i] == a->holder) {
			bool contended = wanting > (t->demand || t->running);

			charge_holder(a, t, dt_ns, contended, running > 1 ? running : 1);
			continue;
		}
		/* A tenant without a lease is charged at once, so nothing is left to settle. */
		charge_begin(t);
		if (t->ran) {
			double amount = ran_of(a, t, dt_ns) / running;

			add_charge(a, t, amount);
			if (t->overrunning)
				t->overrun_ns += amount;
		}
	}
}

static void charge_sliced(struct arbiter *a, uint64_t dt_ns)
{
	a->wanting = 0;
	for (int i = 0; i < a->active_count; i++)
		a->wanting += a->tenant[a->active[i]].demand || a->tenant[a->active[i]].running;
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];
		double had_ns = sliced_served_part(a, t) * ran_of(a, t, dt_ns);

		charge_begin(t);
		if (had_ns > 0)
			add_charge(a, t, had_ns);
		sliced_count(a, t, dt_ns, had_ns);
	}
}

static void charge_free(struct arbiter *a, uint64_t dt_ns)
{
	int running = 0;

	a->wanting = 0;
	for (int i = 0; i < a->active_count; i++)
		running += a->tenant[a->active[i]].seen.busy;
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];

		if (t->seen.busy) {
			t->sampled_ns += ran_of(a, t, dt_ns);
			add_charge(a, t, ran_of(a, t, dt_ns) / running);
		} else {
			charge_settle(a, t, dt_ns);
		}
	}
}

/* If the tenant began work without permission, counts the charge since the last such begin (arbiter.h: Obedience). */
static void count_unauthorized(const struct arbiter *a, struct tenant *t)
{
	uint64_t late_until = t->held_at + a->config.drain_max_ns;

	bool is_trusted = a->clock >= a->trusted_from;

	if (!is_trusted)
		t->disobeyed_at = 0;
	/* A thread that is then held at the gate has set `launching` for a moment, so only `busy` shows that work began. */
	if (permits_launch(t->state) || t->state == LEASE_PACED || t->part.is_group ||
	    !is_trusted || a->clock <= late_until || !(t->launched || (t->began && t->seen.busy)))
		return;
	if (t->disobeyed_at > late_until)
		t->unauthorized_ns += fmax(t->charged_ns - t->charged_at_disobeyed_ns, 0);
	t->disobeyed_at = a->clock;
	t->charged_at_disobeyed_ns = t->charged_ns;
}

void charge_step(struct arbiter *a, uint64_t dt_ns)
{
	int running = 0;

	for (int i = 0; i < a->active_count; i++)
		running += a->tenant[a->active[i]].running;
	for (int i = 0; i < a->active_count; i++) {
		struct tenant *t = &a->tenant[a->active[i]];

		charge_fill_tokens(a, t);
		priority_fill(a, t);
		t->wall_ns += (double)dt_ns;
		if (!t->ran && (t->arrived || !t->seen.waiting))
			t->idle_ns += (double)dt_ns;
		t->claimed_ns += t->reported_ns;
		t->reported_ns = 0;
		if (running > 1)
			t->overlapped = true;
		if (t->seen.waiting && !permits_launch(t->state))
			t->waited_ns += dt_ns;
	}
	if (a->mode == ARBITER_LEASES)
		charge_leases(a, dt_ns);
	else if (a->mode == ARBITER_SLICED)
		charge_sliced(a, dt_ns);
	else
		charge_free(a, dt_ns);
	for (int i = 0; i < a->active_count; i++)
		count_unauthorized(a, &a->tenant[a->active[i]]);
}
