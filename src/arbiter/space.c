#include "arbiter/space.h"

#define FADE_NS 250e6 /* time constant of the sums */
#define KNOWN_NS 20e6 /* of work in flight, from which on a speed is taken to be known */
#define USE_KNOWN_NS \
	2e6        /* of work begun, from which on a use is; until then it may be all of the card */
#define SLOWED 0.9 /* of the speed alone: less is somebody's doing */
#define USE_LEFT 0.95 /* of what it could use, to one whose part is larger */
#define LEAST_TARGET 1e-4
#define LEAST_CAPACITY 0.05
#define FLOOR_DEBT_NS 20e6 /* a long kernel counts, all that was lent does not */
#define FLOOR_PART 0.97    /* what the card holds is not known better */
#define AHEAD_MAX_NS 1e9   /* nobody is held for more than that of debt */
#define STUCK_MIN_NS UINT64_C(50000000)
#define STUCK_MAX_NS UINT64_C(1000000000)
#define BELIEF_MAX_NS UINT64_C(1000000000)

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
	s->pause_ns *= keep;
	s->done_ns *= keep;
	s->busy_ns *= keep;
	s->done_alone_ns *= keep;
	s->busy_alone_ns *= keep;
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

uint64_t space_member_see(struct space_member *m, const struct space_seen *seen, bool others_work,
			  uint64_t now_ns, uint64_t dt_ns)
{
	uint64_t paid, work = progress(&m->work_ns, seen->work_ns, BELIEF_MAX_NS);
	uint64_t done = progress(&m->done_ns, done_of(seen), BELIEF_MAX_NS);
	struct space_sums *s = &m->sums;

	m->is_known = m->is_known && seen->is_paced;
	m->works = seen->works;
	m->belief_ns += dt_ns;
	if (m->belief_ns > BELIEF_MAX_NS || !m->is_known)
		m->belief_ns = BELIEF_MAX_NS;
	paid = progress(&m->paid_ns, seen->paid_ns, m->belief_ns);
	if (!m->is_known)
		paid = work = done = 0;
	m->belief_ns -= paid;
	/* Who waits here is ours to let go. */
	if (paid || done || seen->waits || !seen->works || !m->is_known)
		m->moved_at = now_ns;
	m->is_known = seen->is_paced;
	/* Of work that was not paid for nothing is known but its length. */
	m->owed_ns = seen->is_paced || seen->is_tried
			     ? 0
			     : min_double((double)seen->inflight_ns, AHEAD_MAX_NS);
	if (seen->is_tried)
		paid = (uint64_t)((double)seen->ran_ns * part_of(s));
	m->begun_ns = paid;
	if (m->is_present)
		fade(s, dt_ns);
	see_presence(m, seen, now_ns);
	if (is_stuck(m, seen, now_ns))
		m->is_present = false;
	if (seen->is_paced)
		s->paid_ns += (double)paid;
	s->work_ns += (double)work;
	s->done_ns += (double)done;
	if (seen->works)
		s->busy_ns += (double)dt_ns;
	else if (m->is_present && !seen->waits)
		s->pause_ns += (double)dt_ns;
	if (!others_work) {
		s->done_alone_ns += (double)done;
		s->busy_alone_ns += seen->works ? (double)dt_ns : 0;
	}
	if (m->target > 0)
		m->vtime += (double)paid / m->target;
	return paid;
}

void space_charge(struct space_member *m, double ns)
{
	if (m->target > 0)
		m->vtime += ns / m->target;
	m->floor_ns -= ns;
}

/* ---- what that means ---- */

/* Length of work done in the time that work was in flight: more than 1 where streams overlap. */
static double speed_alone(const struct space_sums *s)
{
	double speed = s->busy_alone_ns >= KNOWN_NS ? s->done_alone_ns / s->busy_alone_ns : 1;

	return speed > 0.1 ? speed : 0.1;
}

static bool is_slowed(const struct space_sums *s)
{
	return s->busy_ns >= KNOWN_NS && s->done_ns < SLOWED * speed_alone(s) * s->busy_ns;
}

/* The part of the card that it would have alone. */
static double use_of(const struct space_sums *s)
{
	double takes_ns = s->work_ns / speed_alone(s) + s->pause_ns;

	if (s->work_ns < USE_KNOWN_NS || takes_ns <= 0)
		return 1;
	return min_double(s->paid_ns / takes_ns, 1);
}

static double most_of(const struct space_member *m)
{
	return max_double(min_double(use_of(&m->sums), m->limit), LEAST_TARGET);
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
		m[i]->is_slowed = m[i]->is_present && is_slowed(&m[i]->sums);
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

/* By who was there before, with a target; who comes begins at the least of them. */
static void set_clock(struct space *space, struct space_member *const *m, size_t count)
{
	double least = 0;
	bool any = false;

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
	set_clock(space, m, count);
	fill_targets(m, count, water);
	count_owed(space, m, count);
	fill_floors(space, m, count, water, dt_ns);
	for (size_t i = 0; i < count; i++)
		m[i]->allowance_ns = allowance_of(space, m[i]);
}
