/*
 * Legacy IPC (cuIpcGetMemHandle) for memory that can be moved off the GPU. Such memory comes from the virtual memory API, which
 * has descriptors but no legacy handles. So the program gets a handle of allot's own, which contains a key. A process of the
 * same tenant that opens the handle gets the descriptor from the daemon (abi/shm/fd_exchange.h) and maps the memory. From then
 * on the memory stays on the GPU. Other tenants, and processes without the library, cannot use the handle.
 *
 * The caller holds locks.ipc, except for ipc_broker_is_ours() and ipc_broker_republish(). Memory opened here is unmapped when
 * its context ends.
 */
#pragma once

#include <stdbool.h>

#include "abi/cuda_abi.h"
#include "library/swap/swap_backing.h"

/*
 * Returns the handle for the allocation that begins at b->base, always the same. Call between swap_enter() and swap_leave()
 * (swap_hold.h). CUDA_ERROR_NOT_SUPPORTED: the driver cannot export the memory as a descriptor, or the daemon does not accept
 * it. CUDA_ERROR_INVALID_VALUE: another thread frees the memory meanwhile.
 */
CUresult ipc_broker_get(const struct backing *b, CUipcMemHandle *ret);

/* True for a handle that allot made, of any process or tenant. */
bool ipc_broker_is_ours(const CUipcMemHandle *handle);

/* Opens a handle in the current context. *ret_again: it was already open there. Close it as often as it was opened. */
CUresult ipc_broker_open(const CUipcMemHandle *handle, CUdeviceptr *ret_ptr, bool *ret_again);

/* The last close unmaps the memory. Returns false if `ptr` is not memory of ipc_broker_open(). */
bool ipc_broker_close(CUdeviceptr ptr, CUresult *ret_result);

/* Call after a context has ended: unmaps the memory that was opened in it. */
void ipc_broker_context_gone(CUcontext context);

/*
 * For the helper thread: gives a restarted daemon the descriptors that the earlier one had of this process's memory. Returns
 * true once the daemon has them all; until then, call again. Does nothing less than a second after the last attempt.
 */
bool ipc_broker_republish(uint64_t now_ns);

/* Call in a forked child: forgets all opened memory. */
void ipc_broker_reset(void);
