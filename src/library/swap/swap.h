/*
 * Moves a process's memory off the GPU and back. The processes of a tenant with --on-full swap are swappable. Each has a swap
 * thread, which obeys the daemon's orders (the swap word in the control page):
 *
 *   leave    close the hold (swap_hold.h), so that no thread is in a driver call or enters one;
 *            wait for the work of all contexts; copy each backing (swap_backing.h) to the arena; then free
 *            it on the GPU. Its address stays reserved.
 *   return   allocate GPU memory for all backings, or for none if they do not all fit; copy back; open the hold.
 *
 * So pointers, graphs and streams stay valid. Memory is freed only after everything is copied, and the arena's copy is kept
 * until everything is back. So if a move fails, the data is where it was before.
 *
 * A move is given up, and counted in swap_failed, if copying fails or the move cannot begin within two seconds. A capture, work
 * that does not end, or a call that does not return can delay the begin. A return that finds no room, or fails otherwise, keeps
 * trying; after ten seconds the waiting calls fail with out of memory. Without a daemon, memory returns as soon as the GPU has
 * room.
 *
 * These stay on the GPU: allocations below 2 MiB, arrays, pools, managed memory, modules, contexts, memory that the program
 * allocates by the virtual memory API, memory shared with other processes, and memory for which the arena had no room.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"

/* Makes the process swappable, with its arena mapped at `arena`, unless that is NULL. Call before the driver is used. */
void swap_begin(void *arena, uint64_t arena_bytes);

/* Does nothing if the swap thread runs or the process is not swappable. */
void swap_start(void);

/* Call after a context has ended; before that, swap_remove_context() (swap_quiesce.h). */
void swap_context_gone(CUcontext context);

/* Writes this process's swap state, and each device's struct region_slot_swap, into `slot`. */
void swap_publish(struct region_slot *slot);

/* Call at exit, when the process has left its tenant. Waits up to 5 s until the swap thread is out of the driver. */
void swap_wait_for_driver(void);

/* Call in a forked child, which is not swappable. */
void swap_reset(void);
