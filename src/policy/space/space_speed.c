#include "policy/space/space_speed.h"

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
#define CLEAR_NEWS 0.02  /* of the slope, that what was known is off by */
#define RESTS 2          /* in one trial: no line gets longer than that */
#define STEP_PART 0.1    /* of a step: less between two rests is none */
#define STEPS_DIFFER 0.1 /* they are as long as each other */
#define STEPS_LEAST 2
#define STEPS_MOST 3      /* beside others, between two rests that are seen, ... */
#define STEP_CHANGES 0.12 /* ... each as it was known but for so much of one in sum */
#define STEPS_TELL 16     /* a look sees some of the next step: little of so many */
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

/* ---- its steps ---- */

static void add_rest(struct space_steps *steps, uint64_t at, double told)
{
	double step = told - steps->to_told;

	/* It waits for the same again. */
	if (steps->rests > 1 && step < STEP_PART * steps->most)
		return;
	/* What looked like a step until now was that. */
	if (steps->rests > 1 && steps->most < STEP_PART * step)
		*steps = (struct space_steps){ .rests = 1,
					       .from_at = steps->to_at,
					       .from_told = steps->to_told };
	if (!steps->rests) {
		steps->from_at = at;
		steps->from_told = told;
	} else {
		steps->least = steps->rests > 1 ? fmin(steps->least, step) : step;
		steps->most = steps->rests > 1 ? fmax(steps->most, step) : step;
	}
	steps->to_at = at;
	steps->to_told = told;
	steps->rests++;
}

/* Of the same length, and some of them: then they tell more than the line. */
static bool are_regular(const struct space_steps *steps)
{
	return steps->rests > STEPS_LEAST && steps->least > (1 - STEPS_DIFFER) * steps->most &&
	       steps->to_at - steps->from_at >= KNOWN_NS;
}

/* ---- what both tell ---- */

struct told {
	double speed, for_ns; /* 0: nothing */
	bool is_straight;
	double step_ns; /* 0: it is by the line */
};

static struct told told_of(const struct space_speed *s)
{
	const struct space_steps *steps = &s->steps;

	if (are_regular(steps)) {
		double for_ns = (double)(steps->to_at - steps->from_at);

		return (struct told){ .speed = (steps->to_told - steps->from_told) / for_ns,
				      .for_ns = for_ns,
				      .is_straight = true,
				      .step_ns = for_ns / (steps->rests - 1) };
	}
	if (s->line.points > 1 && span_of(&s->line) > 0)
		return (struct told){ .speed = slope_of(&s->line),
				      .for_ns = span_of(&s->line),
				      .is_straight = is_straight(&s->line) };
	return (struct told){ 0 };
}

static bool is_no_news(const struct space_speed *s, const struct told *told)
{
	return s->for_ns > 0 && fabs(s->done_ns / (s->for_ns * told->speed) - 1) < CLEAR_NEWS;
}

static void add_faded(double *done_ns, double *for_ns, const struct told *told, double fade_ns)
{
	double keep = 1 / (1 + told->for_ns / fade_ns);

	*done_ns = *done_ns * keep + told->speed * told->for_ns;
	*for_ns = *for_ns * keep + told->for_ns;
}

/* The work of a step stays as it is. */
static void tell_step_as(struct space_speed *s, double step_told)
{
	s->done_ns *= step_told / s->step_told;
	s->step_told = step_told;
}

/*
 * Lengths get better for some seconds, and with them what is told of a step: what is known is put in those of today. Else a
 * transformer's was 2 % off for a quarter of a minute (H200). If a step takes another time, it is another step.
 */
static void renew(struct space_speed *s, const struct told *told)
{
	double step_told = told->speed * told->step_ns;

	if (told->step_ns <= 0) {
		s->is_by_steps = s->is_by_steps && is_no_news(s, told);
		return;
	}
	s->is_by_steps = true;
	if (s->step_ns > 0 && fabs(told->step_ns / s->step_ns - 1) < STEPS_DIFFER)
		tell_step_as(s, step_told);
	s->step_ns = told->step_ns;
	s->step_told = step_told;
}

