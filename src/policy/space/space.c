#include "policy/space/space.h"

#include <math.h>

#define WINDOW_NS 250e6 /* time over which a share is measured */
/* a share counts as below the guarantee only if more than this part of the guarantee is missing */
#define TOLERANCE 0.03
/* the predicted lengths of a member's work are known if at most this fraction of its recent work was never timed alone */
#define UNTRIED_MOST 0.1
/* a member's speed is averaged over about the last second of its work while no other member ran */
#define ALONE_FADE_NS 1e9
#define ALONE_KNOWN_NS 200e6        /* once a member was alone this long, its speed is known */
#define ALONE_ENOUGH_NS 2e9         /* a member that was alone this long is not measured more */
#define MEASURED_NS (WINDOW_NS / 3) /* a share is known after being measured for this long */
/* a member whose share exceeds its guarantee by less than this fraction is not slowed */
#define ABOVE 0.1
#define FASTER_MOST 0.1 /* a pace grows by at most this fraction in one window */
#define BURST_NS 5e6 /* the work that a pace permits in this time may begin at once, as a burst */
/* largest progress of a counter that is accepted in one poll */
#define STEP_MAX_NS UINT64_C(1000000000)
#define STUCK_NS 1e9 /* if no work ends for this long, the share is unknown */

static uint64_t progress(uint64_t *last, uint64_t now, uint64_t most)
{
	uint64_t step = now > *last ? now - *last : 0;

	*last = now;
	return step < most ? step : most;
}

/*
 * The reported work that ended since the last poll: work begun less work in flight. A launch that is just being counted may be
 * in only one of the two, so the difference may also fall. Only a new maximum is progress.
 */
static uint64_t done_since(struct mps_client *m, const struct mps_client_observation *seen)
{
	uint64_t done_ns = seen->reported_work_ns > seen->inflight_ns
				   ? seen->reported_work_ns - seen->inflight_ns
				   : 0;

	/* reported_work_ns is less than the work that had ended already: its counter began again at 0. */
	if (seen->reported_work_ns < m->done_ns)
		m->done_ns = done_ns;
	return done_ns > m->done_ns ? progress(&m->done_ns, done_ns, STEP_MAX_NS) : 0;
}

static void update_presence(struct mps_client *m, const struct mps_client_observation *seen,
			    uint64_t now_ns)
{
	if (!seen->is_barred && (seen->works || seen->waits))
		m->wanted_at = now_ns;
	m->is_present = !seen->is_barred && m->wanted_at && now_ns - m->wanted_at < SPACE_AWAY_NS;
}

static void learn_lengths(struct mps_client *m, double reported_work_ns, double untried_ns,
			  uint64_t dt_ns)
{
	double keep = 1 / (1 + (double)dt_ns / WINDOW_NS);

	m->begun_ns = m->begun_ns * keep + reported_work_ns;
	m->begun_untried_ns = m->begun_untried_ns * keep + untried_ns;
	if (reported_work_ns > 0)
		m->is_learned = m->begun_untried_ns <= UNTRIED_MOST * m->begun_ns;
}

static void add_faded(struct space_rate *rate, double done_ns, double for_ns, double fade_ns)
{
	double keep = 1 / (1 + for_ns / fade_ns);

	rate->done_ns = rate->done_ns * keep + done_ns;
	rate->for_ns = rate->for_ns * keep + for_ns;
}

/*
 * Learns the member's speed while it is alone. Measures from the time when some work ends to the time when the next work ends,
 * so work that began before the member was alone does not count.
 */
static void learn_alone(struct mps_client *m, const struct mps_client_observation *seen,
			double done_ns)
{
	if (!seen->is_alone || !seen->is_counted) {
		m->has_ended_alone = false;
		return;
	}
	m->alone_pending_ns += seen->busy_ns;
	if (done_ns <= 0)
		return;
	if (m->has_ended_alone && m->is_learned) {
		add_faded(&m->alone, done_ns, m->alone_pending_ns, ALONE_FADE_NS);
		m->alone_ns += m->alone_pending_ns;
	}
	m->has_ended_alone = true;
	m->alone_pending_ns = 0;
}

/* Long work counts when it ends; until then the share keeps its last value. */
static void learn_window(struct mps_client *m, const struct mps_client_observation *seen,
			 double done_ns)
{
	if (!m->is_present || !seen->is_counted) {
		m->window = (struct space_rate){ 0 };
		m->window_pending_ns = 0;
		return;
	}
	m->window_pending_ns += seen->wanted_ns;
	if (done_ns <= 0)
		return;
	add_faded(&m->window, done_ns, m->window_pending_ns, WINDOW_NS);
	m->window_pending_ns = 0;
}

void mps_client_observe(struct mps_client *m, const struct mps_client_observation *seen,
			uint64_t now_ns, uint64_t dt_ns)
{
	uint64_t new_work = progress(&m->reported_work_ns, seen->reported_work_ns, STEP_MAX_NS);
	uint64_t untried = progress(&m->untried_ns, seen->untried_ns, new_work);
	uint64_t done = done_since(m, seen);

	if (!m->is_counted)
		new_work = untried = done = 0;
	m->is_counted = seen->is_counted;
	update_presence(m, seen, now_ns);
	learn_lengths(m, (double)new_work, (double)untried, dt_ns);
	learn_alone(m, seen, (double)done);
	learn_window(m, seen, (double)done);
	m->work_ns = (double)done * (m->part > 0 ? m->part : 1) / mps_client_speed(m);
	m->credit_ns -= (double)new_work;
}

