#include "arbiter/space.h"

#define FADE_NS 250e6 /* time constant of the sums */
#define KNOWN_NS 20e6 /* of work in flight, from which on a speed is taken to be known */
#define USE_KNOWN_NS \
	2e6 /* of work begun, from which on a use is; until then it may be all of the card */
#define DONE_CREDIT_NS 200e6 /* what ends at once was begun so long ago at most */
#define OVERLAPS 1.25        /* of the speed alone: more is streams at the same time */
#define SLOWED 0.9           /* of the speed alone: less is somebody's doing */
#define USE_LEFT 0.95        /* of what it could use, to one whose part is larger */
#define LEAST_TARGET 1e-4
#define LEAST_CAPACITY 0.05
#define FLOOR_DEBT_NS 20e6 /* a long kernel counts, all that was lent does not */
#define FLOOR_PART 0.97    /* what the card holds is not known better */
#define SLACK 0.1          /* of its target: may be lacked by who was promised nothing */
#define UNTRIED 0.05       /* of the work: more is worth a trial */
#define AHEAD_MAX_NS 1e9   /* nobody is held for more than that of debt */
#define STUCK_MIN_NS UINT64_C(50000000)
#define STUCK_MAX_NS UINT64_C(1000000000)
#define BELIEF_MAX_NS UINT64_C(1000000000)
#define BUSY_BELIEF_MAX_NS UINT64_C(10000000)
#define TOLD_KNOWN_NS 1e6
#define TOLD_MOST 50 /* of short kernels that are timed with the events around them */

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

	s->told_ns *= keep;
	s->paid_ns *= keep;
	s->work_ns *= keep;
	s->untried_ns *= keep;
	s->done_alone_ns *= keep;
	s->busy_alone_ns *= keep;
	s->pause_ns *= keep;
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

/* Work that has ended: what was begun less what is in flight, both predictions. */
static uint64_t done_of(const struct space_seen *seen)
{
	return seen->work_ns > seen->inflight_ns ? seen->work_ns - seen->inflight_ns : 0;
}

