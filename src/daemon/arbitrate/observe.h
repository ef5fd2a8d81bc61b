/*
 * An observation: what the arbiter is told of a tenant on one device, made from what its processes report. The tenant can
 * write anything into its report: counters only go up here, and by no more than time allows. Not thread safe; the caller
 * (arbitration.c) holds its lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/region.h"
#include "policy/lease/arbiter.h"
#include "policy/lease/turns.h"

#define OBSERVE_STALL_NS UINT64_C(20000000) /* without progress: check whether it can run */

struct observed_process {
	unsigned slot;
	int pid;
	bool migrated;
	uint64_t since_ns;                  /* when the slot was taken */
	uint64_t busy_seen, launches_seen;  /* the counters as last read */
	uint64_t busy_credited_ns;          /* the part of busy_ns that was believed */
	uint64_t recent_seen_ns, recent_ns; /* credited at the last pulse; a fading sum */
	uint32_t ask_seen;                  /* the request for memory, as last read */
	/* For a process on several devices: held at the gate of another, ... */
	bool is_held_elsewhere, comes_here; /* ... and launched here since the time before that? */
	uint64_t launches_when_held;
};

struct observer {
	const struct region_report *report;
	unsigned device;
	struct observed_process *process;
	struct turns_process *turn; /* the same processes, as turns.h needs them */
	size_t count, capacity;
	struct turns turns;
	uint64_t busy_ns, launches; /* sums that outlive processes */
	uint64_t progress;          /* fingerprint of the last observation */
	uint64_t progress_ns;       /* when it last changed */
	uint64_t checked_ns;        /* when /proc was last asked */
	bool stopped;
	bool has_fresh; /* at the last observation: a process measured memory that no census has seen */
	bool has_asked; /* at the last observation: a request for memory began or ended (region_want) */
	/*
	 * Set by the caller: the tenant has its turns on several devices at once. Then a process that is held at the
	 * gate of another device waits for this one too, if it has launched here since it was held last: it may
	 * be one thread that goes from device to device.
	 */
	bool in_gang;
};

int observer_add(struct observer *o, unsigned slot, int pid, uint64_t now_ns);
void observer_remove(struct observer *o, unsigned slot);
void observer_free(struct observer *o); /* what it holds, not itself */

/*
 * Looks at every process. `has_lease`: the tenant holds the lease or is draining, so that standing
 * still is worth a look into /proc.
 */
struct arbiter_observation observer_look(struct observer *o, uint64_t now_ns, bool has_lease);

/*
 * Tells each process, in its slot of `report`, how much it was busy of late: what was credited fades
 * by OBSERVE_FADE of itself at each call. Call at even intervals, until it returns false: nothing is left.
 */
#define OBSERVE_FADE 20
bool observer_publish_recent(struct observer *o, struct region_report *report);
