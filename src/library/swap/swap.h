/*
 * Moves a process's memory off the GPU and back (on_full swap). A thread of its own, which only swappable processes have,
 * follows the swap word in the control page:
 *
 *   leave    shut the hold (swap_hold.h), so that no thread is in a driver call or enters one;
 *            wait for the work of all contexts; copy each backing (swap_backing.h) to the arena; then remove it
 *            from the GPU. Its address stays reserved.
 *   return   make memory for all backings or, if they do not all fit, for none; copy back; open the hold.
 *
 * So pointers, graphs and streams are the same afterwards. No memory is removed before everything is copied, and the
 * arena's copy is kept until everything is back. So if a move fails, the data is where it was before.
 *
 * A move is abandoned, and counted in swap_failed, if it cannot begin within two seconds (a capture in progress, work that
 * does not end, a thread that does not come out of a call) or cannot copy. A return that finds no room keeps trying. After
 * ten seconds the waiting calls fail with out of memory. Without a daemon, memory returns as soon as the GPU has room.
 *
 * These stay on the GPU: allocations below 2 MiB, arrays, pools, managed memory, modules, contexts, memory that the program
 * makes by the virtual memory API itself, memory shared with other processes, and memory for which the arena had no room.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"

/*
 * Makes the process swappable, with its arena mapped at `arena`. Does nothing if `arena` is NULL. Call in process_join(),
 * before the driver is used.
 */
void swap_begin(void *arena, uint64_t arena_bytes);

/* Starts the swap thread, unless it runs or the process is not swappable. Call when the helper starts. */
void swap_start(void);

/*
 * These keep the list of contexts whose work a move waits for. Call swap_context_made() after a context is made,
 * swap_context_ends() before a call that may end it, and swap_context_gone() after it has ended. If it did not end, call
 * swap_context_made() again.
 */
void swap_context_made(CUcontext context);
void swap_context_ends(CUcontext context);
void swap_context_gone(CUcontext context);

/* Helper thread: abandons a wait for work that takes too long. */
void swap_watch(uint64_t now_ns);

/* Writes this process's swap state into a new slot. */
void swap_move(struct region_slot *slot);

/* Call at exit, when the process belongs to no tenant any more. Returns when the swap thread is no longer in the driver. */
void swap_leave_driver(void);

/* Call in a forked child: forgets the state of the parent. */
void swap_reset(void);