static void see_presence(struct space_member *m, const struct space_seen *seen, uint64_t now_ns)
{
	if (!seen->is_barred && (seen->works || seen->waits))
		m->wanted_at = now_ns;
	m->is_present = !seen->is_barred && m->wanted_at && now_ns - m->wanted_at < SPACE_PAUSE_NS;
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

/* The part of the card that its work fills while it runs. */
static double part_of(const struct space_sums *s)
{
	return s->work_ns > 0 ? min_double(s->paid_ns / s->work_ns, 1) : 1;
}

/* Length of work done in the time that work was in flight: more than 1 where streams overlap. */
static double speed_alone(const struct space_member *m)
{
	const struct space_sums *s = &m->sums;
	double speed = 1;

	if (s->busy_alone_ns >= KNOWN_NS)
		speed = s->done_alone_ns / s->busy_alone_ns;
	else if (m->tried_for_ns >= KNOWN_NS && m->tried_done_ns > OVERLAPS * m->tried_for_ns)
		speed = m->tried_done_ns / m->tried_for_ns;
	return speed > 0.1 ? speed : 0.1;
}

/* The same, but for what is no more than the moment at which things were seen. */
static double overlap_alone(const struct space_member *m)
{
	return speed_alone(m) > OVERLAPS ? speed_alone(m) : 1;
}

/* Of a trial: it fades with further ones, not with the time between them. */
static void see_trial(struct space_member *m, double done_ns, uint64_t dt_ns)
{
	double keep = kept(dt_ns);

	m->tried_done_ns = m->tried_done_ns * keep + done_ns;
	m->tried_for_ns = m->tried_for_ns * keep + (double)dt_ns;
}

/* No more than the time that passed. */
static uint64_t believe(struct space_member *m, uint64_t told_ns, uint64_t dt_ns)
{
	uint64_t paid_ns;

	m->belief_ns += dt_ns;
	if (m->belief_ns > BELIEF_MAX_NS || !m->is_known)
		m->belief_ns = BELIEF_MAX_NS;
	paid_ns = told_ns < m->belief_ns ? told_ns : m->belief_ns;
	m->belief_ns -= paid_ns;
	return paid_ns;
}

/*
 * Who is held to a cap has had no more than its part of the SMs for the time with work in flight, whatever its
 * pieces were predicted to take: of short kernels that is several times too long. What is told of a long piece at its
 * begin counts while it runs.
 */
static uint64_t believe_busy(struct space_member *m, uint64_t told_ns, bool is_busy, uint64_t dt_ns)
{
	uint64_t paid_ns;

	if (!is_busy || !m->is_known) {
		m->pending_ns = m->belief_ns = 0;
		return 0;
	}
	m->pending_ns += told_ns;
	if (m->pending_ns > BELIEF_MAX_NS)
		m->pending_ns = BELIEF_MAX_NS;
	m->belief_ns += (uint64_t)((m->part > 0 ? m->part : 1) * (double)dt_ns);
	if (m->belief_ns > BUSY_BELIEF_MAX_NS)
		m->belief_ns = BUSY_BELIEF_MAX_NS;
	paid_ns = m->pending_ns < m->belief_ns ? m->pending_ns : m->belief_ns;
	m->pending_ns -= paid_ns;
	m->belief_ns -= paid_ns;
	return paid_ns;
}

uint64_t space_member_see(struct space_member *m, const struct space_seen *seen, bool others_work,
			  uint64_t now_ns, uint64_t dt_ns)
{
	uint64_t told = progress(&m->paid_ns, seen->paid_ns, BELIEF_MAX_NS), paid;
	uint64_t work = progress(&m->work_ns, seen->work_ns, BELIEF_MAX_NS);
	uint64_t done = progress(&m->done_ns, done_of(seen), BELIEF_MAX_NS);
	uint64_t untried = progress(&m->untried_ns, seen->untried_ns, work);
	struct space_sums *s = &m->sums;
	bool was_working = m->works;

	m->is_known = m->is_known && seen->is_paced;
	m->works = seen->works;
	if (!m->is_known)
		told = work = untried = done = 0;
	paid = m->limit < 1 ? believe_busy(m, told, was_working || seen->works, dt_ns)
			    : believe(m, told, dt_ns);
	/* Who waits here is ours to let go. */
	if (paid || done || seen->waits || !seen->works || !m->is_known)
		m->moved_at = now_ns;
	m->is_known = seen->is_paced;
	/* Of work that was not paid for nothing is known but its length. */
	m->owed_ns = seen->is_paced ? 0 : min_double((double)seen->inflight_ns, AHEAD_MAX_NS);
	m->begun_ns = paid;
	m->alone_ns = (double)work / overlap_alone(m);
	if (was_working || seen->works)
		m->done_credit_ns = min_double(m->done_credit_ns + (double)dt_ns, DONE_CREDIT_NS);
	m->done_alone_ns = min_double((double)done / overlap_alone(m), m->done_credit_ns);
	m->done_credit_ns -= m->done_alone_ns;
	if (m->is_present)
		fade(s, dt_ns);
	see_presence(m, seen, now_ns);
	if (is_stuck(m, seen, now_ns))
		m->is_present = false;
	if (seen->is_paced) {
		s->told_ns += (double)told;
		s->paid_ns += (double)paid;
	}
	s->work_ns += (double)work;
	s->untried_ns += (double)untried;
	s->done_ns += (double)done;
	if (seen->works)
		s->busy_ns += (double)dt_ns;
	else if (m->is_present && !seen->waits)
		s->pause_ns += (double)dt_ns;
	if (!others_work) {
		s->done_alone_ns += (double)done;
		s->busy_alone_ns += seen->works ? (double)dt_ns : 0;
	}
	if (seen->is_tried)
		see_trial(m, (double)done, dt_ns);
	if (m->target > 0)
		m->vtime += (double)paid / m->target;
	return paid;
}

/* Streams of its own overlap, and what they do alone is not known. */
static bool overlaps_unknown(const struct space_member *m)
{
	const struct space_sums *s = &m->sums;

	return s->busy_alone_ns < KNOWN_NS && m->tried_for_ns < KNOWN_NS &&
	       s->busy_ns >= KNOWN_NS && s->done_ns > OVERLAPS * s->busy_ns;
}

uint64_t space_member_tokens(const struct space_member *m, uint64_t ns)
{
	const struct space_sums *s = &m->sums;
	double ratio = s->paid_ns >= TOLD_KNOWN_NS ? s->told_ns / s->paid_ns : 1;

	return (uint64_t)((double)ns * min_double(max_double(ratio, 1), TOLD_MOST));
}

bool space_member_asks_for_trial(const struct space_member *m)
{
	const struct space_sums *s = &m->sums;

	return s->untried_ns > UNTRIED * s->work_ns || overlaps_unknown(m);
}

/* ---- what that means ---- */

static bool is_slowed(const struct space_member *m)
{
	const struct space_sums *s = &m->sums;

	return s->busy_ns >= KNOWN_NS && s->done_ns < SLOWED * speed_alone(m) * s->busy_ns;
}

/* The part of the card that it would have alone. */
static double use_of(const struct space_member *m)
{
	const struct space_sums *s = &m->sums;
	double takes_ns = s->work_ns / speed_alone(m) + s->pause_ns;

	if (s->work_ns < USE_KNOWN_NS || takes_ns <= 0 || overlaps_unknown(m))
		return 1;
	return min_double(s->paid_ns / takes_ns, 1);
}

static double most_of(const struct space_member *m)
{
	return max_double(min_double(use_of(m), m->limit), LEAST_TARGET);
}

/* Fills in `water` by weight, none above what it can use: those that are below what they would get first. */
static void fill_targets(struct space_member *const *m, size_t count, double water)
{
	double weights = 0;
	bool again = true;

	for (size_t i = 0; i < count; i++) {
		m[i]->target = 0;
		if (m[i]->is_present)
			weights += m[i]->weight;
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
			m[i]->target = most < m[i]->limit ? USE_LEFT * most : most;
			water = max_double(water - m[i]->target, 0);
			weights -= m[i]->weight;
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
	double begun_ns = 0, wanted = 0;
	int working = 0;

	for (size_t i = 0; i < count; i++) {
		begun_ns += (double)m[i]->begun_ns;
		if (m[i]->works)
			wanted += part_of(&m[i]->sums);
		working += m[i]->works;
	}
	if (working < 2)
		return;
	space->begun_ns = space->begun_ns * kept(dt_ns) + begun_ns;
	space->wanted_ns = space->wanted_ns * kept(dt_ns) + min_double(wanted, 1) * (double)dt_ns;
}

/* What the card holds: all, or what came out while its members were in each other's way. */
static double measure(struct space *space, struct space_member *const *m, size_t count)
{
	double uses = 0;
	bool any_slowed = false;

	space->present = 0;
	for (size_t i = 0; i < count; i++) {
		m[i]->is_slowed = m[i]->is_present && is_slowed(m[i]);
		if (!m[i]->is_present)
			continue;
		space->present++;
		uses += most_of(m[i]);
		any_slowed |= m[i]->is_slowed;
	}
	space->is_scarce = space->present > 1 && (uses > 1 || any_slowed);
	if (!any_slowed || space->wanted_ns < KNOWN_NS)
		return 1;
	return max_double(min_double(space->begun_ns / space->wanted_ns, 1), LEAST_CAPACITY);
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
		space->begun_ns += owed_ns;
	}
}

/* Fills the floors for dt_ns: up to what it is in SPACE_AHEAD_NS. What was had beyond, lent, is soon forgiven. */
static void fill_floors(const struct space *space, struct space_member *const *m, size_t count,
			double water, uint64_t dt_ns)
{
	double weights = 0;

	for (size_t i = 0; i < count; i++)
		weights += m[i]->is_present ? m[i]->weight : 0;
	for (size_t i = 0; i < count; i++) {
		double rate = m[i]->is_present ? FLOOR_PART * water * m[i]->weight / weights : 0;
		double most = rate * (double)SPACE_AHEAD_NS;
		double now = m[i]->floor_ns + rate * (double)dt_ns - (double)m[i]->begun_ns;

		if (!space->is_scarce)
			now = 0;
		m[i]->floor_ns = max_double(min_double(now, most), -FLOOR_DEBT_NS);
	}
}

static uint64_t allowance_of(const struct space *space, const struct space_member *m)
{
	double ahead = m->vtime - space->vclock, left;

	if (!m->is_present || !space->is_scarce)
		return SPACE_PLENTY_NS;
	/* Whom the others wait for is not to wait for a look. */
	left = ahead <= 0 ? (double)SPACE_LEAST_NS : (double)SPACE_AHEAD_NS - ahead;
	left = max_double(left * m->target, m->floor_ns);
	return left > 0 ? (uint64_t)left : 0;
}

void space_set_allowances(struct space *space, struct space_member *const *m, size_t count,
			  uint64_t dt_ns)
{
	double water;

	learn_capacity(space, m, count, dt_ns);
	water = measure(space, m, count);
	/* By the targets that the work was counted by. */
	set_clock(space, m, count, dt_ns);
	fill_targets(m, count, water);
	count_owed(space, m, count);
	fill_floors(space, m, count, water, dt_ns);
	for (size_t i = 0; i < count; i++)
		m[i]->allowance_ns = allowance_of(space, m[i]);
}
