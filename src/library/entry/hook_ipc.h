/* Legacy IPC: memory of one process that other processes map. shared.h decides which process is charged. */
#pragma once

#include "library/memory/shared.h"

/* Call after memory at `ptr` was freed, before its charge is given back. Another process that maps it is then charged. */
static inline void hook_ipc_freed(uint64_t ptr)
{
	if (shared_any())
		shared_drop(SHARED_EXPORTED_MEMORY, ptr);
}

/* Call after a context has ended: forgets the memory that was open in it. */
void hook_ipc_context_gone(CUcontext context);

/* Call in a forked child: forgets all opened memory. */
void hook_ipc_reset(void);
