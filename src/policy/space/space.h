/*
 * Space instead of time: how much each member of a group may begin, where all of them run at the same moment
 * (clients of one MPS server). Pure policy: no clock, no I/O; the arbiter (group.c) feeds it and hands its answers
 * out as grants.
 *
 *   Work      What a share is counted in: a nanosecond of it is what the same program does alone, with the whole card, in a
 *             nanosecond. Wall time says nothing here, since it overlaps; and how many SMs a grid fills says little of how
 *             much of the card it takes.
 *   Speed     What its library tells of (predicted lengths of pieces) is not that: streams of its own overlap, short kernels are
 *             timed with what lies between two events. How much is told of in a nanosecond in which a member runs alone makes work of it.
 *   Use       What a member could have if it were alone: its work, and the pauses between.
 *   Target    The card is filled in by weight, to each at most its use and its limit: what one does not use flows to the
 *             others; for that it may be slowed down by a twentieth. Here it counts that who fills an eighth of the SMs leaves
 *             the others seven. There is as much as the card gives: while somebody may be held, the one that has had least goes
 *             on at its target's rate if that is so, else at another; by that the fill is corrected.
 *   Turn      Who has had least by its target is never held; others are, when they are SPACE_AHEAD_NS
 *             ahead of it. So shares are as targets say whatever the hardware does with kernels that
 *             contend, and whatever they get in each other's way: both slow the one that the others
 *             wait for. Nobody is stopped altogether: holding a launch is all there is.
 *             Who comes first by its priority may be ten times as far ahead: a burst of it is not cut in pieces.
 *   Floor     Its part by weight of what the card holds is nobody kept from, though another that the
 *             hardware serves badly falls behind its target for it.
 *   Slack     Holding costs work: it is what promises cost. Who was promised nothing may be slower by a tenth
 *             than its target before the others are held for it.
 *   Plenty    Where the uses add up to less than the card, and nobody is slowed down, nobody is held; nor where the limits add
 *             up to no more than the card: parts of the SMs are apart then.
 *
 * A member that comes back begins where the one that has had least is, with nothing saved up. One that is
 * at work, but has not got on for long (a kernel that waits for the host), is not waited for.
 *
 * A length that was timed beside others' kernels is too long by as much as they contend, and the longer for who is held
 * the most; and the speed is known only of who was alone. So now and then one runs alone: space_trial.h, space_speed.h.
 *
 * The numbers are the tenants' own words. What a member says it began is believed up to the time that passed;
 * one that says less than it does has more than its share of its group's time, and no more than that.
 */
#ifndef ALLOT_POLICY_SPACE_SPACE_H
#define ALLOT_POLICY_SPACE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/space/space_speed.h"

#define SPACE_AHEAD_NS UINT64_C(10000000) /* of the card's time, by the target */
#define SPACE_LEAST_NS UINT64_C(50000000) /* who has had least may go on for so long unlooked at */
#define SPACE_PLENTY_NS UINT64_C(1000000000) /* an allowance that holds nobody */
#define SPACE_LOOK_NS UINT64_C(1000000)      /* how soon to look again where somebody may be held */
#define SPACE_PAUSE_NS UINT64_C(5000000)     /* a longer one is absence ... */
#define SPACE_AWAY_NS UINT64_C(100000000)    /* ... and after so long it comes anew */

/* What was seen of a member in one look. */
struct space_seen {
	bool works;     /* has work in flight, or a thread on its way to the driver */
	bool waits;     /* a thread is held */
	bool is_paced;  /* it has had to pay since the last look ... */
	bool is_tried;  /* ... and ran alone, beside others that are held */
	bool is_barred; /* may not run now whatever is decided here: paused, stopped ... */
	bool is_spent;  /* ... or its cap is used up, which is no absence */
	/* Monotonic; values that go backwards count as no progress. */
	uint64_t paid_ns; /* tokens of what was begun: predicted length by the part of the SMs that it fills */
	uint64_t work_ns;     /* predicted length of the same */
	uint64_t untried_ns;  /* of that, what was never timed alone */
	uint64_t inflight_ns; /* predicted length of what is in flight; not monotonic */
	uint32_t rests;       /* times that it has waited for all of it; counts without end */
};

