/*
 * Space sharing: the members of a group run at the same moment, as clients of one MPS server, and the hardware serves them.
 * Pure policy: no clock, no I/O. The arbiter (group.c) feeds it and hands its answers out as grants.
 *
 * Nouns:
 *   told      what a member's library reports: predicted lengths of the work that it launched
 *   speed     told work per nanosecond with work in flight while no other member works. It is learned only when that
 *             happens by itself: before others come, and in their pauses. No member is ever stopped to learn it.
 *   share     a member's part of the card while it had work or was held: told work that ended, by what would have ended alone
 *   below     a member's share is measurably less than its guarantee. That needs its speed, and known lengths.
 *   pace      the most told work that a member may begin per nanosecond
 *
 * When a member is below, members above their guarantee get a pace: at first what they do, then less and less until that
 * member has its guarantee, and more again when it has more. No pace is less than a member's guarantee. Of several members
 * the lowest priority is slowed first. A pace is kept while the member that it protects is idle.
 *
 * If no speed is known, no member is held: it is plain MPS. All counters are the tenants' own words. The worst that a false
 * one can do is to slow others down to their guarantees.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Without work for so long a member is absent. The library rings when work begins after 20 ms without. */
#define SPACE_AWAY_NS UINT64_C(25000000)
/* How soon to look again: while members are measured, and while one is held. */
#define SPACE_LOOK_NS UINT64_C(10000000)
#define SPACE_HELD_LOOK_NS UINT64_C(1000000)
#define SPACE_PLENTY_NS UINT64_C(10000000000) /* a grant that holds nobody */

/* What was seen of a member in one look. */
struct space_seen {
	bool is_counted; /* its library has counted what it began since the last look */
	bool is_alone;   /* no other member has had work since the last look */
	bool works;      /* has work in flight, or a thread on its way to the driver */
	bool waits;      /* a thread is held */
	bool is_barred;  /* may not run whatever is decided here: paused, stopped */
	/* Monotonic; values that go backwards count as no progress. */
	uint64_t told_ns;     /* predicted length of what it began ... */
	uint64_t untried_ns;  /* ... of that, what was never timed alone */
	uint64_t inflight_ns; /* predicted length of what is in flight; not monotonic */
	double busy_ns;       /* since the last look, with work in flight */
	double wanted_ns;     /* the same, or held */
};

/* Told work that has ended, and how long that took. */
struct space_rate {
	double done_ns, for_ns;
};

/* One member's account. All zero is how it begins. */
struct mps_client {
	/* Set by the caller; parts of the card while its group has it. */
	double guarantee; /* 0: none */
	double least;     /* no pace is lower; > 0 */
	double part;      /* of the SMs, what its processes can use; 0: all */
	int priority;

	bool is_counted; /* told_ns, untried_ns and done_ns are a base for differences */
	uint64_t told_ns, untried_ns, done_ns;
	uint64_t wanted_at;
	bool is_present;
	double begun_ns, begun_untried_ns; /* of late; they fade */
	bool is_learned;         /* the lengths of what it does are known, but for a little of it */
	struct space_rate alone; /* fades; kept while others are there */
	double alone_ns;         /* for so long, ever */
	bool has_ended_alone;    /* since others worked */
	struct space_rate window;                   /* while it was wanted; fades */
	double alone_pending_ns, window_pending_ns; /* since work ended last */
	double work_ns; /* that ended since the last look, as time that it takes alone with the whole card */

	/* Decided: */
	bool is_below;
	bool needs_pace;  /* it was below, and others are slower for it */
	double pace;      /* work in a nanosecond; 0: as much as it likes */
	bool is_held;     /* that is in force now */
	double credit_ns; /* told, that it may begin; negative: more than that was begun */
};

/* One look at `member`, dt_ns after the last while its group could run, at now_ns. */
void mps_client_see(struct mps_client *member, const struct space_seen *seen, uint64_t now_ns,
		    uint64_t dt_ns);
bool mps_client_is_known(const struct mps_client *member);
/* Told in a nanosecond in which it runs alone; one until that is known. */
double mps_client_speed(const struct mps_client *member);
/* Of the card, by its speed. */
double mps_client_share(const struct mps_client *member);
/* What is to be learned of it while it is alone is not known yet, or for too short a time. */
bool mps_client_learns(const struct mps_client *member);
/* How much is told of so much work, and the other way round; the work is never more. */
uint64_t mps_client_told_ns(const struct mps_client *member, uint64_t work_ns);
uint64_t mps_client_work_ns(const struct mps_client *member, uint64_t told_ns);
/* Told work that it may begin now. */
uint64_t mps_client_granted_ns(const struct mps_client *member);
/* After all were seen: which members are held. */
void space_set_paces(struct mps_client *const *members, size_t count, uint64_t dt_ns);
