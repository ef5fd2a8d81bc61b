/*
 * Before a process's memory moves (swap.h), its GPU work must have ended and no thread may begin more. This keeps the list of
 * contexts whose work may use movable memory, and waits for that work.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "library/sys/sys.h"

#define SWAP_PATIENCE_NS (2 * NS_PER_S) /* after this, a move that cannot begin is given up */

/*
 * Call swap_add_context() after a context is made. Call swap_remove_context() before a driver call that may end the context; it
 * returns true if the context was known. After the driver's call, call swap_add_context() again if the context was known and
 * still exists, or swap_context_gone() (swap.h) if it has ended.
 */
void swap_add_context(CUcontext context);
bool swap_remove_context(CUcontext context);

/* Makes a listed context current. False if there is none, or the driver fails. The caller holds locks.swap_contexts. */
bool swap_enter_context(void);

/*
 * For the swap thread: waits until no work of this process runs or can begin. Returns true with the hold (swap_hold.h) closed.
 * Returns false with the hold open after SWAP_PATIENCE_NS, or if the driver reports an error.
 */
bool swap_quiesce(void);

/* For the helper thread: gives up a wait for work that takes too long. */
void swap_check_timeout(uint64_t now_ns);

/* Call in a forked child. */
void swap_quiesce_reset(void);
