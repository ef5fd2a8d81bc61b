/*
 * The process's side of the swap arena: host memory, the tenant's alone, for what is taken off the card. Its
 * processes share it in chunks; the report says whose each is. A process owns chunks for all that it can
 * move, before it makes that movable, so that no eviction ends for want of room.
 *
 * While memory is out it lies in the process's chunks one after the other: a position counts bytes from the
 * beginning of the first.
 *
 * Provide, release: thread safe. The rest: the swap thread alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Once, before the rest: the mapping is the arena's for good. */
void swap_arena_begin(void *mapping, uint64_t bytes);

/* Owns chunks for so much in all; false: there are not enough. */
bool swap_arena_provide(uint64_t bytes);

/* What is owned for so much has memory behind it. */
bool swap_arena_is_ready(uint64_t bytes);

/*
 * What is owned is page-locked, chunk by chunk, so that copies run at the link's full speed. First a chunk's pages are
 * mapped into this process, which needs no driver and is most of the work: the driver would do that page by page with
 * its lock held, and a copy to unlocked memory likewise (0.9 to 1.1 GiB/s on an H200).
 *
 * Maps the next one that has memory. Its bytes; 0: there is none to map, or nothing could lock it.
 */
uint64_t swap_arena_map_next(void);
/* Locks the next one that is mapped, in the current context. Its bytes; 0: there is none, or it can't be. */
uint64_t swap_arena_lock_next(void);
/* What the first so many bytes of what is owned lie in is locked. */
bool swap_arena_is_locked(uint64_t bytes);
/* A context is gone, and maybe what was locked in it. */
void swap_arena_unlocked(void);

/* Where position `at` is, and how many bytes from there on lie together. */
void *swap_arena_at(uint64_t at, uint64_t *ret_run);

/* In a forked child. */
void swap_arena_reset(void);
