/*
 * An observation is what the arbiter learns of a tenant on one device. It is made from what the
 * tenant's processes report. The tenant can write anything into its report. So a counter is
 * believed only if it grows, and busy time by no more than the time that has passed. Not thread
 * safe; the caller (arbitration.c) holds its lock.
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
	uint64_t busy_credited_ns;         /* the part of busy_ns that is taken as true */
	/* busy_credited_ns at the last pulse; decaying sum of what it grew by */
	uint64_t recent_seen_ns, recent_ns;
	uint32_t ask_seen; /* number of the latest memory request, as last read */
	/*
	 * For a process on several devices. is_held_elsewhere: it waits at the gate of another
	 * device. comes_here: it launched work on this device between its last two such waits.
	 * launches_when_held: its launches on this device when the last such wait began.
	 */
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
	/* sum of the tenant's counters at the last observation, to notice progress */
	uint64_t progress;
	uint64_t progress_ns; /* when `progress` last changed */
	uint64_t checked_ns;  /* when /proc was last read */
	bool stopped;
	/* a process has measured memory of its own that no census has confirmed yet */
	bool has_fresh;
	bool has_asked; /* a memory request (region_want) began or ended */
	/*
	 * Set by the caller if the tenant's turns on several devices are at the same time. Then a
	 * process that waits at another device's gate also counts as waiting at this device, if
	 * comes_here is true. Such a process probably has one thread that uses the devices by turns
	 * and would launch here next.
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
 * Reads every process's slot and returns the sum. `has_lease`: the tenant holds the lease or is
 * draining. Only then is a tenant without progress looked up in /proc, to find out whether it can
 * run at all.
 */
struct arbiter_observation observer_look(struct observer *o, uint64_t now_ns, bool has_lease);

/*
 * Writes each process's recent busy time into its slot of `report`. Each call first reduces the old
 * sum of busy time by 1/OBSERVE_FADE. Call at even intervals until it returns false, because all
 * sums are zero.
 */
#define OBSERVE_FADE 20
bool observer_publish_recent(struct observer *o, struct region_report *report);
