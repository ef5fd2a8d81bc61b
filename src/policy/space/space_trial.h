/*
 * Trials: one member of a space group runs alone for some milliseconds, while the others' launches wait. Its pieces are
 * timed then as they are alone, and it is seen how fast it is (space.h: Speed). Pure.
 *
 * One is for who has work that was never timed alone, or whose speed is not known, or known of a time ago, as programs
 * change. What it costs is bounded: all of its time, with the wait for the others' work to end, is taken from a
 * budget of a hundredth of the group's time, and of SPACE_TRIAL_FIRST_NS more for each member that comes.
 */
#ifndef ALLOT_POLICY_SPACE_SPACE_TRIAL_H
#define ALLOT_POLICY_SPACE_SPACE_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPACE_TRIAL_BUDGET 0.01
#define SPACE_TRIAL_FIRST_NS UINT64_C(600000000)
#define SPACE_TRIAL_SAVED_NS UINT64_C(2000000000) /* no more is saved up */
#define SPACE_TRIAL_EVERY_NS UINT64_C(100000000)  /* at most so often */
/* For so long, and for longer where that is not enough to tell; the others' work may take so long to end until then. */
#define SPACE_TRIAL_NS UINT64_C(30000000)
#define SPACE_TRIAL_MOST_NS UINT64_C(100000000)
#define SPACE_TRIAL_COMES_NS \
	UINT64_C(60000000) /* who comes is not held up so soon: it is owed its guarantee */
#define SPACE_TRIAL_WAIT_NS UINT64_C(15000000)
/* Work that it may have in flight once its lengths are known. */
#define SPACE_TRIAL_DEPTH_NS UINT64_C(20000000)
#define SPACE_TRIAL_ATTEMPT_NS UINT64_C(5000000) /* what one counts that came to nothing */
#define SPACE_TRIAL_LOOK_NS UINT64_C(100000)     /* how soon to look again meanwhile */

#define SPACE_TRIAL_NOBODY (-1)

struct space_trials {
	int whose;         /* SPACE_TRIAL_NOBODY */
	bool runs;         /* the others' work has ended */
	uint64_t since;    /* it runs, or waits for that; else the last one's end */
	double budget_ns;  /* a little negative at most */
	uint64_t spent_ns; /* ever */
};

/* A member, at one look. */
struct space_trial_seen {
	int who;       /* a number of its own */
	bool may;      /* is there, and may be tried */
	bool asks;     /* and should be, soon */
	bool works;    /* has work in flight */
	bool is_clear; /* of who runs: nothing more is to be found out */
	/* All its trials, as far as they told anything, and a little for each: who had least is next. */
	uint64_t tried_ns;
	uint64_t came_at; /* when it was last there after it was away */
};

/* None yet, at now_ns. */
struct space_trials space_trials_new(uint64_t now_ns);
/* A member came. */
void space_trials_came(struct space_trials *trials);
/* Begins, lets run and ends trials, dt_ns after the last look. */
void space_trials_step(struct space_trials *trials, const struct space_trial_seen *seen,
		       size_t count, uint64_t now_ns, uint64_t dt_ns);

#endif