/* What it has told is added to what is known, and the next line begins. */
static void end_line(struct space_speed *s)
{
	struct told told = told_of(s);

	if (told.for_ns > 0 && s->learns) {
		add_faded(&s->first_done_ns, &s->first_for_ns, &told, LEARNS_FADE_NS);
	} else if (told.for_ns > 0) {
		renew(s, &told);
		s->is_unsteady = !told.is_straight || !is_no_news(s, &told);
		s->lines_ns += told.for_ns;
		add_faded(&s->done_ns, &s->for_ns, &told,
			  fmin(fmax(FADE_PART * s->lines_ns, FADE_LEAST_NS), FADE_MOST_NS));
	}
	s->line = (struct space_line){ 0 };
	s->steps = (struct space_steps){ 0 };
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

/* It has rested: between two rests are whole steps. */
static void add_steps(struct space_speed *s)
{
	double steps = round(s->since_rest / s->step_told);

	if (steps < 1)
		return;
	if (steps > STEPS_MOST ||
	    fabs(s->since_rest - steps * s->step_told) > STEP_CHANGES * s->step_told) {
		s->run_told = s->run_steps = 0;
		return;
	}
	s->run_told += s->since_rest;
	s->run_steps += steps;
}

/* Beside others: how a step is told of by now. */
static void see_steps(struct space_speed *s, const struct space_speed_seen *seen)
{
	s->since_rest += seen->begun_ns;
	if (!seen->rests || !s->is_by_steps)
		return;
	if (s->has_rested)
		add_steps(s);
	if (s->run_steps >= STEPS_TELL) {
		tell_step_as(s, s->run_told / s->run_steps);
		s->run_told = s->run_steps = 0;
	}
	s->since_rest = 0;
	s->has_rested = true;
}

/* What is begun alone comes in between. */
static void forget_steps(struct space_speed *s)
{
	s->has_rested = false;
	s->run_told = s->run_steps = 0;
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
	if (!dt_ns || s->rest_ns >= SPACE_SPEED_REST_NS) {
		rest(s);
		return;
	}
	see_ends(s, seen, now_ns, dt_ns);
	s->begun_ns += seen->begun_ns;
	if (seen->rests)
		add_rest(&s->steps, now_ns, s->begun_ns);
}

/* After a trial. */
static void be_quiet(struct space_speed *s)
{
	if (s->for_ns <= 0 || s->is_unsteady)
		s->quiet_ns = 0;
	else if (s->quiet_ns < STALE_MOST_NS)
		s->quiet_ns = s->quiet_ns ? 2 * s->quiet_ns : STALE_LEAST_NS;
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
		forget_steps(s);
		see_trial(s, seen, now_ns, dt_ns);
	} else {
		see_steps(s, seen);
	}
	if (!seen->is_tried && s->stretch_ns) {
		rest(s);
		be_quiet(s);
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

	if (pause_ns < s->quiet_ns)
		pause_ns = s->quiet_ns;
	if (pause_ns < STALE_LEAST_NS)
		pause_ns = STALE_LEAST_NS;
	if (pause_ns > STALE_MOST_NS)
		pause_ns = STALE_MOST_NS;
	return now_ns - s->tried_at > pause_ns;
}

bool space_speed_is_clear(const struct space_speed *s)
{
	struct told told;

	/* What is seen while lengths are learned is left behind anyway. */
	if (s->rests >= RESTS || s->learns || s->is_told)
		return true;
	told = told_of(s);
	/* Some more of its steps tell better than the line does by now. */
	if (told.step_ns <= 0 && (s->is_by_steps || (s->for_ns < KNOWN_NS && s->steps.rests > 0)))
		return false;
	return told.for_ns >= CLEAR_NS && told.is_straight &&
	       (s->for_ns < KNOWN_NS || is_no_news(s, &told));
}

/* By what looking misses, lengths are better than a line. Steps are better than both. */
static double rounded(double speed, bool is_by_steps)
{
	if (!is_by_steps && speed > 1 - SURE && speed < 1 + SURE)
		return 1;
	return fmin(fmax(speed, LEAST), MOST);
}

double space_speed_so_far(const struct space_speed *s)
{
	struct told told = told_of(s);

	return told.for_ns < KNOWN_NS ? space_speed(s) : rounded(told.speed, told.step_ns > 0);
}

double space_speed(const struct space_speed *s)
{
	switch (basis_of(s)) {
	case SPACE_SPEED_KNOWN: return rounded(s->done_ns / s->for_ns, s->is_by_steps);
	case SPACE_SPEED_FIRST: return rounded(s->first_done_ns / s->first_for_ns, false);
	default: return 1;
	}
}
