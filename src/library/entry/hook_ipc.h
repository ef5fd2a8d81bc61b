/* Legacy IPC: memory of one process, mapped in others. What becomes of the charge: shared.h. */
#pragma once

#include "library/memory/shared.h"

/* Before the charge of memory at `ptr` goes back: whoever has it open takes it over. */
static inline void hook_ipc_freed(uint64_t ptr)
{
	if (shared_any())
		shared_drop(SHARED_OUT_MEMORY, ptr);
}

/* The context is gone, and what was open in it. */
void hook_ipc_context_gone(CUcontext context);

/* In a forked child. */
void hook_ipc_reset(void);
