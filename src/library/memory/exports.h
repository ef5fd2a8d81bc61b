/*
 * Who in the tenant is charged for memory that several processes hold: the report has a table of it,
 * by a key that all of them know (of a legacy IPC handle: its bytes). An entry's owner is the slot in
 * which the memory is charged. When the owner frees it, closes it or dies, whoever holds it still
 * makes itself the owner, and charges it: exports_take() is asked for it again and again.
 *
 * The table is written by all processes of the tenant; the daemon neither reads nor trusts it. Where it
 * is full or spoilt, memory is charged more than once, never not at all. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/region.h"

/* A key for so many bytes; never 0. */
uint64_t exports_key(const void *bytes, size_t size);

/* The key for a fabric handle, which is so many bytes; as short as that of a tag (fd_tag.h). */
#define EXPORTS_FABRIC_SIZE 64
uint64_t exports_fabric_key(const void *handle);

/* A slot and its generation: another process in the same slot is another owner. 0 is none. */
uint64_t exports_owner(const struct region_report *report, const struct region_slot *slot);
bool exports_is_alive(const struct region_report *report, uint64_t owner);

/*
 * True when this process is to charge the memory: nobody who lives is its owner, so this process is
 * from now on. False: another is, or this one already.
 */
bool exports_take(uint64_t key);

/* This process is the owner no longer; nothing happens when it was not. Before the charge goes back. */
void exports_leave(uint64_t key);

/* Makes `slot` of a fresh report the owner of what this process is charged for. */
void exports_move(struct region_report *report, const struct region_slot *slot, uint64_t key);
