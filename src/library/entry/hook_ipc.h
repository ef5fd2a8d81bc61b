/* Legacy IPC: memory of one process that is mapped in others. shared.h says how it is charged. */
#pragma once

#include "library/memory/shared.h"

/*
 * Call before the charge of memory at `ptr` is given back: a process that has the memory open takes over the
 * charge.
 */
static inline void hook_ipc_freed(uint64_t ptr)
{
	if (shared_any())
		shared_drop(SHARED_OUT_MEMORY, ptr);
}

/* Call after a context has ended: drops the memory that was open in it. */
void hook_ipc_context_gone(CUcontext context);

/* Call in a forked child: forgets the state of the parent. */
void hook_ipc_reset(void);
