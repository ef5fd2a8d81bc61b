#include "arbiter/space_speed.h"

#include <math.h>

/* What was done in trials fades by its own time: of half of all of them, so that the first, which tell least, are forgotten first ... */
#define FADE_PART 0.5
#define FADE_LEAST_NS 100e6
#define FADE_MOST_NS 400e6
#define LEARNS_FADE_NS 40e6           /* ... and while lengths are being learned */
#define KNOWN_NS 10e6                 /* from which on it is used, ... */
#define SURE_NS 60e6                  /* to a hundredth or so */
#define SETTLE_NS UINT64_C(4000000)   /* what is in flight was begun before */
#define JUDGED_NS UINT64_C(250000000) /* if it is not known by then, pieces are too long for it */
#define LATE_NS \
	UINT64_C(400000) /* a piece that ended since a look so long ago may have ended any time */
#define BURST_NS UINT64_C(1000000) /* as long as that ends follow each other from look to look */
#define LINE_MOST_NS 40e6
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
}

static double slope_of(const struct space_line *line)
{
	double n = line->points;

	return (line->ty - line->t * line->y / n) / (line->tt - line->t * line->t / n);
}

/* What the line tells is added to what is known, and the next one begins. */
static void end_line(struct space_speed *s)
{
	double span_ns = span_of(&s->line), fade_ns, keep;

	if (s->line.points > 1 && span_ns > 0) {
		fade_ns = fmin(fmax(FADE_PART * (double)s->tried_ns, FADE_LEAST_NS), FADE_MOST_NS);
		keep = 1 / (1 + span_ns / (s->learns ? LEARNS_FADE_NS : fade_ns));
		s->done_ns = s->done_ns * keep + slope_of(&s->line) * span_ns;
		s->for_ns = s->for_ns * keep + span_ns;
	}
	s->line = (struct space_line){ 0 };
}

/* ---- a look ---- */

/* What was seen while its lengths were being learned counts for little as soon as they are known. */
static bool see_learning(struct space_speed *s, bool learns)
{
	bool has_learned = s->learns && !learns;
	double keep = KNOWN_NS / fmax(s->for_ns, KNOWN_NS);

	if (has_learned) {
		s->done_ns *= keep;
		s->for_ns *= keep;
	}
	s->learns = learns;
	return has_learned;
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
	end_line(s);
	s->ends_from = 0;
	s->burst_ns = 0;
}

static bool see_trial(struct space_speed *s, const struct space_speed_seen *seen, uint64_t now_ns,
		      uint64_t dt_ns)
{
	bool has_learned = see_learning(s, seen->learns);

	s->stretch_ns += dt_ns;
	if (s->stretch_ns < SETTLE_NS)
		return has_learned;
	s->tried_ns += dt_ns;
	/* A pause of its own: its next piece begins anew. */
	if (seen->works)
		see_ends(s, seen, now_ns, dt_ns);
	else
		rest(s);
	return has_learned;
}

bool space_speed_see(struct space_speed *s, const struct space_speed_seen *seen, uint64_t now_ns,
		     uint64_t dt_ns)
{
	bool is_news = false;

	if (seen->is_tried) {
		is_news = see_trial(s, seen, now_ns, dt_ns);
	} else if (s->stretch_ns) {
		rest(s);
		s->tried_at = now_ns;
		s->stretch_ns = 0;
	}
	if (s->known_at || !space_speed_is_judged(s))
		return is_news;
	s->known_at = now_ns;
	return true;
}

/* ---- what is known ---- */

bool space_speed_is_known(const struct space_speed *s)
{
	return s->for_ns >= KNOWN_NS;
}

bool space_speed_wants_trials(const struct space_speed *s, bool has_untried)
{
	return s->tried_ns < JUDGED_NS && (has_untried || s->for_ns < SURE_NS);
}

bool space_speed_is_judged(const struct space_speed *s)
{
	return space_speed_is_known(s) || s->tried_ns >= JUDGED_NS;
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

double space_speed(const struct space_speed *s)
{
	double speed;

	if (!space_speed_is_known(s))
		return 1;
	speed = s->done_ns / s->for_ns;
	/* By what looking misses, lengths are better than that. */
	if (speed > 1 - SURE && speed < 1 + SURE)
		return 1;
	return fmin(fmax(speed, LEAST), MOST);
}
