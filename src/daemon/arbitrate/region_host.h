/*
 * The daemon's side of one tenant's region (abi/shm/region.h): it makes the two memory files, seals them and keeps them
 * mapped.
 *
 *     file      daemon            tenant
 *     control   mapped writable   descriptor opened read-only; F_SEAL_FUTURE_WRITE keeps it so
 *     report    mapped writable   descriptor; sealed against shrinking and growing
 *
 * Create and free are called by one thread, which must not end in between: its end is taken for the daemon's (region.h:
 * owner). The maps are written with atomics by any thread.
 */
#pragma once

#include "abi/shm/region.h"
#include "base/error.h"

struct region_host {
	struct region_control *control; /* NULL: not created */
	struct region_report *report;
	int control_fd; /* read-only; the one that is sent */
	int report_fd;
};

/*
 * Makes both files for a tenant of that name, with header fields filled in and every device zero but
 * for its lease (LEASE_STOP). *host is written only on success. Needs /proc.
 */
int region_host_create(struct region_host *host, const char *tenant_name, uint64_t epoch,
		       unsigned device_count, struct error *err);
/* Unmaps and closes; a zeroed or freed host is fine. */
void region_host_free(struct region_host *host);

/* The same for a control map alone. */
void region_set_lease(struct region_control *control, unsigned device, enum lease_state state);

/*
 * Says whose turn it is (region.h: turn). Where the word stays at LEASE_GO (`is_going`) its counter goes on and waiters are
 * woken; else the state that is set next does that. Any thread, one at a time.
 */
void region_set_turn(struct region_control *control, unsigned device, uint32_t turn, bool is_going);

/* The part of the card's SMs that the tenant has at most, beside others; 0: it shares no space. */
void region_set_space(struct region_control *control, unsigned device, double part_pct);
/*
 * Writes a changed grant under LEASE_PACED, and wakes the threads that wait for it. With !is_waited_for none is known to: one
 * that begins to wait just now hears of the next grant, or wakes by itself. Any thread, one at a time.
 */
void region_set_grant(struct region_control *control, unsigned device, uint64_t granted,
		      bool is_waited_for);

/* Writes what memory is granted. What waits hears of it, or that none is, by the second. */
void region_set_memory_grant(struct region_control *control, unsigned device, uint64_t bytes);
void region_tell_memory_grant(struct region_control *control, unsigned device);

/* Zeroes a slot and marks it empty: what its process held is given back. */
void region_host_clear_slot(struct region_host *host, unsigned slot);
/* Marks an empty slot as a process's: raises slot_limit first where that is needed. */
void region_host_assign_slot(struct region_host *host, unsigned slot, int pid);
