#include "policy/space/space.h"

#include <stddef.h>

#define FADE_NS 250e6 /* time constant of the sums */
#define KNOWN_NS 20e6 /* of work in flight, from which on it is told whether it is slowed */
#define USE_KNOWN_NS \
	2e6 /* of work begun, from which on a use is; until then it may be all of the card */
#define LEARNS_PART 0.1 /* of what is told is untried: of more, lengths are about to change ... */
#define LEARNS_AGAIN_PART 0.25 /* ... and of so much where they were known */
#define TOLD_MOST 50.0         /* for a nanosecond of work */
#define DONE_CREDIT_NS 200e6   /* what ends at once was begun so long ago at most */
#define OVERLAPS 1.25 /* times the time: streams at the same time, or lengths that are wrong */
#define SLOWED 0.9    /* of the speed alone: less is somebody's doing */
#define USE_LEFT 0.95 /* of what it could use, to one whose part is larger */
#define FILL_LEAST 1e-3
#define TOKENS_LEAST 0.1 /* for work: of copies alone nothing would be left for a kernel */
#define LEAST_TARGET 1e-4
#define FLOOR_DEBT_NS 20e6  /* a long kernel counts, all that was lent does not, ... */
#define TRIAL_DEBT_NS 500e6 /* ... and what others were held for does */
#define FLOOR_PART 0.97     /* what the card holds is not known better */
#define SLACK 0.1           /* of its target: may be lacked by who was promised nothing */
#define GIVES_LOOK_NS 40e6  /* how long the clock is watched for ... */
#define GIVES_STEP 0.5      /* ... so much of what it was off ... */
#define GIVES_OFF_MOST 0.5  /* ... and no more than that at once */
#define GIVES_BACK 0.02     /* where that says nothing */
#define GIVES_LEAST 0.05
#define GIVES_MOST 2.0
#define FIRST_AHEAD 10.0 /* times SPACE_AHEAD_NS: who comes first by its priority */
#define UNTRIED 0.05     /* of the work: more is worth a trial */
#define AHEAD_MAX_NS 1e9 /* nobody is held for more than that of debt */
#define STUCK_MIN_NS UINT64_C(50000000)
#define STUCK_MAX_NS UINT64_C(1000000000)
#define STEP_MAX_NS UINT64_C(1000000000) /* no counter goes further in one look */
#define BELIEF_MAX_NS 1e9

static double min_double(double a, double b)
{
	return a < b ? a : b;
}

static double max_double(double a, double b)
{
	return a > b ? a : b;
}

/* ---- what was seen ---- */

static double kept(uint64_t dt_ns)
{
	return 1 / (1 + (double)dt_ns / FADE_NS);
}

static void fade(struct space_sums *s, uint64_t dt_ns)
{
	double keep = kept(dt_ns);

	s->paid_ns *= keep;
	s->work_ns *= keep;
	s->untried_ns *= keep;
	s->pause_ns *= keep;
	s->begun_ns *= keep;
	s->done_ns *= keep;
	s->busy_ns *= keep;
}

/* How far a counter went on, not further than may be. */
static uint64_t progress(uint64_t *last, uint64_t now, uint64_t most)
{
	uint64_t step = now > *last ? now - *last : 0;

	*last = now;
	return step < most ? step : most;
}

/*
 * Work that has ended since the last look: what was begun less what is in flight, both predictions. A launch that is just
 * being counted is in one of them alone, so this goes back and forth, and only where it was never before is progress.
 */
static uint64_t done_since(struct space_member *m, const struct space_seen *seen)
{
	uint64_t done_ns = seen->work_ns > seen->inflight_ns ? seen->work_ns - seen->inflight_ns : 0;

	/* Another count, which began anew. */
	if (seen->work_ns < m->done_ns)
		m->done_ns = done_ns;
	return done_ns > m->done_ns ? progress(&m->done_ns, done_ns, STEP_MAX_NS) : 0;
}

static void see_presence(struct space_member *m, const struct space_seen *seen, uint64_t now_ns)
{
	if (!seen->is_barred && (seen->works || seen->waits)) {
		if (!m->wanted_at || now_ns - m->wanted_at >= SPACE_AWAY_NS)
			m->came_at = now_ns;
		m->wanted_at = now_ns;
	}
	m->is_present = !seen->is_barred && !seen->is_spent && m->wanted_at &&
			now_ns - m->wanted_at < SPACE_PAUSE_NS;
}

