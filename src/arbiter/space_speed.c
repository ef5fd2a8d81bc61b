#include "arbiter/space_speed.h"

#include <math.h>

/* What was done in trials fades by its own time: of half of all of them, so that the first, which tell least, are forgotten first ... */
#define FADE_PART 0.5
#define FADE_LEAST_NS 100e6
#define FADE_MOST_NS 1e9
#define LEARNS_FADE_NS 40e6            /* ... and while lengths are being learned */
#define KNOWN_NS 10e6                  /* from which on it is used, ... */
#define SURE_NS 60e6                   /* to a hundredth or so; ... */
#define UNSTEADY_SURE_NS 200e6         /* ... where steps differ, or phases of a step */
#define SETTLE_NS UINT64_C(4000000)    /* what is in flight was begun before */
#define JUDGED_NS UINT64_C(250000000)  /* if it is not known by then, pieces are too long for it */
#define ENOUGH_NS UINT64_C(1000000000) /* after that, now and then */
#define LATE_NS \
	UINT64_C(400000) /* a piece that ended since a look so long ago may have ended any time */
#define BURST_NS UINT64_C(1000000) /* as long as that ends follow each other from look to look */
#define LINE_MOST_NS 150e6
#define CLEAR_NS 20e6  /* a line that is shorter says nothing of a program's phases */
#define CLEAR_OFF 0.02 /* of its slope: what the worst wave of what it is off by would make of it */
#define CLEAR_NEWS 0.02 /* of the slope, that what was known is off by */
#define RESTS 2         /* in one trial: no line gets longer than that */
#define WAVE 2.7 /* a slope is off by, of a whole wave's root mean square in the line's length */
#define SURE 0.02
#define LEAST 0.1
#define MOST 50.0
#define STALE_PART 4 /* of the time since it was known */
#define STALE_LEAST_NS UINT64_C(1500000000)
#define STALE_MOST_NS UINT64_C(10000000000)

/* ---- the line of a trial ---- */

static double span_of(const struct space_line *line)
{
	return (double)(line->to_at - line->from_at);
}

static void add_point(struct space_line *line, uint64_t at, double burst_ns)
{
	double t, y;

	if (!line->points)
		line->from_at = at;
	line->to_at = at;
	t = span_of(line);
	y = line->done_ns + burst_ns / 2;
	line->done_ns += burst_ns;
	line->points++;
	line->t += t;
	line->y += y;
	line->tt += t * t;
	line->ty += t * y;
	line->yy += y * y;
}

static double slope_of(const struct space_line *line)
{
	double n = line->points;

	return (line->ty - line->t * line->y / n) / (line->tt - line->t * line->t / n);
}

/* Of the slope: how far it may be off, as far as the points' distance from the line tells. */
static double off_of(const struct space_line *line)
{
	double n = line->points, slope = slope_of(line);
	double tt = line->tt - line->t * line->t / n, yy = line->yy - line->y * line->y / n;
	double rest = fmax(yy - slope * slope * tt, 0);

	return WAVE * sqrt(rest / n) / (slope * span_of(line));
}

static bool is_straight(const struct space_line *line)
{
	return line->points > 3 && slope_of(line) > 0 && off_of(line) < CLEAR_OFF;
}

static bool is_no_news(const struct space_speed *s)
{
	return s->for_ns > 0 && fabs(s->done_ns / (s->for_ns * slope_of(&s->line)) - 1) < CLEAR_NEWS;
}

static void add_faded(double *done_ns, double *for_ns, const struct space_line *line, double fade_ns)
{
	double keep = 1 / (1 + span_of(line) / fade_ns);

	*done_ns = *done_ns * keep + slope_of(line) * span_of(line);
	*for_ns = *for_ns * keep + span_of(line);
}

/* What the line tells is added to what is known, and the next one begins. */
static void end_line(struct space_speed *s)
{
	if (s->line.points > 1 && span_of(&s->line) > 0 && s->learns) {
		add_faded(&s->first_done_ns, &s->first_for_ns, &s->line, LEARNS_FADE_NS);
	} else if (s->line.points > 1 && span_of(&s->line) > 0) {
		s->is_unsteady = !is_straight(&s->line) || !is_no_news(s);
		s->lines_ns += span_of(&s->line);
		add_faded(&s->done_ns, &s->for_ns, &s->line,
			  fmin(fmax(FADE_PART * s->lines_ns, FADE_LEAST_NS), FADE_MOST_NS));
	}
	s->line = (struct space_line){ 0 };
}

/* ---- a look ---- */

static void see_learning(struct space_speed *s, bool learns)
{
	if (s->learns == learns)
		return;
	end_line(s);
	s->learns = learns;
	/* Little was in flight until now (group_depth_ns): the next trial tells. */
	s->is_told = s->stretch_ns >= SETTLE_NS;
}

