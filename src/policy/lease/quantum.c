#include <math.h>

#include "policy/lease/arbiter_inside.h"

/* assumed cost of a hand-over, with the wake-up of the next holder, until it is measured */
#define HANDOVER_START_NS 300e3
/* a longer hand-over counts as this, because the holder was then busy with something else */
#define HANDOVER_MAX_NS 5e6
#define HANDOVER_FADE 16 /* leases over which the cost is averaged */
/*
 * A thread that was held at the gate has lost its lead over the GPU. The ramp is the time until the thread has the lead again:
 * 1 to 2 ms (PyTorch training), or the whole turn (launch-bound programs). RAMP_LOSS is the fraction of the ramp that counts as
 * lost. The measured ramp is RAMP_SEEN_NS too long.
 */
#define RAMP_LOSS 0.2
#define RAMP_SEEN_NS 300000
/*
 * Long slices are long leases (cap_slice_most_ns) for a capped tenant that is alone, and whose program seldom or never waits
 * for its work. It gets them once its thread lacks a lead over the GPU for more than BEHIND_MOST_NS of each lease, on average.
 * The measured time is BEHIND_SEEN_NS too long.
 */
#define BEHIND_MOST_NS 50e3
#define BEHIND_SEEN_NS 300000
/* A lease counts as having at most this many waits per length of a long slice (charge_long_slice_ns()) that it is charged. */
#define WAITS_MOST 4
/* hand-overs may take this fraction of the GPU time that caps leave unused */
#define SLACK_PART (1.0 / 3)

static struct turn_terms choose_terms(const struct arbiter *a)
{
	const struct turn_terms usual = { .quantum_ns = a->config.quantum_ns,
					  .quantum_min_ns = a->config.quantum_min_ns,
					  .depth_ns = a->config.depth_ns };

	return turn_terms_choose(&usual, &a->config.gang_turn, a->gang_count > 0);
}

void quantum_init(struct arbiter *a)
{
	a->terms = choose_terms(a);
	a->quantum_ns = a->terms.quantum_ns;
	a->handover_ns = HANDOVER_START_NS;
}

void quantum_watch_start(struct arbiter *a, const struct tenant *holder)
{
	uint64_t busy_ns = holder->seen.busy_ns - min_u64(a->busy_before, holder->seen.busy_ns);
	uint64_t passed_ns = a->clock - a->granted_at;

	a->start_ns = passed_ns - min_u64(busy_ns, passed_ns);
}

/*
 * Updates two means with the last holder's lease: the time in which its thread was not ahead of the GPU, and the number of its
 * program's waits. Sets or clears has_long_slices by them.
 */
static void choose_slices(const struct arbiter *a, struct tenant *t)
{
	double behind_ns = 0, waits = 0;
	/* A settlement may have given back more than the lease was charged. */
	double charged_ns = fmax(t->charged_ns - a->charged_before, 0);
	double slice_ns = charge_long_slice_ns(a, t);

	if (t->seen.waits > a->waits_before)
		waits = (double)(t->seen.waits - a->waits_before);
	if (t->seen.behind_ns > a->behind_before + BEHIND_SEEN_NS)
		behind_ns = (double)(t->seen.behind_ns - a->behind_before - BEHIND_SEEN_NS);
	t->behind_ns += (behind_ns - t->behind_ns) / HANDOVER_FADE;
	/* A program that saves a checkpoint waits for many copies, so one lease alone must not decide. */
	waits = fmin(waits, WAITS_MOST * charged_ns / slice_ns);
	t->lease_waits += (waits - t->lease_waits) / HANDOVER_FADE;
	t->lease_ns += (charged_ns - t->lease_ns) / HANDOVER_FADE;
	/* A program may be a server if it waits, on average, more than once in the GPU time of a long slice. */
	bool is_server = t->lease_waits * slice_ns > t->lease_ns;
	if (turn_step_ns(a, t) > 0 || is_server)
		t->has_long_slices = false;
	else if (charge_streams(a, t) && t->behind_ns > BEHIND_MOST_NS)
		t->has_long_slices = true;
}

/*
 * Learns the last holder's ramp (RAMP_LOSS) and, if another tenant wanted the next lease, the cost of a hand-over. (Otherwise
 * the device may have been idle.) The cost is the uncharged time from grant to grant, plus RAMP_LOSS times the ramp, plus any
 * start delay beyond start_grace_ns. A tenant that understates its use raises the cost and lengthens turns, up to quantum_ns.
 */
void quantum_learn(struct arbiter *a)
{
	double ramp_ns = 0;

	if (a->last_holder == NONE || !a->worked)
		return;
	struct tenant *t = &a->tenant[a->last_holder];
	if (t->overrunning)
		return;
	if (t->seen.ramp_ns > a->ramp_before + RAMP_SEEN_NS)
		ramp_ns = (double)(t->seen.ramp_ns - a->ramp_before - RAMP_SEEN_NS);
	choose_slices(a, t);
	if (!a->was_wanted)
		return;
	double lost = (double)(a->clock - a->granted_at) - (t->charged_ns - a->charged_before);
	if (a->start_ns > a->config.start_grace_ns)
		lost += (double)(a->start_ns - a->config.start_grace_ns);
	if (lost < 0)
		lost = 0;
	lost += RAMP_LOSS * ramp_ns;
	if (lost > HANDOVER_MAX_NS)
		lost = HANDOVER_MAX_NS;
	a->handover_ns += (lost - a->handover_ns) / HANDOVER_FADE;
}

static double slack(const struct arbiter *a)
{
	double left = 1;

	for (int i = 0; i < a->active_count && left > 0; i++)
		left -= a->tenant[a->active[i]].share.limit_pct / 100.0;
	return left > 0 ? left : 0;
}

void quantum_set(struct arbiter *a)
{
	double part = a->config.switch_loss + SLACK_PART * slack(a);
	double quantum = a->handover_ns, most, least;

	a->terms = choose_terms(a);
	most = (double)a->terms.quantum_ns;
	least = (double)min_u64(a->terms.quantum_min_ns, a->terms.quantum_ns);
	/* Compare before dividing, because `part` may be 0, which selects the longest quantum. */
	if (quantum >= most * part)
		quantum = most;
	else if (quantum <= least * part)
		quantum = least;
	else
		quantum /= part;
	a->quantum_ns = (uint64_t)quantum;
}
