/*
 * How fast a member of a space group is: how much its library tells of in a nanosecond in which it runs alone (space.h: Speed).
 * Seen in trials (space_trial.h), look by look, by what ends.
 *
 * What ends at once is a burst: streams that run side by side end together, or in a few groups, and a look sees an end
 * a little late. So a trial's speed is the slope of the straight line through its bursts, each at half of its height: from
 * the first end to the last one, a few streams that are not in step told of up to a fifth too much.
 *
 * A program that waits for all of its work at the end of each step tells better: from one such rest to another it is whole steps,
 * whatever phases these have. A line through four steps of a GRU, and a bit of a fifth, was off by up to 6 % (H200). Beside others
 * such a step is as much work as it is alone: if it is told of otherwise, lengths have changed, and so has the speed.
 *
 * Pure; not thread safe.
 */
#ifndef ALLOT_POLICY_SPACE_SPACE_SPEED_H
#define ALLOT_POLICY_SPACE_SPACE_SPEED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A shorter time with nothing in flight is how it runs: a step that ends, a thread that launches no faster. It is a part of
 * what it takes alone. A longer one is a pause.
 */
#define SPACE_SPEED_REST_NS UINT64_C(2000000)

/* What ended by when, in nanoseconds told and of the clock, from the first burst on. */
struct space_line {
	unsigned points;
	uint64_t from_at, to_at; /* the first and the last */
	double done_ns;          /* up to the last burst, with it */
	double t, y, tt, ty, yy; /* sums over the points */
};

/* Its rests in a trial, and what it had begun by then; told, and of the clock. All in ns. */
struct space_steps {
	unsigned rests;          /* that count: the first, and the end of each step */
	uint64_t from_at, to_at; /* the first and the last */
	double from_told, to_told;
	double least, most; /* told of a step */
};

/* What its work is reckoned by. */
enum space_speed_basis {
	SPACE_SPEED_UNKNOWN,
	SPACE_SPEED_JUDGED,
	SPACE_SPEED_FIRST,
	SPACE_SPEED_KNOWN
};

/* All zero is how it begins. */
struct space_speed {
	double done_ns, for_ns; /* in trials; fade with themselves */
	/* The same while lengths were learned: little is in flight then, and lengths change. Good for nothing as soon as the other is known. */
	double first_done_ns, first_for_ns;
	double lines_ns;   /* all that is in for_ns, as if it did not fade */
	uint64_t tried_ns; /* all trials, from where they tell something */
	bool learns;       /* its lengths */
	bool is_unsteady;  /* the last line was no straight one, or as steep as no other */
	bool is_by_steps;  /* so it was told, and nothing else since: */
	double step_ns;    /* a step's time in the last trial that told of steps; 0: none did ... */
	double step_told;  /* ... and what is told of one by now */
	uint64_t quiet_ns; /* it need not be tried again for so long, by trials that told nothing new */
	/* Beside others: told since it waited for all of it, if it did so since its last trial, ... */
	double since_rest;
	bool has_rested;
	double run_told, run_steps; /* ... and of whole steps, one after the other, before */
	enum space_speed_basis basis;
	uint64_t known_at,
		tried_at; /* when it was known at first, a trial was over last; 0: never */

	/* Of this trial: */
	uint64_t stretch_ns; /* what ends at first was begun beside others */
	uint64_t rest_ns;    /* nothing was in flight for so long */
	unsigned rests;      /* that a line ended by; many: longer ones are not to be had */
	bool is_told; /* what it tells from here on is neither of what it was nor of what it is */
	uint64_t ends_from, ended_at; /* those that end now, one look after the other; 0: none */
	double burst_ns;              /* what they were told as */
	struct space_line line;
	double begun_ns; /* told, of what was begun */
	struct space_steps steps;
};

/* One look; of dt_ns 0: its group's turn is over. */
struct space_speed_seen {
	bool is_tried;   /* it runs alone */
	bool learns;     /* lengths of much of what it does are not known yet */
	bool works;      /* has work in flight */
	double done_ns;  /* told: what has ended since the last look ... */
	double begun_ns; /* ... was begun ... */
	bool rests;      /* ... and it has waited for all of it */
};

/* True: what it is charged by is another measure from here on. dt_ns after the last look. */
bool space_speed_see(struct space_speed *speed, const struct space_speed_seen *seen,
		     uint64_t now_ns, uint64_t dt_ns);
bool space_speed_is_known(const struct space_speed *speed);
/*
 * The trial that runs need not go on: what it has told so far is a straight line, and as steep as was known, if anything was. A program
 * whose phases differ (the layers of a GRU overlap forwards, less so backwards) is known after several of its steps only.
 */
bool space_speed_is_clear(const struct space_speed *speed);
/* More trials are worth it; has_untried: there are lengths to be learned, too. */
bool space_speed_wants_trials(const struct space_speed *speed, bool has_untried);
/* As far as that can be found out. */
bool space_speed_is_judged(const struct space_speed *speed);
/* Known of a time ago; the longer it is known, the longer that may be. */
bool space_speed_is_stale(const struct space_speed *speed, uint64_t now_ns);
/* What it is told of in a nanosecond alone; until that is known, one. */
double space_speed(const struct space_speed *speed);
/* The same with what the trial that runs has told. */
double space_speed_so_far(const struct space_speed *speed);

#endif