/* At work, but nothing was begun and nothing has ended for much longer than was said. */
static bool is_stuck(const struct space_member *m, const struct space_seen *seen, uint64_t now_ns)
{
	uint64_t patience = seen->inflight_ns < STUCK_MAX_NS / 4 ? 4 * seen->inflight_ns
								 : STUCK_MAX_NS;

	if (patience < STUCK_MIN_NS)
		patience = STUCK_MIN_NS;
	return seen->works && now_ns - m->moved_at > patience;
}

/* Of the card's SMs, what its processes can use. */
static double whole_of(const struct space_member *m)
{
	return m->part > 0 ? m->part : 1;
}

/* The part of the card that its work fills while it runs, by its grids. */
static double grids_of(const struct space_sums *s)
{
	return s->work_ns > 0 ? min_double(s->paid_ns / s->work_ns, 1) : 1;
}

/* SM-time that a nanosecond of its work takes up: less than one where others find room beside it. */
static double fill_of(const struct space_member *m)
{
	return max_double(min_double(grids_of(&m->sums) / whole_of(m), 1), FILL_LEAST);
}

double space_member_part(const struct space_member *m)
{
	return max_double(whole_of(m), grids_of(&m->sums));
}

bool space_member_is_judged(const struct space_member *m)
{
	return space_speed_is_judged(&m->speed);
}

static void see_learned(struct space_member *m)
{
	const struct space_sums *s = &m->sums;

	if (s->work_ns >= USE_KNOWN_NS)
		m->is_learned = s->untried_ns <=
				(m->is_learned ? LEARNS_AGAIN_PART : LEARNS_PART) * s->work_ns;
}

/* What it was charged until now, it was charged by another measure: it goes on from where the one is that has had least. */
static void start_anew(struct space_member *m)
{
	m->vtime = 0;
	m->floor_ns = 0;
}

static void see_speed(struct space_member *m, const struct space_seen *seen, double done_ns,
		      double begun_ns, uint64_t now_ns, uint64_t dt_ns)
{
	struct space_speed_seen look = { .is_tried = seen->is_tried,
					 .learns = !m->is_learned,
					 .works = seen->works,
					 .done_ns = done_ns,
					 .begun_ns = begun_ns,
					 .rests = seen->rests != m->rests };

	m->rests = seen->rests;
	if (space_speed_see(&m->speed, &look, now_ns, dt_ns))
		start_anew(m);
}

/* No more than the time that passed. */
static double believe(struct space_member *m, double told_ns, uint64_t dt_ns)
{
	double paid_ns;

	m->belief_ns += whole_of(m) * (double)dt_ns;
	if (m->belief_ns > BELIEF_MAX_NS || !m->is_known)
		m->belief_ns = BELIEF_MAX_NS;
	paid_ns = min_double(told_ns, m->belief_ns);
	m->belief_ns -= paid_ns;
	return paid_ns;
}

/* Short ones are in its speed. */
static void see_pause(struct space_member *m, const struct space_seen *seen, uint64_t dt_ns)
{
	double before_ns = m->rest_ns;

	if (seen->works || seen->waits || !m->is_present) {
		m->rest_ns = 0;
		return;
	}
	m->rest_ns += (double)dt_ns;
	if (m->rest_ns >= SPACE_SPEED_REST_NS)
		m->sums.pause_ns += before_ns < SPACE_SPEED_REST_NS ? m->rest_ns : (double)dt_ns;
}