bool mps_client_is_known(const struct mps_client *m)
{
	return m->alone.for_ns >= ALONE_KNOWN_NS && m->alone.done_ns > 0;
}

double mps_client_speed(const struct mps_client *m)
{
	return mps_client_is_known(m) ? m->alone.done_ns / m->alone.for_ns : 1;
}

/* Reported work per nanosecond at a pace of 1: alone on the whole GPU. */
static double whole_speed(const struct mps_client *m)
{
	return mps_client_speed(m) / (m->part > 0 ? m->part : 1);
}

double mps_client_share(const struct mps_client *m)
{
	return m->window.for_ns > 0 ? m->window.done_ns / (m->window.for_ns * whole_speed(m)) : 0;
}

bool mps_client_learns(const struct mps_client *m)
{
	return !m->is_learned || m->alone_ns < ALONE_ENOUGH_NS;
}

uint64_t mps_client_reported_work_ns(const struct mps_client *m, uint64_t work_ns)
{
	return (uint64_t)((double)work_ns * fmin(fmax(mps_client_speed(m), 1), 50));
}

uint64_t mps_client_work_ns(const struct mps_client *m, uint64_t reported_work_ns)
{
	double speed = mps_client_speed(m);

	return speed > 1 ? (uint64_t)((double)reported_work_ns / speed) : reported_work_ns;
}

uint64_t mps_client_granted_ns(const struct mps_client *m)
{
	if (!m->is_held)
		return SPACE_PLENTY_NS;
	return (uint64_t)fmin(fmax(m->credit_ns, 0), (double)SPACE_PLENTY_NS);
}

static bool is_measured(const struct mps_client *m)
{
	return m->is_present && m->guarantee > 0 && m->is_learned && mps_client_is_known(m) &&
	       m->window.for_ns >= MEASURED_NS && m->window_pending_ns < STUCK_NS;
}

/*
 * `least` if the member's speed is known. If not, its work may have been timed while all `present` members ran, and so seem up
 * to `present` times too long. So the bound is `least` times `present`, at most 1.
 */
static double least_pace(const struct mps_client *m, int present)
{
	return mps_client_is_known(m) ? m->least : fmin(m->least * present, 1);
}

static bool is_above(const struct mps_client *m, int present)
{
	return m->is_present && !m->is_below &&
	       mps_client_share(m) > (1 + ABOVE) * least_pace(m, present);
}

/* A higher priority is slowed only when the lower ones have little more than their guarantees. */
static void slow_down(struct mps_client *const *m, size_t count, int present, double by)
{
	const struct mps_client *lowest = NULL;

	for (size_t i = 0; i < count; i++)
		if (is_above(m[i], present) && (!lowest || m[i]->priority < lowest->priority))
			lowest = m[i];
	for (size_t i = 0; i < count; i++) {
		if (!is_above(m[i], present) || m[i]->priority > lowest->priority)
			continue;
		if (m[i]->pace <= 0)
			m[i]->pace = mps_client_share(m[i]);
		m[i]->pace = fmax(m[i]->pace * by, least_pace(m[i], present));
	}
}

/* Removes the pace once it is more than twice the member's share, because it limits nothing then. */
static void speed_up(struct mps_client *m, double by)
{
	if (!m->is_held)
		return;
	m->pace *= by;
	if (m->pace > 2 * mps_client_share(m) && m->window.for_ns >= MEASURED_NS)
		m->pace = 0;
}

static bool is_awaited(struct mps_client *const *m, size_t count, const struct mps_client *by)
{
	for (size_t i = 0; i < count; i++)
		if (m[i] != by && m[i]->needs_pace && m[i]->is_present)
			return true;
	return false;
}

static void hold(struct mps_client *m, bool is_held, uint64_t dt_ns)
{
	double rate = m->pace * whole_speed(m);

	m->credit_ns = m->is_held ? m->credit_ns + rate * (double)dt_ns : BURST_NS * rate;
	m->credit_ns = fmax(fmin(m->credit_ns, BURST_NS * rate), -WINDOW_NS * rate);
	m->is_held = is_held;
}

/*
 * If the worst served member lacks a part of its guarantee, paces fall by that part over one window (WINDOW_NS). If that member
 * has more than its guarantee, paces rise in proportion to its excess.
 */
void space_set_paces(struct mps_client *const *m, size_t count, uint64_t dt_ns)
{
	double off = FASTER_MOST;
	bool any_below = false, any_pace = false;
	int present = 0;

	for (size_t i = 0; i < count; i++) {
		bool measured = is_measured(m[i]);
		double own = measured ? mps_client_share(m[i]) / m[i]->guarantee - 1 : 0;

		m[i]->is_below = measured && own < -TOLERANCE;
		m[i]->needs_pace |= m[i]->is_below;
		any_below |= m[i]->is_below;
		any_pace |= m[i]->pace > 0;
		off = measured ? fmin(off, own) : off;
		present += m[i]->is_present;
	}
	if (any_below || (any_pace && off < 0))
		slow_down(m, count, present, fmax(1 + off * (double)dt_ns / WINDOW_NS, 0));
	any_pace = false;
	for (size_t i = 0; i < count; i++) {
		if (off > 0)
			speed_up(m[i], 1 + off * (double)dt_ns / WINDOW_NS);
		any_pace |= m[i]->pace > 0;
	}
	for (size_t i = 0; i < count; i++) {
		m[i]->needs_pace &= any_pace;
		hold(m[i],
		     m[i]->pace > 0 && m[i]->is_present && !m[i]->is_below &&
			     is_awaited(m, count, m[i]),
		     dt_ns);
	}
}
