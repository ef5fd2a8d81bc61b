#include "library/entry/hook_ipc.h"

#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/memory/holding.h"
#include "library/memory/exports.h"
#include "library/memory/swap_hold.h"
#include "library/state/process_state.h"
#include "library/swap/ipc_broker.h"
#include "library/swap/swap_backing.h"
#include "library/sys/locks.h"

void hook_ipc_context_gone(CUcontext context)
{
	WITH_LOCK(&locks.ipc);
	ipc_broker_context_gone(context);
	shared_context_gone(context);
}

void hook_ipc_reset(void)
{
	ipc_broker_reset();
}

static bool range_of(CUdeviceptr ptr, uint64_t *ret_base, uint64_t *ret_bytes)
{
	CUdeviceptr base;
	size_t bytes;

	if (!real.cuMemGetAddressRange_v2 ||
	    real.cuMemGetAddressRange_v2(&base, &bytes, ptr) != CUDA_SUCCESS)
		return false;
	*ret_base = base;
	*ret_bytes = charge_rounded(bytes);
	return true;
}

static void note_export(const CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct shared s = {
		.kind = SHARED_EXPORTED_MEMORY,
		.key = exports_key(handle, sizeof(*handle)),
	};
	struct holding h;

	if (!range_of(ptr, &s.id, &s.bytes) || !charge_find(s.id, s.bytes, &h) ||
	    shared_key(s.kind, s.id))
		return;
	s.index = h.device;
	s.context = (CUcontext)(uintptr_t)h.owner;
	shared_record_export(&s);
}

/* The driver makes no IPC handles for memory that swap can move off the GPU, so allot makes one of its own. */
static CUresult get_movable(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct backing b;

	WITH_MEMORY_HELD();
	WITH_LOCK(&locks.ipc);
	if (!handle || !swap_backing_find(ptr, &b))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ipc_broker_get(&b, handle);
	if (result == CUDA_SUCCESS)
		note_export(handle, ptr);
	return result;
}

DEFINE_HOOK(hook_ipc_get, get, (CUipcMemHandle * handle, CUdeviceptr ptr))
{
	if (!process_is_active())
		return get(handle, ptr);
	if (swap_is_on() && swap_backing_find(ptr, &(struct backing){ 0 }))
		return get_movable(handle, ptr);
	WITH_LOCK(&locks.ipc);
	CUresult result = get(handle, ptr);
	if (result == CUDA_SUCCESS)
		note_export(handle, ptr);
	return result;
}

/*
 * Charges this process for the memory if no process of the tenant is charged yet. Returns false if that exceeds the quota, or
 * if host memory ran out.
 */
static bool note_import(const CUipcMemHandle *handle, CUdeviceptr ptr, int index)
{
	struct shared s = {
		.kind = SHARED_IMPORTED_MEMORY,
		.index = index,
		.id = ptr,
		.key = exports_key(handle, sizeof(*handle)),
		.context = real_current_context(),
	};
	uint64_t base;

	range_of(ptr, &base, &s.bytes);
	return shared_record_import(&s);
}

/* For a handle that allot made. The daemon has the memory's descriptor from the process that allocated the memory. */
static CUresult open_ours(CUdeviceptr *ptr, const CUipcMemHandle *handle, int index)
{
	bool is_again;

	WITH_LOCK(&locks.ipc);
	CUresult result = ipc_broker_open(handle, ptr, &is_again);
	if (result != CUDA_SUCCESS || index < 0 ||
	    (is_again && shared_add_import(SHARED_IMPORTED_MEMORY, *ptr)) ||
	    note_import(handle, *ptr, index))
		return result;
	ipc_broker_close(*ptr, &result);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Charges after opening, because only then the driver states the size. Opening allocates nothing on the GPU. */
DEFINE_HOOK(hook_ipc_open, open, (CUdeviceptr * ptr, CUipcMemHandle handle, unsigned int flags))
{
	WITH_MEMORY_HELD();
	int index = charge_index();

	if (process_is_active() && ipc_broker_is_ours(&handle))
		return open_ours(ptr, &handle, index);
	if (index < 0)
		return open(ptr, handle, flags);
	WITH_LOCK(&locks.ipc);
	CUresult result = open(ptr, handle, flags);
	/* If the memory is open already, driver and library both count one more opening. */
	if (result != CUDA_SUCCESS || shared_add_import(SHARED_IMPORTED_MEMORY, *ptr) ||
	    note_import(&handle, *ptr, index))
		return result;
	if (real.cuIpcCloseMemHandle)
		real.cuIpcCloseMemHandle(*ptr);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

DEFINE_HOOK(hook_ipc_close, close, (CUdeviceptr ptr))
{
	if (!process_is_active())
		return close(ptr);
	WITH_LOCK(&locks.ipc);
	CUresult result;
	if (!ipc_broker_close(ptr, &result))
		result = close(ptr);
	if (result == CUDA_SUCCESS)
		shared_remove_import(SHARED_IMPORTED_MEMORY, ptr);
	return result;
}
