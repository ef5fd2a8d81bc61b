/*
 * Decides which process of a tenant is charged for memory that several of the tenant's processes hold. The report has a table
 * of such memory (region_report.export). Its keys, such as a hash of a legacy IPC handle, are known to all these processes. The
 * owner of an entry is the slot that is charged. When the owner frees the memory or dies, another process that holds it becomes
 * the owner. So each process that holds the memory calls exports_claim() periodically.
 *
 * All processes of the tenant write the table; the daemon does not read it. If the table is full or corrupt, several processes
 * may be charged for the same memory. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/region.h"

/* Returns a key for a handle of `size` bytes; never 0. */
uint64_t exports_key(const void *bytes, size_t size);

/* Returns a key for a fabric handle of EXPORTS_FABRIC_SIZE bytes; it fits in fd_tag.key (61 bits). */
#define EXPORTS_FABRIC_SIZE 64
uint64_t exports_fabric_key(const void *handle);

/*
 * Returns slot and generation as one value, which differs for each process; 0 means no owner. exports_is_alive() tells whether
 * that process still has the slot.
 */
uint64_t exports_owner(const struct region_report *report, const struct region_slot *slot);
bool exports_is_alive(const struct region_report *report, uint64_t owner);

/*
 * Returns true if the memory had no live owner: this process is the owner now, and must charge the memory. False if a live
 * process, possibly this one, already is the owner.
 */
bool exports_claim(uint64_t key);

/* Ends this process's ownership, if it is the owner. Call before the charge is given back. */
void exports_release(uint64_t key);

/* Makes `slot` of a new report the owner of memory for which this process is charged. */
void exports_republish(struct region_report *report, const struct region_slot *slot, uint64_t key);
