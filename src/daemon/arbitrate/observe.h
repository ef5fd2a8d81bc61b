/*
 * An observation is the state of one tenant on one device, as the arbiter (policy/lease/arbiter.h) sees it: work, demand and
 * progress. It is read from the slots in shared memory to which the tenant's processes write. They may write anything, so a
 * counter is believed only if it grows, and busy time only up to the time that passed. Not thread safe.
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
	uint64_t busy_seen, launches_seen; /* counters as last read */
	uint64_t busy_credited_ns;         /* the part of busy_ns that is believed */
	/* busy_credited_ns at the last observer_publish_recent(), and a decaying sum of its growth */
	uint64_t recent_seen_ns, recent_ns;
	uint32_t request_seen; /* number of the latest memory request, as last read */
	/*
	 * For a process on several devices. is_held_elsewhere: it waits at another device's gate (until it may launch there).
	 * launches_when_held: its launches on this device when that wait began. comes_here: it launched on this device between
	 * its last two such waits.
	 */
	bool is_held_elsewhere, comes_here;
	uint64_t launches_when_held;
};

struct observer {
	const struct region_report *report;
	unsigned device;
	struct observed_process *process;
	struct turns_process *turn; /* turn[i]: the turns (turns.h) of process[i] */
	size_t count, capacity;
	struct turns turns;
	uint64_t busy_ns, launches; /* sums over all processes, ended ones too */
	/* sum of the tenant's counters, to notice progress */
	uint64_t progress;
	uint64_t progress_ns; /* time of the last change of `progress` */
	uint64_t checked_ns;  /* time of the last reading of /proc */
	bool stopped;
	/* some process reports memory (fresh_bytes) that no census has confirmed yet */
	bool has_new_memory;
	bool has_memory_request; /* a memory request (region_want) began or ended */
	/*
	 * Set by the caller if the tenant has its turns on several devices at the same time. A process with comes_here and
	 * is_held_elsewhere then counts as waiting here too: probably one thread uses the devices in turn, and
	 * will launch here next.
	 */
	bool in_gang;
};

/* Start and stop observing the process in a slot. observer_add() returns -ENOMEM if out of memory. */
int observer_add(struct observer *o, unsigned slot, int pid, uint64_t now_ns);
void observer_remove(struct observer *o, unsigned slot);
void observer_free(struct observer *o); /* frees the members, not `o` itself */

/*
 * Reads all slots and returns the sum. If the tenant has the lease or is draining (`has_lease`) but makes no progress, also
 * reads /proc to see whether its processes are stopped.
 */
struct arbiter_observation observer_read(struct observer *o, uint64_t now_ns, bool has_lease);

/*
 * Writes each process's recent busy time, a decaying sum, into its slot: reduces the sum by 1/OBSERVE_FADE, then adds the busy
 * time since the last call. Call at even intervals until it returns false: all sums are then zero.
 */
#define OBSERVE_FADE 20
bool observer_publish_recent(struct observer *o, struct region_report *report);