/* Sums over the last quarter of a second or so: all fade. */
struct space_sums {
	double paid_ns, work_ns, untried_ns, pause_ns;
	double begun_ns;         /* of the same, as work and as far as believed */
	double done_ns, busy_ns; /* with work in flight */
};

/* One member's account. All zero, with weight and limit set, is how it begins. */
struct space_member {
	double weight; /* > 0; of any unit, the same for all of a group */
	double limit;  /* most of the card that it may have, 0 < .. <= 1 */
	double part; /* of the card's SMs, what its processes can use: the limit, or more; 0: all */
	bool is_promised; /* its weight is a guarantee */
	bool comes_first; /* before others that are there: what it wants soon is not to wait for them */

	bool is_known; /* paid_ns and done_ns are a base for differences */
	bool is_present;
	bool is_learned; /* the lengths of what it does are known, but for a little of it */
	uint64_t paid_ns, work_ns, untried_ns, done_ns;
	uint32_t rests;
	double belief_ns; /* what it may say that it began: no more than the time that passed, saved up */
	uint64_t wanted_at, moved_at;
	uint64_t came_at; /* when it was last there after SPACE_AWAY_NS without */
	struct space_sums sums;
	struct space_speed speed;
	bool works;
	bool is_tried;         /* it runs alone, others are held */
	double rest_ns;        /* without work in flight, for so long */
	double begun_ns;       /* work since the last look ... */
	double filled_ns;      /* ... the same as SM-time: nanoseconds of the whole card ... */
	double done_alone_ns;  /* ... and what has ended since, no more than could be: */
	double done_credit_ns; /* time that it worked, and of which nothing has ended */
	double owed_ns;        /* work in flight that was not paid for */
	bool is_slowed;        /* others are in its way */
	double target;         /* work in a nanosecond, 0 to 1; 0 while absent */
	double vtime;          /* work by target, ns */
	double floor_ns; /* work that it may begin whatever the others have had; negative: had more */

	/* Decided: work in ns that it may still begin; SPACE_PLENTY_NS: as much as it likes. */
	uint64_t allowance_ns;
};

struct space {
	double vclock; /* least virtual time of those present; never goes down */
	/* While two or more had work in flight: SM-time begun, and wanted of the card at once. Both fade. */
	double filled_ns, wanted_ns;
	double holds; /* of the card's SM-time, to keep promises by */
	double gives; /* the same, to fill targets from; more than one where kernels find room that grids don't tell of */
	double went_ns, came_ns; /* of late: the clock, and SM-time begun in sum ... */
	double while_ns;         /* ... in so long */
	bool is_trial; /* set by the caller: one runs alone, and the clock stands for the others */
	bool is_crowded; /* limits of those present add up to more than the card */
	bool is_scarce;
	int present;
};

/* One look at `member`, dt_ns after the last (0 at the first), at now_ns. */
void space_member_see(struct space_member *member, const struct space_seen *seen, uint64_t now_ns,
		      uint64_t dt_ns);
/* So much work, as tokens of the member's library. */
uint64_t space_member_tokens(const struct space_member *member, uint64_t ns);
/* How much its library tells of when it is so much work, and the other way round; the work is never more. */
uint64_t space_member_told_ns(const struct space_member *member, uint64_t work_ns);
uint64_t space_member_work_ns(const struct space_member *member, uint64_t told_ns);
/* The part of the card that it has while it works, by what its processes can use: what a cap is charged by. */
double space_member_part(const struct space_member *member);
/*
 * Is much of its work untried, or its speed alone not known? Or, where that is in use, known of a time ago? The longer it is known, the
 * seldomer.
 */
bool space_member_asks_for_trial(const struct space_member *member, bool is_used, uint64_t now_ns);
/* Is begun_ns its work, as far as that can be found out? */
bool space_member_is_judged(const struct space_member *member);
/* After all were seen: works out targets and allowances. */
void space_set_allowances(struct space *space, struct space_member *const *members, size_t count,
			  uint64_t dt_ns);

#endif
