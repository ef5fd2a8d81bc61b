/*
 * A region is the shared memory of the daemon and one tenant's processes (abi/shm/region.h), in two memory files:
 *
 *     file      daemon            tenant
 *     control   mapped writable   descriptor opened read-only; F_SEAL_FUTURE_WRITE keeps it so
 *     report    mapped writable   descriptor; sealed against shrinking and growing
 *
 * One thread creates and frees all regions. It must not end while a region exists, because tenants would then take the daemon
 * for dead (region.h: owner). Any thread may write to the maps, with atomics.
 */
#pragma once

#include "abi/shm/region.h"
#include "base/error.h"

struct region_host {
	struct region_control *control; /* NULL: not created */
	struct region_report *report;
	int control_fd; /* read-only; sent to tenants */
	int report_fd;
};

/* The devices' fields are zero, so the lease is LEASE_STOP. *host is written only on success. Needs /proc. */
int region_host_create(struct region_host *host, const char *tenant_name, uint64_t epoch,
		       unsigned device_count, struct error *err);
/* A zeroed or freed host is allowed. */
void region_host_free(struct region_host *host);

void region_set_lease(struct region_control *control, unsigned device, enum lease_state state);

/*
 * Publishes which process has its turn (region.h: turn). Pass is_going if the lease is and stays LEASE_GO: this call then also
 * increments the counter in the lease word and wakes waiters. Else the next change of the lease does both. Any thread, one at a
 * time.
 */
void region_set_turn(struct region_control *control, unsigned device, uint32_t turn, bool is_going);

/* The percentage of the SMs that the tenant may use beside other tenants; 0: it does not share by space. */
void region_set_space(struct region_control *control, unsigned device, double part_pct);
/*
 * Writes the tokens granted in total (LEASE_PACED), if they changed. With `is_waited_for`, also wakes the threads that wait for
 * tokens. A thread that begins to wait meanwhile wakes by the next grant or its own timeout. Any thread, one at a time.
 */
void region_set_grant(struct region_control *control, unsigned device, uint64_t granted,
		      bool is_waited_for);

/* 0 bytes grant nothing. region_wake_memory_grant() wakes the threads that wait for the answer to a memory request. */
void region_set_memory_grant(struct region_control *control, unsigned device, uint64_t bytes);
void region_wake_memory_grant(struct region_control *control, unsigned device);

/* Zeroes a slot and marks it empty, so its memory no longer counts in the tenant's quotas. */
void region_host_clear_slot(struct region_host *host, unsigned slot);
/* Raises slot_limit if needed. */
void region_host_assign_slot(struct region_host *host, unsigned slot, int pid);
