/*
 * Legacy IPC (cuIpcGetMemHandle) of memory that can be moved off the card: the virtual memory API behind it has
 * descriptors, but no such handle. So the handle that the program gets is one of ours, a key; a process of the
 * same tenant that opens it takes the descriptor from the daemon (abi/shm/sharing.h) and maps the memory. From
 * then on that stays on the card. To other tenants and to processes without the library the handle says nothing.
 *
 * The callers hold their lock for it. What is open here is unmapped with its context.
 */
#pragma once

#include <stdbool.h>

#include "abi/cuda_abi.h"
#include "library/swap/swap_backing.h"

/*
 * A handle for what begins there; the same again for the same memory. In the hold. CUDA_ERROR_NOT_SUPPORTED: the driver
 * has no descriptors, or the daemon keeps none of it.
 */
CUresult ipc_broker_get(const struct backing *b, CUipcMemHandle *ret);

bool ipc_broker_is_ours(const CUipcMemHandle *handle);

/* Opens one of ours in the current context; *ret_again: it was open already, and that is counted. */
CUresult ipc_broker_open(const CUipcMemHandle *handle, CUdeviceptr *ret_ptr, bool *ret_again);

/* False: it was not opened here. */
bool ipc_broker_close(CUdeviceptr ptr, CUresult *ret_result);

void ipc_broker_context_gone(CUcontext context);

/* Another daemon knows nothing of what was given: gives it again. Helper thread; may say false: not now. */
bool ipc_broker_give_again(void);

/* In a forked child. */
void ipc_broker_reset(void);
