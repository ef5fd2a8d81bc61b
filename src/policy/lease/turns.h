/*
 * Turns within a tenant: which of its processes runs while it holds the lease of a device. The hardware slices between the
 * contexts of several processes, and loses 8 to 10 % of the time in which two have work. So one process has the turn;
 * the others wait at their gates as if another tenant had the lease.
 *
 *   choice   Each new lease goes to the process that was served least, of those that want it. One that comes back from
 *            idleness is no further behind than the one whose turn it was last.
 *   length   The whole lease, so that a change of processes costs nothing beyond the hand-over that happens anyway. Where
 *            no other tenant has the device in between (a cap alone), and in a longer lease: TURNS_LEAST_NS of leases or
 *            a quantum, whichever is more, but TURNS_LONGEST_NS at most from lease to lease, since at a low cap the others
 *            would wait for seconds. Within a lease the turn passes without a drain.
 *   idle     A process that is idle for as long as its patience (patience.h) loses the turn to one that waits.
 *   none     Where only one process wants the device every process has the turn: no launch waits for a look.
 *
 * Processes may need each other: kernels that spin for one another's, results that are awaited on the CPU. A turn ends by
 * idleness or by time, so nothing hangs; but it would be slow. So turns are given up for 0.1 s, doubled up to a minute when
 * that happens again, when the process whose turn it is
 *
 *   - began nothing for 4 x the length of its in-flight work (drain_min_ns to drain_max_ns, as drains have), and that has
 *     not ended, or passed its gate for want of progress, while others waited;
 *   - or, with its like, has been idle for as much time in all, while others waited, as slicing would cost.
 *
 * The tenant's account is the same whichever of its processes uses the lease.
 *
 * Pure policy on plain data: no clock, no memory of its own. Not thread safe; nanoseconds of any monotonic clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/lease/arbiter.h"
#include "policy/lease/rules/patience.h"

#define TURNS_LEAST_NS UINT64_C(25000000)
#define TURNS_LONGEST_NS UINT64_C(100000000)

/* What is seen of a process on the device; nothing of it is trusted. */
struct turns_seen {
	bool waits;       /* a thread is held at the gate */
	bool works;       /* one is between gate and driver, or work is in flight */
	uint64_t idle_ns; /* its word on how long it has been without work, where it told that */
	uint64_t inflight_ns; /* predicted length of the work in flight */
	uint64_t launches;    /* so far */
	uint32_t stuck;       /* passes that gave up waiting for own progress, so far */
};

/* A process of the tenant's. The caller keeps them in an array, in any order; all zero but for its slot at first. */
struct turns_process {
	unsigned slot;
	struct turns_seen seen;
	bool is_present;               /* waits or works ... */
	uint64_t came_at;              /* ... since */
	uint64_t served_ns;            /* how long it had the turn; see choice */
	uint64_t worked_at;            /* or got the turn */
	uint64_t launched_at;          /* began work last, or has none */
	uint64_t launched_inflight_ns; /* then */
	bool has_patience;             /* it has begun */
	struct patience patience;
};

/* Why turns were given up the last time: what the process whose turn it was did while others waited. */
enum turns_reason {
	TURNS_LATE,   /* its work did not end */
	TURNS_STUCK,  /* its gate gave up waiting for any end */
	TURNS_RESTED, /* it and its like rested too much */
};

struct turns {
	uint32_t turn;     /* whose it is: slot + 1; 0: everyone's */
	bool was_in_use;   /* at the last step: under the lease, or in its drain */
	uint64_t given;    /* turns so far */
	uint64_t given_up; /* times that they were given up */
	enum turns_reason reason;

	/* Its own. */
	uint64_t lease; /* number of the last */
	bool is_open;   /* it is everyone's, to the end of the lease */
	uint64_t stepped_at, began_at;
	uint64_t had_ns;   /* of leases, in the present turn */
	uint64_t floor_ns; /* the least that one that comes back has been served */
	uint32_t stuck_before;
	uint64_t held_ns, lost_ns;  /* under turns, and of that to rests: both fade */
	uint64_t off_ns, off_until; /* for how long they are given up, or were; and when that ends */
};

enum turns_lease_state {
	TURNS_OPEN, /* no lease is needed, or this lease allows no turns among processes */
	TURNS_AWAY, /* the lease is ending, or another tenant has it */
	TURNS_HELD,
};

/* The tenant's lease, now. */
struct turns_lease {
	enum turns_lease_state state;
	uint64_t number; /* differs from one lease to the next */
	bool is_again;   /* no other tenant had one since the last */
	uint64_t now_ns;
	uint64_t quantum_ns;                 /* in force */
	double handover_ns;                  /* what one costs, by what was measured */
	const struct arbiter_config *config; /* of idle, start_limit and drain */
};

/* What was seen of a process: to be called for each at each look, before turns_step(). */
void turns_see(const struct turns *t, struct turns_process *p, const struct turns_seen *seen,
	       uint64_t now_ns);
/*
 * Decides whose turn it is from now on: t->turn. All zero `t` is one that has seen nothing. Returns when to
 * step again at the latest, UINT64_MAX: when something was seen. It may be skipped while the tenant has
 * neither lease nor work, but for the first time after it had one (was_in_use).
 */
uint64_t turns_step(struct turns *t, struct turns_process *process, size_t count,
		    const struct turns_lease *lease);
/* How long the process whose turn it is may rest; UINT64_MAX when it is everyone's. */
uint64_t turns_patience_ns(const struct turns *t, const struct turns_process *process, size_t count);
