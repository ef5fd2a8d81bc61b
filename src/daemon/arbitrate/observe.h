/*
 * An observation is what the arbiter learns of a tenant on one device. It is made from what the
 * tenant's processes report. The tenant can write anything into its report, so counters here only
 * grow, and by no more than time allows. Not thread safe; the caller (arbitration.c) holds its
 * lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/region.h"
#include "policy/lease/arbiter.h"
#include "policy/lease/turns.h"

#define OBSERVE_STALL_NS \
	UINT64_C(20000000) /* after this long without progress, check whether the tenant can run */

struct observed_process {
	unsigned slot;
	int pid;
	bool migrated;
	uint64_t since_ns;                 /* when the slot was taken */
	uint64_t busy_seen, launches_seen; /* the counters as last read */
	uint64_t busy_credited_ns;         /* the believed part of busy_ns */
	/* credited time at the last pulse, and a decaying sum */
	uint64_t recent_seen_ns, recent_ns;
	uint32_t ask_seen; /* the memory request as last read */
	/*
	 * For a process on several devices. is_held_elsewhere: it waits at the gate of another
	 * device.
	 */
	/* comes_here: it launched here between its last two waits elsewhere */
	bool is_held_elsewhere, comes_here;
	uint64_t launches_when_held;
};

struct observer {
	const struct region_report *report;
	unsigned device;
	struct observed_process *process;
	struct turns_process *turn; /* the same processes, as turns.h needs them */
	size_t count, capacity;
	struct turns turns;
	uint64_t busy_ns, launches; /* sums that include ended processes */
	uint64_t progress;          /* fingerprint of the last observation */
	uint64_t progress_ns;       /* when it last changed */
	uint64_t checked_ns;        /* when /proc was last read */
	bool stopped;
	bool has_fresh; /* a process has measured memory that no census has seen */
	bool has_asked; /* a memory request (region_want) began or ended */
	/*
	 * Set by the caller if the tenant has its turns on several devices at once. Then a process
	 * that waits at the gate of another device also counts as waiting here, if it launched here
	 * since its previous such wait. One thread may be going from device to device.
	 */
	bool in_gang;
};

/*
 * Starts and stops observing the process in a slot. observer_add() returns -ENOMEM if out of
 * memory.
 */
int observer_add(struct observer *o, unsigned slot, int pid, uint64_t now_ns);
void observer_remove(struct observer *o, unsigned slot);
void observer_free(struct observer *o); /* frees the members, not `o` itself */

/*
 * Reads every process's slot. `has_lease`: the tenant holds the lease or is draining. Only then, a
 * tenant without progress is looked up in /proc.
 */
struct arbiter_observation observer_look(struct observer *o, uint64_t now_ns, bool has_lease);

/*
 * Writes each process's recent busy time into its slot of `report`. Each call reduces the sum of
 * credited time by 1/OBSERVE_FADE. Call at even intervals until it returns false, when all sums are
 * zero.
 */
#define OBSERVE_FADE 20
bool observer_publish_recent(struct observer *o, struct region_report *report);
