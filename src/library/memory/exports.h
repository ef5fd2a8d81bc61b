/*
 * Decides which process of a tenant is charged for memory that several of its processes hold. The report has a table of such
 * memory (region_report.export). All these processes know its keys, such as a hash of a legacy IPC handle. The owner of an
 * entry is the slot that is charged. When the owner frees the memory or dies, another process that holds it becomes the owner.
 * So each process that holds the memory calls exports_claim() periodically.
 *
 * All processes of the tenant write the table; the daemon does not read it. If the table is full or corrupt, several processes
 * may be charged for the same memory. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/region.h"

/* The key for a handle of `size` bytes; never 0. */
uint64_t exports_key(const void *bytes, size_t size);

/* A fabric handle has EXPORTS_FABRIC_SIZE bytes. The key fits in fd_tag.key (61 bits). */
#define EXPORTS_FABRIC_SIZE 64
uint64_t exports_fabric_key(const void *handle);

/* The owner word: slot and generation, so it differs for each process; 0: none. exports_is_alive(): that process lives. */
uint64_t exports_owner(const struct region_report *report, const struct region_slot *slot);
bool exports_is_alive(const struct region_report *report, uint64_t owner);

/* Returns true if this process now owns the memory and must charge it; false if a live process owned it, even this one. */
bool exports_claim(uint64_t key);

/* Ends this process's ownership, if any. Call before the charge is given back. */
void exports_release(uint64_t key);

/* Makes `slot` of a new report the owner of memory for which this process is charged. */
void exports_republish(struct region_report *report, const struct region_slot *slot, uint64_t key);
