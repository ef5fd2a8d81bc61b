/*
 * Space sharing: the members of a group run at the same moment, as clients of one MPS server, and the hardware serves them.
 * Pure policy: no clock, no I/O. The arbiter (lease_group.c) supplies the input and turns the results into grants.
 *
 * Terms:
 *   reported  work that a member launched, counted by the lengths that its library predicts and reports (reported_work_ns)
 *   speed     reported work per nanosecond with work in flight while no other member works. It is learned only when the
 *             others are away or pause by themselves. No member is ever stopped to learn the speed of another.
 *   share     the part of the GPU that a member got: the reported work that ended, divided by the work that would have ended
 *             without other members. Counts only time in which the member had work, or a thread held at the gate.
 *   below     a member is below if its share is measurably less than its guarantee. To know this, the member's speed and the
 *             lengths of its work must be known.
 *   pace      the most reported work that a member may begin per nanosecond, as a part of its speed alone on the whole GPU
 *
 * When a member is below, members above their guarantee get a pace: at first their present share, then less and less until the
 * member below has its guarantee. When that member has more, the paces rise again. No pace is less than a member's guarantee.
 * Members with the lowest priority are slowed first. While the member that a pace protects is absent, the pace is kept, but
 * limits nothing.
 *
 * If no speed is known, no member is held: the group is plain MPS. All counters are reports of the tenants. The worst that a
 * false report can do is to slow other members down to their guarantees.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A member that has had neither work nor a waiting thread for this long counts as absent. The time must exceed 20 ms: after a
 * pause of that length, the member's library rings its doorbell when work begins, so a return from absence is noticed at once.
 */
#define SPACE_AWAY_NS UINT64_C(25000000)
/* Intervals of polls: SPACE_POLL_NS while members are measured, SPACE_HELD_POLL_NS while a member is held. */
#define SPACE_POLL_NS UINT64_C(10000000)
#define SPACE_HELD_POLL_NS UINT64_C(1000000)
#define SPACE_PLENTY_NS UINT64_C(10000000000) /* a grant that limits no member */

/* One poll's observations of a member. */
struct mps_client_observation {
	bool is_counted; /* the library has counted the work begun since the last poll */
	bool is_alone;   /* no other member had work since the last poll */
	bool works;      /* has work in flight, or a thread between the gate and the driver */
	bool waits;      /* a thread is held at the gate */
	bool is_barred;  /* paused or stopped: must not run, whatever this module decides */
	/* monotonic; values that fall count as no progress */
	uint64_t reported_work_ns; /* predicted length of the work that the member began */
	/* the part of reported_work_ns for kernels that were timed fewer than three times without another tenant's work */
	uint64_t untried_ns;
	uint64_t inflight_ns; /* predicted length of the work in flight; not monotonic */
	double busy_ns;       /* time with work in flight since the last poll */
	double wanted_ns;     /* like busy_ns, but also counts time in which a thread was held */
};

/* Reported work that has ended, and how long it took. */
struct space_rate {
	double done_ns, for_ns;
};

/* Initialize to all zeros. */
struct mps_client {
	/* set by the caller, as parts of the GPU during the group's lease: */
	double guarantee; /* 0: none */
	double least;     /* lower bound of the member's pace, above 0 */
	double part;      /* part of the SMs that the member's processes can use; 0: all */
	int priority;

	/* reported_work_ns, untried_ns and done_ns: values of the last poll, which the next poll compares with its counters */
	bool is_counted;
	uint64_t reported_work_ns, untried_ns, done_ns;
	uint64_t wanted_at;
	bool is_present;
	/* reported work begun lately, and the part of it that was never timed alone; both fade */
	double begun_ns, begun_untried_ns;
	/* the lengths of almost all of the member's launches have been timed */
	bool is_learned;
	/* work that ended while no other member worked; decays, but not while others are present */
	struct space_rate alone;
	double alone_ns;      /* total time for which the member was measured alone */
	bool has_ended_alone; /* some work ended after the member became alone */
	/* work that ended, and the time in which the member had work or a held thread; fades */
	struct space_rate window;
	double alone_pending_ns,
		window_pending_ns; /* busy_ns and wanted_ns since the member's work last ended */
	/* work that ended since the last poll, as the time that this work takes alone on the whole GPU */
	double work_ns;

	/* results of space_set_paces(): */
	bool is_below;
	bool needs_pace; /* the member was below its guarantee, so others are slowed for it */
	double pace;     /* part of the GPU; 0: unlimited */
	bool is_held;    /* the pace is in force now */
	/* reported work that the member may begin; negative: it began too much */
	double credit_ns;
};

/* Records one poll at now_ns. dt_ns: time since the last poll; 0 if the group could not run. */
void mps_client_observe(struct mps_client *member, const struct mps_client_observation *seen,
			uint64_t now_ns, uint64_t dt_ns);
bool mps_client_is_known(const struct mps_client *member);
/* The member's reported work per nanosecond while no other member runs; 1 until known. */
double mps_client_speed(const struct mps_client *member);
/* The member's share of the GPU, computed from its speed; 0: not measured. */
double mps_client_share(const struct mps_client *member);
/* True if measuring the member alone would still teach something new. */
bool mps_client_learns(const struct mps_client *member);
/*
 * Convert the time that work takes while no other member works (work_ns) to reported work (see the terms above), and back.
 * mps_client_work_ns() never returns more than reported_work_ns.
 */
uint64_t mps_client_reported_work_ns(const struct mps_client *member, uint64_t work_ns);
uint64_t mps_client_work_ns(const struct mps_client *member, uint64_t reported_work_ns);
/* The reported work that the member may begin now. */
uint64_t mps_client_granted_ns(const struct mps_client *member);
/* Call after all members were polled. Decides which members are held, and their paces. */
void space_set_paces(struct mps_client *const *members, size_t count, uint64_t dt_ns);
