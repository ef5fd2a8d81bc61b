/*
 * The process's side of the swap arena: host memory of one tenant, for the contents of memory moved off the GPU.
 * The tenant's processes share the arena in chunks; the report has the owner of each chunk. A process makes memory
 * movable only after it owns enough chunks for it. So no move fails for lack of room in the arena.
 *
 * While memory is off the GPU, it lies in the process's chunks without gaps: a position counts bytes from the
 * beginning of the first chunk.
 *
 * swap_arena_provide() is thread safe. The other functions are for the swap thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Call once, before the other functions. The mapping belongs to the arena for ever. */
void swap_arena_begin(void *mapping, uint64_t bytes);

/* Makes sure that this process owns chunks for `bytes` in all. Returns false if there are not enough. */
bool swap_arena_provide(uint64_t bytes);

/* True if the owned chunks that hold the first `bytes` are backed by memory. */
bool swap_arena_is_ready(uint64_t bytes);

/*
 * Maps the pages of the next owned chunk that is backed by memory. Returns its bytes, or 0 if there is none, or if the driver
 * cannot lock memory.
 *
 * A chunk is first mapped and then page-locked (swap_arena_lock_next()), so that copies run at the link's full speed. Mapping
 * needs no driver and is most of the work. The driver would map page by page with its lock held, and so would a copy to
 * unlocked memory (0.9 to 1.1 GiB/s on an H200).
 */
uint64_t swap_arena_map_next(void);
/* Page-locks the next mapped chunk, in the current context. Returns its bytes, or 0 if there is none or it cannot be locked. */
uint64_t swap_arena_lock_next(void);
/* True if the owned chunks that hold the first `bytes` are locked. */
bool swap_arena_is_locked(uint64_t bytes);
/* Call after a context has ended: chunks that were locked in it may be unlocked, so all chunks will be locked again. */
void swap_arena_unlocked(void);

/* Returns the address of position `at`. *ret_run is the number of contiguous bytes from there on. */
void *swap_arena_at(uint64_t at, uint64_t *ret_run);

/* Call in a forked child: forgets the state of the parent. */
void swap_arena_reset(void);