void space_member_see(struct space_member *m, const struct space_seen *seen, uint64_t now_ns,
		      uint64_t dt_ns)
{
	uint64_t paid = progress(&m->paid_ns, seen->paid_ns, STEP_MAX_NS);
	uint64_t work = progress(&m->work_ns, seen->work_ns, STEP_MAX_NS);
	uint64_t done = done_since(m, seen);
	uint64_t untried = progress(&m->untried_ns, seen->untried_ns, work);
	struct space_sums *s = &m->sums;
	bool was_working = m->works;
	double of_told = whole_of(m) / space_speed(&m->speed);

	m->is_known = m->is_known && seen->is_paced;
	m->works = seen->works;
	m->is_tried = seen->is_tried;
	if (!m->is_known)
		paid = work = untried = done = 0;
	m->begun_ns = believe(m, (double)work * of_told, dt_ns);
	/* Who waits here is ours to let go. */
	if (work || done || seen->waits || !seen->works || !m->is_known)
		m->moved_at = now_ns;
	m->is_known = seen->is_paced;
	/* Of work that was not paid for nothing is known but its length. */
	m->owed_ns = seen->is_paced ? 0
				    : min_double((double)seen->inflight_ns, AHEAD_MAX_NS) * of_told;
	if (was_working || seen->works)
		m->done_credit_ns = min_double(m->done_credit_ns + (double)dt_ns, DONE_CREDIT_NS);
	m->done_alone_ns = min_double((double)done / space_speed(&m->speed), m->done_credit_ns);
	m->done_credit_ns -= m->done_alone_ns;
	if (m->is_present)
		fade(s, dt_ns);
	see_presence(m, seen, now_ns);
	if (is_stuck(m, seen, now_ns))
		m->is_present = false;
	s->paid_ns += (double)paid;
	s->work_ns += (double)work;
	s->untried_ns += (double)untried;
	s->begun_ns += m->begun_ns;
	s->done_ns += (double)done;
	if (seen->works)
		s->busy_ns += (double)dt_ns;
	see_pause(m, seen, dt_ns);
	m->filled_ns = m->begun_ns * fill_of(m);
	see_learned(m);
	see_speed(m, seen, (double)done, (double)work, now_ns, dt_ns);
	if (m->target > 0)
		m->vtime += m->begun_ns / m->target;
}

uint64_t space_member_tokens(const struct space_member *m, uint64_t ns)
{
	const struct space_sums *s = &m->sums;
	double tokens = s->begun_ns >= USE_KNOWN_NS ? s->paid_ns / s->begun_ns : 1;

	return (uint64_t)((double)ns * min_double(max_double(tokens, TOKENS_LEAST), TOLD_MOST));
}

uint64_t space_member_told_ns(const struct space_member *m, uint64_t work_ns)
{
	return (uint64_t)((double)work_ns * max_double(space_speed_so_far(&m->speed), 1));
}

uint64_t space_member_work_ns(const struct space_member *m, uint64_t told_ns)
{
	return (uint64_t)((double)told_ns / max_double(space_speed(&m->speed), 1));
}

bool space_member_asks_for_trial(const struct space_member *m, bool is_used, uint64_t now_ns)
{
	const struct space_sums *s = &m->sums;

	/* Lengths are learned from a part of what runs: of many kinds some are always untried. */
	return space_speed_wants_trials(&m->speed, s->untried_ns > UNTRIED * s->work_ns) ||
	       (is_used && space_speed_is_stale(&m->speed, now_ns));
}

/* ---- what that means ---- */

static bool is_slowed(const struct space_member *m)
{
	const struct space_sums *s = &m->sums;

	return s->busy_ns >= KNOWN_NS && s->done_ns < SLOWED * space_speed(&m->speed) * s->busy_ns;
}

/* What it would have alone. */
static double use_of(const struct space_member *m)
{
	const struct space_sums *s = &m->sums;
	double takes_ns = s->work_ns / space_speed(&m->speed);
	bool is_unclear = !space_speed_is_known(&m->speed) && s->done_ns > OVERLAPS * s->busy_ns;

	if (s->work_ns < USE_KNOWN_NS || is_unclear)
		return whole_of(m);
	return whole_of(m) * takes_ns / (takes_ns + s->pause_ns);
}

/* Rather than by its cap. */
static bool is_use_limited(const struct space_member *m)
{
	return m->limit >= 1 || use_of(m) < m->limit;
}

static double most_of(const struct space_member *m)
{
	return max_double(min_double(use_of(m), m->limit), LEAST_TARGET);
}

/*
 * Fills in `water`, SM-time, by weight, none above what it can use: those that are below what they would get first.
 * What one has of it by its work is less where that fills but a part of the SMs.
 */
static void fill_targets(struct space_member *const *m, size_t count, double water)
{
	double weights = 0;
	bool again = true;

	for (size_t i = 0; i < count; i++) {
		m[i]->target = 0;
		if (m[i]->is_present)
			weights += m[i]->weight * fill_of(m[i]);
	}
	while (again) {
		again = false;
		for (size_t i = 0; i < count; i++) {
			double most;

			if (!m[i]->is_present || m[i]->target > 0)
				continue;
			most = most_of(m[i]);
			if (most * weights > water * m[i]->weight)
				continue;
			m[i]->target = is_use_limited(m[i]) ? USE_LEFT * most : most;
			water = max_double(water - m[i]->target * fill_of(m[i]), 0);
			weights -= m[i]->weight * fill_of(m[i]);
			again = true;
		}
	}
	for (size_t i = 0; i < count; i++)
		if (m[i]->is_present && m[i]->target <= 0)
			m[i]->target = max_double(water * m[i]->weight / weights, LEAST_TARGET);
}

