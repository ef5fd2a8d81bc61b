/*
 * The process's side of the swap arena: one tenant's host memory for the contents of memory that was moved off the GPU. The
 * tenant's processes share the arena in chunks; the report has each chunk's owner. A process makes memory movable only when it
 * owns enough chunks, so the arena always has room for a move.
 *
 * Moved memory lies in the process's chunks without gaps: a position counts bytes from the beginning of its first chunk.
 *
 * swap_arena_reserve() is thread safe. The other functions are for the swap thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Call first, once. The mapping must stay for ever. */
void swap_arena_begin(void *mapping, uint64_t bytes);

/* Takes chunks until this process owns `bytes` in all. Returns false if too few are free. */
bool swap_arena_reserve(uint64_t bytes);

/* True if the daemon has given host memory to the chunks for the first `bytes`. */
bool swap_arena_is_ready(uint64_t bytes);

/*
 * Maps the pages of the next owned chunk that has memory. Returns its bytes, or 0 if there is none or the driver cannot lock
 * memory.
 *
 * Copies run at the link's full speed only if the chunk is page-locked. Map a chunk before locking it: otherwise, the driver
 * maps it page by page while it holds its own lock. It does so, too, in a copy to memory that is not locked, which therefore
 * reaches only 0.9 to 1.1 GiB/s on an H200.
 */
uint64_t swap_arena_map_next(void);
/* Page-locks the next mapped chunk, in the current context. Returns its bytes, or 0 if none can be locked. */
uint64_t swap_arena_lock_next(void);
/* True if the chunks for the first `bytes` are page-locked. */
bool swap_arena_is_locked(uint64_t bytes);
/* Call after a context has ended, which may unlock memory that was locked in it: locks all chunks again. */
void swap_arena_relock(void);

/* Returns the address of a position, and the number of contiguous bytes there. */
void *swap_arena_at(uint64_t at, uint64_t *ret_run);

/* Call in a forked child: the parent owns the mapping and the chunks. */
void swap_arena_reset(void);
