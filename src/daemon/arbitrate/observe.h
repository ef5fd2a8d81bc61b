/*
 * An observation is the state of one tenant on one device, as the arbiter (policy/lease/arbiter.h) sees it: work, demand and
 * progress. It is read from the slots in shared memory. The tenant's processes may write anything there, so a counter is
 * believed only if it grows, and busy time only up to the time that passed. Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/region.h"
#include "policy/lease/arbiter.h"
#include "policy/lease/turns.h"

/* After this time without progress, check whether the tenant can run. */
#define OBSERVE_STALL_NS UINT64_C(20000000)

struct observed_process {
	unsigned slot;
	int pid;
	bool migrated;
	uint64_t since_ns;                 /* when the slot was taken */
	uint64_t busy_seen, launches_seen; /* as last read */
	uint64_t busy_credited_ns;         /* part of busy_ns that is believed */
	/* busy_credited_ns at the last observer_publish_recent(), and a decaying sum of its growth. */
	uint64_t recent_seen_ns, recent_ns;
	uint32_t request_seen; /* number of the latest memory request, as last read */
	/*
	 * For a process on several devices. is_held_elsewhere: it waits at another device's gate. launches_when_held: its
	 * launches here when that wait began. comes_here: it launched here between its last two such waits.
	 */
	bool is_held_elsewhere, comes_here;
	uint64_t launches_when_held;
};

struct observer {
	const struct region_report *report;
	unsigned device;
	struct observed_process *process;
	struct turns_process *turn; /* turn[i] is of process[i] */
	size_t count, capacity;
	struct turns turns;
	uint64_t busy_ns, launches; /* sums over all processes, ended ones too */
	/* Sum of the tenant's counters, to notice progress. */
	uint64_t progress;
	uint64_t progress_ns;
	uint64_t checked_ns; /* when /proc was last read */
	bool stopped;
	/* A process reports memory (fresh_bytes) that no census has confirmed yet. */
	bool has_new_memory;
	bool has_memory_request; /* a memory request (region_want) began or ended */
	/*
	 * Set by the caller if the tenant has its turns on several devices at the same time. A process with comes_here and
	 * is_held_elsewhere then counts as waiting here too: probably one thread uses the devices in turn, and will launch here
	 * next.
	 */
	bool in_gang;
};

/* Call when a process gets a slot, and when it leaves the slot. observer_add() returns 0 or -ENOMEM. */
int observer_add(struct observer *o, unsigned slot, int pid, uint64_t now_ns);
void observer_remove(struct observer *o, unsigned slot);
void observer_free(struct observer *o); /* frees the members, not `o` itself */

/* has_lease: the tenant has the lease or is draining. If it makes no progress, reads /proc to see whether it is stopped. */
struct arbiter_observation observer_read(struct observer *o, uint64_t now_ns, bool has_lease);

/*
 * Writes each process's recent busy time, a decaying sum, into its slot: reduces the sum by 1/OBSERVE_FADE, then adds the busy
 * time since the last call. Call at even intervals until it returns false: all sums are then zero.
 */
#define OBSERVE_FADE 20
bool observer_publish_recent(struct observer *o, struct region_report *report);