static void learn_capacity(struct space *space, struct space_member *const *m, size_t count,
			   uint64_t dt_ns)
{
	double filled_ns = 0, wanted = 0;
	int working = 0;

	for (size_t i = 0; i < count; i++) {
		filled_ns += m[i]->filled_ns;
		if (!m[i]->works)
			continue;
		/* Whatever its grids say: who is slowed finds the card full. */
		wanted += m[i]->is_slowed ? 1 : fill_of(m[i]) * whole_of(m[i]);
		working++;
	}
	if (working < 2)
		return;
	space->filled_ns = space->filled_ns * kept(dt_ns) + filled_ns;
	space->wanted_ns = space->wanted_ns * kept(dt_ns) + min_double(wanted, 1) * (double)dt_ns;
}

/* What the card holds, to keep a promise by: what came out while its members were in each other's way. */
static void measure(struct space *space, struct space_member *const *m, size_t count)
{
	double uses = 0, limits = 0;
	bool any_slowed = false;

	space->present = 0;
	for (size_t i = 0; i < count; i++) {
		m[i]->is_slowed = m[i]->is_present && is_slowed(m[i]);
		if (!m[i]->is_present)
			continue;
		space->present++;
		uses += most_of(m[i]) * fill_of(m[i]);
		limits += m[i]->limit;
		any_slowed |= m[i]->is_slowed;
	}
	/* What sums of percent leave is no reason to hold anybody. */
	space->is_crowded = space->present > 1 && limits > 1 + 1e-6;
	space->is_scarce = space->is_crowded && (uses > 1 || any_slowed);
	space->holds = 1;
	if (any_slowed && space->wanted_ns >= KNOWN_NS)
		space->holds = max_double(min_double(space->filled_ns / space->wanted_ns, 1),
					  FILL_LEAST);
}

/* Whether the one that has had least uses less than its part by weight of what came out: no other target is too high for it then. */
static bool has_least_enough(struct space_member *const *m, size_t count, double came_out)
{
	const struct space_member *least = NULL;
	double weights = 0;

	for (size_t i = 0; i < count; i++) {
		if (!m[i]->is_present)
			continue;
		weights += m[i]->weight;
		if (m[i]->target > 0 && (!least || m[i]->vtime < least->vtime))
			least = m[i];
	}
	return !least ||
	       least->target * fill_of(least) * weights <= FLOOR_PART * came_out * least->weight;
}

/*
 * Who has had least is never held, so the clock goes as fast as the hardware serves that one. If that is slower than time, targets add up
 * to more than there is: those that could use all would have the same target, whatever their weights. Too low ones
 * would hold who uses little. What came out in sum says less, since some of it was held.
 */
static void correct_fill(struct space *space, struct space_member *const *m, size_t count,
			 double went_ns, uint64_t dt_ns)
{
	double off;

	if (space->gives <= 0 || space->present < 2)
		space->gives = 1;
	if (space->is_trial)
		return;
	if (!space->is_scarce || space->while_ns >= GIVES_LOOK_NS)
		space->went_ns = space->while_ns = space->came_ns = 0;
	/* Nobody is held: the clock says nothing. */
	if (!space->is_scarce)
		return;
	space->went_ns += went_ns;
	space->while_ns += (double)dt_ns;
	for (size_t i = 0; i < count; i++)
		space->came_ns += m[i]->is_present ? m[i]->filled_ns : 0;
	if (space->while_ns < GIVES_LOOK_NS)
		return;
	off = space->went_ns / space->while_ns - 1;
	if (off < 0 && has_least_enough(m, count, space->came_ns / space->while_ns))
		off = min_double(1 - space->gives, GIVES_BACK);
	off = min_double(max_double(off, -GIVES_OFF_MOST), GIVES_OFF_MOST);
	space->gives *= 1 + GIVES_STEP * off;
	space->gives = min_double(max_double(space->gives, GIVES_LEAST), GIVES_MOST);
}

/* Who lacks a little of what nobody promised it, lacks it for good. */
static void forgive(struct space_member *const *m, size_t count, uint64_t dt_ns)
{
	double most = 0;

	for (size_t i = 0; i < count; i++)
		if (m[i]->is_present && m[i]->target > 0)
			most = max_double(most, m[i]->vtime);
	for (size_t i = 0; i < count; i++)
		if (m[i]->is_present && m[i]->target > 0 && !m[i]->is_promised)
			m[i]->vtime = min_double(m[i]->vtime + SLACK * (double)dt_ns, most);
}

