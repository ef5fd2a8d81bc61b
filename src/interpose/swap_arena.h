/*
 * The guest's side of the swap arena: host memory, the tenant's alone, for what is taken off the card. Its
 * processes share it in chunks; the report says whose each is. A process owns chunks for all that it can
 * move, before it makes that movable, so that no eviction ends for want of room.
 *
 * While memory is out it lies in the process's chunks one after the other: a position counts bytes from the
 * beginning of the first.
 *
 * Provide, release: thread safe. The rest: the swap thread alone.
 */
#ifndef ALLOT_INTERPOSE_SWAP_ARENA_H
#define ALLOT_INTERPOSE_SWAP_ARENA_H

#include <stdbool.h>
#include <stdint.h>

/* Once, before the rest: the mapping is the arena's for good. */
void swap_arena_begin(void *mapping, uint64_t bytes);

/* Owns chunks for so much in all; false: there are not enough. */
bool swap_arena_provide(uint64_t bytes);

/* What is owned for so much has memory behind it. */
bool swap_arena_is_ready(uint64_t bytes);

/*
 * Page-locks the next chunk that is owned and has memory, in the current context, so that copies run at the
 * link's full speed; 0.55 s a GiB, so ahead. False: there is none to lock.
 */
bool swap_arena_lock_next(void);
/* A context is gone, and maybe what was locked in it. */
void swap_arena_unlocked(void);

/* Where position `at` is, and how many bytes from there on lie together. */
void *swap_arena_at(uint64_t at, uint64_t *ret_run);

/* In a forked child. */
void swap_arena_reset(void);

#endif