static void see_ends(struct space_speed *s, const struct space_speed_seen *seen, uint64_t now_ns,
		     uint64_t dt_ns)
{
	bool ends = seen->done_ns > 0;

	s->burst_ns += seen->done_ns;
	if (ends && dt_ns > LATE_NS) {
		/* It counts, and says nothing of when. */
		s->line.done_ns += s->line.points ? s->burst_ns : 0;
		s->burst_ns = 0;
		s->ends_from = 0;
		return;
	}
	if (ends) {
		s->ended_at = now_ns;
		s->ends_from = s->ends_from ? s->ends_from : now_ns;
	}
	if (!s->ends_from || (ends && now_ns - s->ends_from < BURST_NS))
		return;
	add_point(&s->line, s->ended_at, s->burst_ns);
	s->ends_from = 0;
	s->burst_ns = 0;
	if (span_of(&s->line) >= LINE_MOST_NS)
		end_line(s);
}

static void rest(struct space_speed *s)
{
	s->rests += s->line.points > 0;
	end_line(s);
	s->ends_from = 0;
	s->burst_ns = 0;
}

static void see_trial(struct space_speed *s, const struct space_speed_seen *seen, uint64_t now_ns,
		      uint64_t dt_ns)
{
	s->stretch_ns += dt_ns;
	if (s->stretch_ns < SETTLE_NS || s->is_told)
		return;
	s->tried_ns += dt_ns;
	s->rest_ns = seen->works ? 0 : s->rest_ns + dt_ns;
	/* After a pause of its own its next piece begins anew. */
	if (dt_ns && s->rest_ns < SPACE_SPEED_REST_NS)
		see_ends(s, seen, now_ns, dt_ns);
	else
		rest(s);
}

static enum space_speed_basis basis_of(const struct space_speed *s)
{
	if (s->for_ns >= KNOWN_NS)
		return SPACE_SPEED_KNOWN;
	if (s->first_for_ns >= KNOWN_NS)
		return SPACE_SPEED_FIRST;
	return s->tried_ns >= JUDGED_NS ? SPACE_SPEED_JUDGED : SPACE_SPEED_UNKNOWN;
}

bool space_speed_see(struct space_speed *s, const struct space_speed_seen *seen, uint64_t now_ns,
		     uint64_t dt_ns)
{
	enum space_speed_basis before = s->basis;

	see_learning(s, seen->learns);
	if (seen->is_tried) {
		see_trial(s, seen, now_ns, dt_ns);
	} else if (s->stretch_ns) {
		rest(s);
		s->tried_at = now_ns;
		s->stretch_ns = s->rest_ns = s->rests = 0;
		s->is_told = false;
	}
	s->basis = basis_of(s);
	if (s->basis == before)
		return false;
	s->known_at = s->known_at ? s->known_at : now_ns;
	return true;
}

/* ---- what is known ---- */

bool space_speed_is_known(const struct space_speed *s)
{
	return basis_of(s) >= SPACE_SPEED_FIRST;
}

bool space_speed_wants_trials(const struct space_speed *s, bool has_untried)
{
	double sure_ns = s->is_unsteady ? UNSTEADY_SURE_NS : SURE_NS;

	return s->tried_ns < ENOUGH_NS && (has_untried || s->for_ns < sure_ns);
}

bool space_speed_is_judged(const struct space_speed *s)
{
	return basis_of(s) != SPACE_SPEED_UNKNOWN;
}

bool space_speed_is_stale(const struct space_speed *s, uint64_t now_ns)
{
	uint64_t pause_ns = (now_ns - s->known_at) / STALE_PART;

	if (pause_ns < STALE_LEAST_NS)
		pause_ns = STALE_LEAST_NS;
	if (pause_ns > STALE_MOST_NS)
		pause_ns = STALE_MOST_NS;
	return now_ns - s->tried_at > pause_ns;
}

bool space_speed_is_clear(const struct space_speed *s)
{
	/* What is seen while lengths are learned is left behind anyway. */
	if (s->rests >= RESTS || s->learns || s->is_told)
		return true;
	return s->for_ns >= KNOWN_NS && span_of(&s->line) >= CLEAR_NS && is_straight(&s->line) &&
	       is_no_news(s);
}

/* By what looking misses, lengths are better than that. */
static double rounded(double speed)
{
	if (speed > 1 - SURE && speed < 1 + SURE)
		return 1;
	return fmin(fmax(speed, LEAST), MOST);
}

double space_speed_so_far(const struct space_speed *s)
{
	if (s->line.points < 2 || span_of(&s->line) < KNOWN_NS)
		return space_speed(s);
	return rounded(slope_of(&s->line));
}

double space_speed(const struct space_speed *s)
{
	switch (basis_of(s)) {
	case SPACE_SPEED_KNOWN: return rounded(s->done_ns / s->for_ns);
	case SPACE_SPEED_FIRST: return rounded(s->first_done_ns / s->first_for_ns);
	default: return 1;
	}
}