/* By who was there before, with a target; who comes begins at the least of them. */
static void set_clock(struct space *space, struct space_member *const *m, size_t count,
		      uint64_t dt_ns)
{
	double least = 0;
	bool any = false;

	forgive(m, count, dt_ns);
	for (size_t i = 0; i < count; i++) {
		if (!m[i]->is_present || m[i]->target <= 0)
			continue;
		if (!any || m[i]->vtime < least)
			least = m[i]->vtime;
		any = true;
	}
	if (any && least > space->vclock)
		space->vclock = least;
	for (size_t i = 0; i < count; i++) {
		double vtime = m[i]->vtime;

		if (!m[i]->is_present || !space->is_scarce)
			vtime = space->vclock;
		vtime = max_double(vtime, space->vclock);
		m[i]->vtime = min_double(vtime, space->vclock + AHEAD_MAX_NS);
	}
}

/* What was begun unpaid, alone, counts from here on: or it would be on top of the first grant. */
static void count_owed(struct space *space, struct space_member *const *m, size_t count)
{
	for (size_t i = 0; i < count && space->is_scarce; i++) {
		double owed_ns = m[i]->owed_ns;

		m[i]->owed_ns = 0;
		if (!m[i]->is_present || owed_ns <= 0)
			continue;
		m[i]->vtime += min_double(owed_ns / m[i]->target, AHEAD_MAX_NS);
		m[i]->floor_ns -= owed_ns;
		space->filled_ns += owed_ns * fill_of(m[i]);
	}
}

/*
 * How far below nothing a floor may be that would be `full` if nothing were begun. Who ran alone to be timed pays for it at once: at
 * its floor it would for ten seconds and more, as that is less than its part of a card that does more than one's work.
 */
static double floor_least(const struct space_member *m, double full)
{
	return m->is_tried ? -TRIAL_DEBT_NS : min_double(full, -FLOOR_DEBT_NS);
}

/* Fills the floors for dt_ns: up to what it is in SPACE_AHEAD_NS. What was had beyond, lent, is soon forgiven. */
static void fill_floors(const struct space *space, struct space_member *const *m, size_t count,
			uint64_t dt_ns)
{
	double weights = 0, filled = 0, holds;

	for (size_t i = 0; i < count; i++) {
		weights += m[i]->is_present ? m[i]->weight : 0;
		filled += m[i]->is_present ? m[i]->weight * fill_of(m[i]) : 0;
	}
	/* Of work: more than SM-time where that leaves room. */
	holds = filled > 0 ? min_double(space->holds * weights / filled, 1) : 0;
	for (size_t i = 0; i < count; i++) {
		double rate = m[i]->is_present ? FLOOR_PART * holds * m[i]->weight / weights : 0;
		double most = rate * (double)SPACE_AHEAD_NS;
		double full = m[i]->floor_ns + rate * (double)dt_ns;
		double now = min_double(full - m[i]->begun_ns, most);

		m[i]->floor_ns = space->is_scarce ? max_double(now, floor_least(m[i], full)) : 0;
	}
}

static uint64_t allowance_of(const struct space *space, const struct space_member *m)
{
	double most = (m->comes_first ? FIRST_AHEAD : 1) * (double)SPACE_AHEAD_NS;
	double ahead = m->vtime - space->vclock, left;

	if (!m->is_present || !space->is_scarce)
		return SPACE_PLENTY_NS;
	/* Whom the others wait for is not to wait for a look. */
	left = ahead <= 0 ? max_double((double)SPACE_LEAST_NS, most) : most - ahead;
	left = max_double(left * m->target, m->floor_ns);
	return left > 0 ? (uint64_t)left : 0;
}

void space_set_allowances(struct space *space, struct space_member *const *m, size_t count,
			  uint64_t dt_ns)
{
	double clock = space->vclock;

	learn_capacity(space, m, count, dt_ns);
	measure(space, m, count);
	/* By the targets that the work was counted by. */
	set_clock(space, m, count, dt_ns);
	correct_fill(space, m, count, space->vclock - clock, dt_ns);
	fill_targets(m, count, space->gives);
	count_owed(space, m, count);
	fill_floors(space, m, count, dt_ns);
	for (size_t i = 0; i < count; i++)
		m[i]->allowance_ns = allowance_of(space, m[i]);
}
