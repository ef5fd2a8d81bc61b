/*
 * Turns within a tenant decide which of its processes runs while the tenant holds the lease of a device. The hardware slices
 * between the contexts of several processes, and loses 8 to 10 % of the time in which two have work. So one process has the
 * turn; the others wait at their gates as if another tenant had the lease.
 *
 *   choice   Each new lease goes to the process that was served least, among the processes that want it. A process that
 *            returns from idleness counts as served at least as much as the process that had the turn last.
 *   length   A turn usually lasts for the whole lease, so that a change of processes costs nothing beyond the hand-over that
 *            happens anyway. Its full length is a quantum or TURNS_LEAST_NS of time in leases, whichever is more. In a lease
 *            that is longer than that, the turn may pass to another process, without a drain. If no other tenant had the
 *            device since the last lease (only the cap ended it), the turn goes on in the next lease, until it has had its
 *            full length or began TURNS_LONGEST_NS ago. (At a low cap, the full length takes seconds.)
 *   idle     A process that is idle for as long as its patience (patience.h) loses the turn to a process that waits.
 *   none     If only one process wants the device, every process has the turn, so no launch waits for a decision.
 *
 * Processes may need each other: one process's kernel spins for another process's kernel, or a thread awaits another process's
 * results. A turn ends by idleness or by time, so nothing hangs, but such processes would be slow. So turns are given up for
 * 0.1 s, and each further time for twice as long, up to a minute. This happens if others wait while the process with the turn
 *
 *   - has begun nothing for 4 x the length of its in-flight work (at least drain_min_ns, at most drain_max_ns), and that work
 *     has not ended;
 *   - or let a launch pass its gate because no work ended;
 *   - or, together with earlier turns that ended by idleness, has been idle for as much time as slicing would cost.
 *
 * The tenant's account is the same whichever of its processes uses the lease. Pure policy on plain data: no clock, no memory of
 * its own. Not thread safe. Times are nanoseconds of any monotonic clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/lease/arbiter.h"
#include "policy/lease/rules/patience.h"

#define TURNS_LEAST_NS UINT64_C(25000000)
#define TURNS_LONGEST_NS UINT64_C(100000000)

/* One observation of a process on the device. No value is trusted. */
struct turns_observation {
	bool waits;           /* a thread is held at the gate */
	bool works;           /* a thread is between gate and driver, or work is in flight */
	uint64_t idle_ns;     /* how long the process was without work, if it reported that */
	uint64_t inflight_ns; /* predicted length of the work in flight */
	uint64_t launches;
	/* waits at the gate that were given up, because no work ended */
	uint32_t stuck;
};

/* The caller keeps an array of the tenant's processes in any order; zero at first, except `slot`. */
struct turns_process {
	unsigned slot;
	struct turns_observation seen;
	bool is_present;    /* waits or works */
	uint64_t came_at;   /* when is_present last became true */
	uint64_t served_ns; /* time that it had the turn */
	uint64_t worked_at; /* latest work, or begin of its turn if later */
	/* time of the latest of three events: a launch, an observation without work, the begin of its turn */
	uint64_t launched_at;
	uint64_t launched_inflight_ns; /* predicted work in flight at launched_at */
	bool has_patience;
	struct patience patience;
};

/* Why the tenant's processes last stopped taking turns. Each reason is about the process with the turn, while others waited. */
enum turns_reason {
	TURNS_LATE,  /* its work did not end */
	TURNS_STUCK, /* its gate gave up waiting for the end of any work */
	TURNS_IDLE,  /* processes with the turn were idle for too long in sum */
};

struct turns {
	uint32_t turn;   /* slot + 1 of the process with the turn; 0: every process */
	bool was_in_use; /* at the last turns_step(), the tenant had the lease or drained */
	uint64_t given;
	uint64_t given_up;
	enum turns_reason reason;

	uint64_t lease;
	bool is_open; /* every process has the turn until the lease's end */
	uint64_t stepped_at, began_at;
	uint64_t had_ns; /* lease time that the present turn has used */
	/* a process that returns counts as if it had been served for at least this long */
	uint64_t floor_ns;
	uint32_t stuck_before;
	/* time under turns, and the part of it lost to idleness; both fade */
	uint64_t held_ns, lost_ns;
	/* off_ns: for how long turns were given up the last time; off_until: when that ends or ended */
	uint64_t off_ns, off_until;
};

enum turns_lease_state {
	/* every process has the turn: the tenant runs without holding the lease, or is a gang, or the setting "turns" is off */
	TURNS_OPEN,
	TURNS_AWAY, /* the lease is ending, or another tenant has a lease */
	TURNS_HELD,
};

struct turns_lease {
	enum turns_lease_state state;
	uint64_t number; /* differs from one lease to the next */
	bool is_again;   /* no other tenant had a lease since this tenant's previous one */
	uint64_t now_ns;
	uint64_t quantum_ns;
	double handover_ns;
	/* settings for idleness, start limit and drain */
	const struct arbiter_config *config;
};

/* Call for each process before turns_step(). */
void turns_observe(const struct turns *t, struct turns_process *p,
		   const struct turns_observation *seen, uint64_t now_ns);
/*
 * Decides which process has the turn, and writes t->turn. *t begins as all zeros. Returns the latest time for the next step;
 * UINT64_MAX: at the next observation. While the tenant has neither lease nor work, steps may be skipped, except directly after
 * a lease (was_in_use).
 */
uint64_t turns_step(struct turns *t, struct turns_process *process, size_t count,
		    const struct turns_lease *lease);
/* Returns how long the process with the turn may be idle; UINT64_MAX if every process has the turn. */
uint64_t turns_patience_ns(const struct turns *t, const struct turns_process *process, size_t count);
