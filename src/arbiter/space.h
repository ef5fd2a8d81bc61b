/*
 * Space instead of time: how much of the card's SM-time each member of a group may begin, where all of
 * them run at the same moment (clients of one MPS server). Pure policy: no clock, no I/O; the arbiter
 * (group.c) feeds it and hands its answers out as grants.
 *
 *   SM-time   What a piece of work takes up: its predicted length, alone, times the part of the card's SMs
 *             that its grid fills. Wall time says nothing here, since it overlaps. A nanosecond of it is
 *             a nanosecond of the whole card.
 *   Use       What a member could have if it were alone: SM-time by the length of its work, and the
 *             short pauses between its launches. One that launches small kernels one after the other
 *             can't have half a card, whatever it is promised, and the rest is the others'.
 *   Target    Water is filled in by weight, to each at most its use and its limit: what one does not
 *             use flows to the others; for that it may be slowed down by a twentieth. There is as much
 *             water as the card holds: all of it, or where members slow each other down, what came out
 *             in sum while they did.
 *   Turn      Who has had least by its target is never held; others are, when they are SPACE_AHEAD_NS
 *             ahead of it. So shares are as targets say whatever the hardware does with kernels that
 *             contend, and whatever they get in each other's way: both slow the one that the others
 *             wait for. Nobody is stopped altogether: holding a launch is all there is.
 *   Floor       Its part by weight of what the card holds is nobody kept from, though another that the
 *             hardware serves badly falls behind its target for it.
 *   Trial       A length that was timed beside others' kernels is too long by as much as they contend, and the
 *             longer for who is held the most. So one with work that was never timed alone, or whose own streams overlap in a way not known yet, runs
 *             alone, for some milliseconds, soon; and each in turn now and then, as lengths change.
 *   Slack       Holding costs work: it is what promises cost. Who was promised nothing may be slower by a tenth
 *             than its target before the others are held for it.
 *   Plenty    Where the uses add up to less than the card, and nobody is slowed down, nobody is held.
 *
 * A member that comes back begins where the one that has had least is, with nothing saved up. One that is
 * at work, but has not got on for long (a kernel that waits for the host), is not waited for.
 *
 * Where a member's own streams overlap, what it could use is taken to be all until it was seen alone. Their pieces'
 * lengths may have been timed beside each other, and be too long: it has no more than its part of the time for that.
 *
 * The numbers are the tenants' own words. What a member says it began is believed up to the time that passed;
 * one that says less than it does has more than its share of its group's time, and no more than that.
 */
#ifndef ALLOT_ARBITER_SPACE_H
#define ALLOT_ARBITER_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPACE_AHEAD_NS UINT64_C(10000000) /* of the card's time, by the target */
#define SPACE_LEAST_NS UINT64_C(50000000) /* who has had least may go on for so long unlooked at */
#define SPACE_PLENTY_NS UINT64_C(1000000000) /* an allowance that holds nobody */
#define SPACE_LOOK_NS UINT64_C(1000000)      /* how soon to look again where somebody may be held */
/* At most so often one runs alone, and if no work asks for it, so often. */
#define SPACE_TRIAL_EVERY_NS UINT64_C(250000000)
#define SPACE_TRIAL_RARELY_NS UINT64_C(5000000000)
/* For so long, in turn; the others' work may take so long to end until then. */
#define SPACE_TRIAL_NS UINT64_C(5000000)
#define SPACE_TRIAL_WAIT_NS UINT64_C(15000000)
#define SPACE_PAUSE_NS UINT64_C(5000000) /* a longer one is absence */

/* What was seen of a member in one look. */
struct space_seen {
	bool works;    /* has work in flight, or a thread on its way to the driver */
	bool waits;    /* a thread is held */
	bool is_paced; /* it has had to pay since the last look ... */
	bool is_tried; /* ... and ran alone, beside those who are held */
	bool is_barred; /* may not run now whatever is decided here: paused, stopped, its cap used up */
	/* Monotonic; values that go backwards count as no progress. */
	uint64_t paid_ns;     /* SM-time of what was begun */
	uint64_t work_ns;     /* predicted length of the same */
	uint64_t untried_ns;  /* of that, what was never timed alone */
	uint64_t inflight_ns; /* predicted length of what is in flight; not monotonic */
};

/* Sums over the last quarter of a second or so: all fade. */
struct space_sums {
	double told_ns, paid_ns, work_ns, untried_ns, pause_ns; /* told: before it was believed */
	double done_ns, busy_ns;                                /* with work in flight */
	double done_alone_ns, busy_alone_ns;                    /* of these, with nobody else's */
};

/* One member's account. All zero, with weight and limit set, is how it begins. */
struct space_member {
	double weight;    /* > 0; of any unit, the same for all of a group */
	double limit;     /* most of the card that it may have, 0 < .. <= 1 */
	double part;      /* of the card's SMs, what its processes can use: the limit, or more */
	bool is_promised; /* its weight is a guarantee */

	bool is_known; /* paid_ns and done_ns are a base for differences */
	bool is_present;
	uint64_t paid_ns, work_ns, untried_ns, done_ns;
	uint64_t belief_ns; /* what it may say that it began: no more than the time that passed, saved up ... */
	uint64_t pending_ns; /* ... and what it said beyond, of work that goes on */
	uint64_t wanted_at, moved_at;
	struct space_sums sums;
	double tried_for_ns,
		tried_done_ns; /* of trials: their time, and the length of the work done */
	bool works;
	uint64_t begun_ns;    /* SM-time since the last look ... */
	double alone_ns;      /* ... the time that it takes alone ... */
	double done_alone_ns; /* ... and the same of what has ended since, no more than could be: */
	double done_credit_ns; /* time that it worked, and of which nothing has ended */
	double owed_ns;        /* SM-time in flight that was not paid for */
	bool is_slowed;        /* others are in its way */
	double target;         /* of the card, 0 to 1; 0 while absent */
	double vtime;          /* SM-time by target, ns */
	double floor_ns; /* SM-time that it may begin whatever the others have had; negative: had more */

	/* Decided: SM-time in ns that it may still begin; SPACE_PLENTY_NS: as much as it likes. */
	uint64_t allowance_ns;
};

struct space {
	double vclock; /* least virtual time of those present; never goes down */
	/* While two or more had work in flight: begun, and wanted of the card at once. Both fade. */
	double begun_ns, wanted_ns;
	bool is_scarce;
	int present;
};

/*
 * One look at `member`, dt_ns after the last (0 at the first), at now_ns; `others_work`: somebody else of
 * the group has work in flight. Returns the SM-time that it has begun since, ns, as far as believed.
 */
uint64_t space_member_see(struct space_member *member, const struct space_seen *seen,
			  bool others_work, uint64_t now_ns, uint64_t dt_ns);
/* So much SM-time, as the member's library counts it. */
uint64_t space_member_tokens(const struct space_member *member, uint64_t ns);
/* Is enough of its work untried, or how its streams overlap not known? */
bool space_member_asks_for_trial(const struct space_member *member);
/* After all were seen: works out targets and allowances. */
void space_set_allowances(struct space *space, struct space_member *const *members, size_t count,
			  uint64_t dt_ns);

#endif
