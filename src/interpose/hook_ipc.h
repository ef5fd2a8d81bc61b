/*
 * Legacy IPC: memory of one process, mapped in others of the same tenant or of another. Charged once in
 * a tenant: to the process that made it, and when that frees it or dies, to one that has it open still;
 * in another tenant to the first process that opens it.
 */
#ifndef ALLOT_INTERPOSE_HOOK_IPC_H
#define ALLOT_INTERPOSE_HOOK_IPC_H

#include <stdint.h>

#include "driver/cuda_abi.h"
#include "region/region.h"

extern _Atomic uint32_t hook_ipc_exports; /* this process has exported so many */

void hook_ipc_forget_export(uint64_t ptr);

/* Before the charge of memory at `ptr` goes back: whoever has it open takes it over. */
static inline void hook_ipc_freed(uint64_t ptr)
{
	if (__builtin_expect(atomic_load_explicit(&hook_ipc_exports, memory_order_relaxed) != 0, 0))
		hook_ipc_forget_export(ptr);
}

/* The context is gone, and what was open in it. */
void hook_ipc_context_gone(CUcontext context);

/* Helper thread: takes over what nobody is charged for any more, 50 times a second at most. */
void hook_ipc_refresh(uint64_t now_ns);

/* A restarted daemon's report, before this process moves there. */
void hook_ipc_move(struct region_report *report, const struct region_slot *slot);

/* In a forked child. */
void hook_ipc_reset(void);

#endif
