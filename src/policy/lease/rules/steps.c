#include "policy/lease/rules/steps.h"

#include <math.h>

#define KNOWN 4 /* length_ns counts as known after more sync points than this */
#define FADE 4
/* A step counts as at most MOST x the usual length, as it may be an exception: a long prompt, or a thread without a CPU. */
#define MOST 2
/* After this much charged time without a sync point, all that was learned about steps is forgotten. */
#define OVER_NS 500e6
/*
 * Trial of depths (steps.h): each depth is measured over TRIED steps. The greater depth is used if it shortens steps by more
 * than the fraction WORTH. The next trial begins after TRIED_AGAIN steps.
 */
#define TRIED 12
#define WORTH 0.02
#define TRIED_AGAIN 1000

static void go_on(struct steps *s, enum steps_trial trial)
{
	s->trial = trial;
	s->tried = 0;
}

static void try_depth(struct steps *s, double length_ns)
{
	double *sum_ns = &s->tried_ns[s->trial == STEPS_TRY_AHEAD];

	s->tried++;
	if (s->trial == STEPS_DECIDED) {
		if (s->tried >= TRIED_AGAIN)
			go_on(s, STEPS_TRY_USUAL);
		return;
	}
	/* The first step does not count: part of it ran with the previous depth. */
	*sum_ns = s->tried == 1 ? 0 : *sum_ns + length_ns;
	if (s->tried <= TRIED)
		return;
	if (s->trial == STEPS_TRY_AHEAD)
		s->is_ahead_worth = s->tried_ns[1] < (1 - WORTH) * s->tried_ns[0];
	go_on(s, s->trial == STEPS_TRY_AHEAD ? STEPS_DECIDED : STEPS_TRY_AHEAD);
}

/* Adds a sample to the decaying mean. The second sample replaces the first, because the first step's begin was not seen. */
static void blend(const struct steps *s, double *usual_ns, double sample_ns)
{
	double most_ns = s->seen > KNOWN && *usual_ns > 0 ? MOST * *usual_ns : INFINITY;

	*usual_ns += (fmin(sample_ns, most_ns) - *usual_ns) / (s->seen > 1 ? FADE : 1);
}

static void learn_gap(struct steps *s, uint32_t more, uint64_t gap_ns)
{
	uint64_t passed_ns = gap_ns > s->gap_before_ns ? gap_ns - s->gap_before_ns : 0;

	s->gap_before_ns = gap_ns;
	blend(s, &s->gap_ns, (double)passed_ns / more);
}

void steps_observe(struct steps *s, uint32_t sync_points, uint64_t gap_ns, double charged_ns,
		   bool may_try)
{
	uint32_t more = sync_points - s->sync_points;

	if (!more) {
		if (charged_ns - s->since_ns > OVER_NS)
			s->seen = 0;
		return;
	}
	s->sync_points = sync_points;
	learn_gap(s, more, gap_ns);
	/* The charge may have fallen since the latest sync point, because charge_settle() can give time back. */
	double length_ns = charged_ns > s->since_ns ? (charged_ns - s->since_ns) / more : 0;
	s->since_ns = charged_ns;
	blend(s, &s->length_ns, length_ns);
	if (s->seen <= KNOWN)
		s->seen++;
	else if (may_try)
		try_depth(s, length_ns);
}

double steps_length_ns(const struct steps *s, double most_ns)
{
	return s->seen > KNOWN && s->length_ns <= most_ns ? s->length_ns : 0;
}

double steps_left_ns(const struct steps *s, double charged_ns, double most_ns)
{
	double length_ns = steps_length_ns(s, most_ns);
	double left_ns = s->since_ns + STEPS_LATE * length_ns + STEPS_LATE_NS - charged_ns;

	return length_ns > 0 && left_ns > 0 ? left_ns : 0;
}

bool steps_may_be_ahead(const struct steps *s, double most_ns)
{
	if (steps_length_ns(s, most_ns) <= 0 || s->trial == STEPS_TRY_USUAL)
		return false;
	return s->trial == STEPS_TRY_AHEAD || s->is_ahead_worth;
}
