/*
 * Taking a process's memory off the card, and bringing it back (on_full swap). A thread of its own, in
 * swappable processes alone, does as the control page's swap word says:
 *
 *   leave    shut the hold (swap_hold.h): no thread is in a call, or gets into one;
 *            wait for all contexts' work; copy each backing (swap_backing.h) to the arena; then take it
 *            off the card: its address stays reserved.
 *   return   make memory for every backing, or, when that does not all fit, for none; copy back; open.
 *
 * So pointers, graphs and streams are the same afterwards. Until all is copied nothing is taken away, and
 * until all is back nothing of the arena is given up: whatever fails in between, the data is where it was.
 * A move that can't begin within two seconds (a capture under way, work that does not end, a thread that
 * does not come out of a call) is given up, and counted (swap_failed); so is one that can't copy. A return
 * that finds no room goes on looking; after ten seconds the calls that wait fail, out of memory.
 * Without a daemon memory comes back as soon as the card has room.
 *
 * What stays on the card: what is below 2 MiB, arrays, pools, managed memory, modules, contexts, what the
 * program makes by the virtual memory API itself, what came from or is known to others, and what the arena
 * had no room for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"

/* In process_join(), before the driver is used. */
void swap_begin(void *arena, uint64_t arena_bytes);

/* Starts the thread, unless it runs or the process is not swappable. With the helper. */
void swap_start(void);

/*
 * Contexts come and go: whose work is waited for. After one was made; before the call that may end it (when
 * it does not, made again); and after it has.
 */
void swap_context_made(CUcontext context);
void swap_context_ends(CUcontext context);
void swap_context_gone(CUcontext context);

/* Helper thread: ends a wait for work that takes too long. */
void swap_watch(uint64_t now_ns);

/* Writes what this process's slot has to say of it into a fresh one. */
void swap_move(struct region_slot *slot);

/* At exit, the process being no tenant's any more: the thread is in the driver no more. */
void swap_leave_driver(void);

/* In a forked child. */
void swap_reset(void);
