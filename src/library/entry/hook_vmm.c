/* Physical memory is charged until all its handles are released, and all its mappings and multicast bindings are gone. */
#include "library/entry/hook_vmm.h"

#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/memory/holding.h"
#include "library/memory/shared.h"
#include "library/memory/swap_hold.h"
#include "library/memory/swap_room.h"
#include "library/swap/swap_backing.h"
#include "library/sys/locks.h"

static uint64_t numbers;

uint64_t vmm_new_number(void)
{
	return ++numbers;
}

void vmm_add_reference(uint64_t number, int by)
{
	struct holding h;

	if (!number || !ptrmap_find(HOLDING_PHYSICAL, number, &h))
		return;
	h.related += (uint64_t)(int64_t)by;
	if (h.related == 0) {
		ptrmap_remove(HOLDING_PHYSICAL, number, &h);
		shared_drop(SHARED_EXPORTED_PHYSICAL, number);
		shared_drop(SHARED_IMPORTED_PHYSICAL, number);
		ledger_release(h.device, h.bytes);
	} else {
		ptrmap_update(&h);
	}
}

uint64_t vmm_number_of(enum holding_kind kind, uint64_t key)
{
	struct holding h;

	return ptrmap_find(kind, key, &h) ? h.related : 0;
}

/* If host memory for the handle's record runs out, the new reference is never removed, so the memory stays charged. */
void vmm_add_handle(uint64_t handle, uint64_t number)
{
	struct holding h = { .kind = HOLDING_HANDLE, .key = handle, .related = number };

	if (!number)
		return;
	if (!ptrmap_find(HOLDING_HANDLE, handle, &h))
		vmm_add_reference(number, 1);
	h.bytes++;
	ptrmap_insert(&h);
}

bool vmm_note(uint64_t handle, uint64_t number, int device, uint64_t bytes)
{
	struct holding physical = {
		.kind = HOLDING_PHYSICAL,
		.key = number,
		.device = device,
		.bytes = bytes,
		.related = 1,
	};
	struct holding named = {
		.kind = HOLDING_HANDLE,
		.key = handle,
		.bytes = 1,
		.related = number,
	};

	if (!ptrmap_insert(&physical))
		return false;
	if (ptrmap_insert(&named))
		return true;
	ptrmap_remove(HOLDING_PHYSICAL, number, &physical);
	return false;
}

static void drop_handle(uint64_t handle)
{
	struct holding h;

	if (!ptrmap_remove(HOLDING_HANDLE, handle, &h))
		return;
	if (--h.bytes)
		ptrmap_insert(&h);
	else
		vmm_add_reference(h.related, -1);
}

DEFINE_HOOK_WITH_ROOM(hook_mem_create, create,
		      (CUmemGenericAllocationHandle * handle, size_t bytes,
		       const CUmemAllocationProp *prop, unsigned long long flags),
		      (handle, bytes, prop, flags))
{
	WITH_MEMORY_HELD();
	struct holding h = { .device = -1, .bytes = bytes };

	/* Before cuInit the driver refuses the call without reading `prop`, which may then be invalid. */
	if (process_is_active() && handle && prop && process_device_exists(0))
		h.device = charge_location_index(&prop->location);
	if (h.device < 0)
		return create(handle, bytes, prop, flags);
	if (!charge_begin_on_gpu(&h))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = create(handle, bytes, prop, flags);
	swap_room_check_result(result, h.device, bytes);
	/* A thread that just released a handle with the same value removes its record before it gives up locks.vmm. */
	WITH_LOCK(&locks.vmm);
	if (result == CUDA_SUCCESS && vmm_note(*handle, vmm_new_number(), h.device, bytes))
		return result;
	if (result == CUDA_SUCCESS) {
		real.cuMemRelease(*handle);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	ledger_release(h.device, bytes);
	return result;
}

DEFINE_HOOK(hook_mem_release, release, (CUmemGenericAllocationHandle handle))
{
	if (!process_is_active())
		return release(handle);
	/* The driver may give this handle value to another thread during the call. */
	WITH_LOCK(&locks.vmm);
	CUresult result = release(handle);
	if (result == CUDA_SUCCESS)
		drop_handle(handle);
	return result;
}

DEFINE_HOOK(hook_mem_retain_handle, retain, (CUmemGenericAllocationHandle * handle, void *addr))
{
	struct backing backing;

	if (!process_is_active())
		return retain(handle, addr);
	/* The program got this memory by cuMemAlloc, and such memory has no handle. */
	if (swap_is_on() && swap_backing_find((CUdeviceptr)(uintptr_t)addr, &backing))
		return CUDA_ERROR_INVALID_VALUE;
	WITH_LOCK(&locks.vmm);
	CUresult result = retain(handle, addr);
	/*
	 * This process may not know the handle, so look up the address first. Only the first address of a mapping is
	 * recorded. For an address inside a mapping, look up the handle.
	 */
	if (result == CUDA_SUCCESS) {
		uint64_t number = vmm_number_of(HOLDING_MAPPING, (uint64_t)(uintptr_t)addr);
		vmm_add_handle(*handle, number ? number : vmm_number_of(HOLDING_HANDLE, *handle));
	}
	return result;
}

DEFINE_HOOK(hook_mem_map, map,
	    (CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
	     unsigned long long flags))
{
	if (!process_is_active())
		return map(ptr, bytes, offset, handle, flags);
	WITH_LOCK(&locks.vmm);
	CUresult result = map(ptr, bytes, offset, handle, flags);
	struct holding h = {
		.kind = HOLDING_MAPPING,
		.key = ptr,
		.bytes = bytes,
		.related = vmm_number_of(HOLDING_HANDLE, handle),
	};
	if (result != CUDA_SUCCESS)
		return result;
	/* Imported memory of unknown size is charged now, because its mapping shows the size. */
	if (!shared_grow(SHARED_IMPORTED_PHYSICAL, h.related, offset + bytes)) {
		real.cuMemUnmap(ptr, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (ptrmap_insert(&h))
		vmm_add_reference(h.related, 1);
	return result;
}

DEFINE_HOOK(hook_mem_unmap, unmap, (CUdeviceptr ptr, size_t bytes))
{
	struct holding h;

	if (!process_is_active())
		return unmap(ptr, bytes);
	WITH_LOCK(&locks.vmm);
	CUresult result = unmap(ptr, bytes);
	/* One call may unmap several adjacent mappings. */
	for (CUdeviceptr at = ptr; result == CUDA_SUCCESS && at < ptr + bytes; at += h.bytes) {
		if (!ptrmap_remove(HOLDING_MAPPING, at, &h) || !h.bytes)
			break;
		vmm_add_reference(h.related, -1);
	}
	return result;
}
