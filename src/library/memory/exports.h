/*
 * Decides which process of the tenant is charged for memory that several of them hold. The report has a table for
 * this, by a key that all of them know (for a legacy IPC handle, a hash of its bytes). An entry's owner is the
 * slot that is charged for the memory. When the owner frees or closes the memory, or dies, another process that
 * still holds it becomes the owner and is charged. So each process that holds the memory calls exports_take()
 * again and again.
 *
 * All processes of the tenant write the table; the daemon neither reads nor trusts it. If the table is full or
 * corrupt, memory is charged more than once, but never not at all. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/region.h"

/* Returns a key made from the `size` bytes of a handle; never 0. */
uint64_t exports_key(const void *bytes, size_t size);

/*
 * Returns the key for a fabric handle of EXPORTS_FABRIC_SIZE bytes. The key is as short as that of a tag
 * (fd_tag.h).
 */
#define EXPORTS_FABRIC_SIZE 64
uint64_t exports_fabric_key(const void *handle);

/*
 * Returns the slot and its generation as one value, so another process in the same slot counts as another owner. 0 means no
 * owner. exports_is_alive() tells whether that process still has the slot.
 */
uint64_t exports_owner(const struct region_report *report, const struct region_slot *slot);
bool exports_is_alive(const struct region_report *report, uint64_t owner);

/*
 * Returns true if this process must charge the memory: the entry had no live owner, and this process is now the
 * owner. Returns false if another process, or this one, already is the owner.
 */
bool exports_take(uint64_t key);

/* Ends this process's ownership, if it is the owner. Call this before the charge is given back. */
void exports_leave(uint64_t key);

/* Makes `slot` of a new report the owner of the memory with this key, for which this process is charged. */
void exports_move(struct region_report *report, const struct region_slot *slot, uint64_t key);
