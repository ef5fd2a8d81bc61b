/*
 * Multicast objects: addresses that map to memory of several devices. The object itself takes no memory. Memory that is bound
 * to an object lives until it is unbound, even if its handle was released.
 */
#include "library/entry/hook_vmm.h"
#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/memory/holding.h"
#include "library/sys/locks.h"

/* Returns the key of a binding. Offsets are multiples of 2 MiB, so the key leaves out their lowest 21 bits. */
static uint64_t binding_key(uint64_t object, int device, size_t offset)
{
	return object << 32 | (uint64_t)device << 27 | (offset >> 21 & ((1U << 27) - 1));
}

/* Records the object as memory of 0 bytes. If exported, its tag says 0 bytes (fd_tag.h), so importers are not charged. */
DEFINE_HOOK(hook_multicast_create, create,
	    (CUmemGenericAllocationHandle * object, const CUmulticastObjectProp *prop))
{
	if (!process_is_active())
		return create(object, prop);
	WITH_LOCK(&locks.vmm);
	CUresult result = create(object, prop);
	if (result == CUDA_SUCCESS && !vmm_note(*object, vmm_new_number(), 0, 0)) {
		real.cuMemRelease(*object);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return result;
}

/* Adds a reference to memory `number` (hook_vmm.h). Another process's object has no number here, so its handle is the key. */
static void record_binding(CUmemGenericAllocationHandle object, size_t offset, uint64_t number)
{
	struct holding memory;

	if (!number || !ptrmap_find(HOLDING_PHYSICAL, number, &memory))
		return;
	uint64_t known = vmm_number_of(HOLDING_HANDLE, object);
	struct holding h = {
		.kind = HOLDING_BINDING,
		.key = binding_key(known ? known : object, memory.device, offset),
		.related = number,
	};
	if (ptrmap_insert(&h))
		vmm_add_reference(number, 1);
}

/* Returns the number (hook_vmm.h) of the memory at an address, which may be inside a mapping. */
static uint64_t number_at(CUdeviceptr ptr)
{
	uint64_t number = vmm_number_of(HOLDING_MAPPING, ptr);
	CUmemGenericAllocationHandle handle;

	if (number ||
	    real.cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)ptr) != CUDA_SUCCESS)
		return number;
	number = vmm_number_of(HOLDING_HANDLE, handle);
	real.cuMemRelease(handle);
	return number;
}

/* `number` is that of the bound memory. A `device` of the call is not recorded, because the record of the memory has it. */
#define BINDS(hook, params, args, number) \
	DEFINE_HOOK(hook, bind, params) \
	{ \
		if (!process_is_active()) \
			return bind args; \
		WITH_LOCK(&locks.vmm); \
		CUresult result = bind args; \
		if (result == CUDA_SUCCESS) \
			record_binding(object, offset, number); \
		return result; \
	}

BINDS(hook_multicast_bind_mem,
      (CUmemGenericAllocationHandle object, size_t offset, CUmemGenericAllocationHandle memory,
       size_t memory_offset, size_t bytes, unsigned long long flags),
      (object, offset, memory, memory_offset, bytes, flags), vmm_number_of(HOLDING_HANDLE, memory))
BINDS(hook_multicast_bind_mem_v2,
      (CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
       CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes,
       unsigned long long flags),
      (object, device, offset, memory, memory_offset, bytes, flags),
      vmm_number_of(HOLDING_HANDLE, memory))
BINDS(hook_multicast_bind_addr,
      (CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr ptr, size_t bytes,
       unsigned long long flags),
      (object, offset, ptr, bytes, flags), number_at(ptr))
BINDS(hook_multicast_bind_addr_v2,
      (CUmemGenericAllocationHandle object, CUdevice device, size_t offset, CUdeviceptr ptr,
       size_t bytes, unsigned long long flags),
      (object, device, offset, ptr, bytes, flags), number_at(ptr))

DEFINE_HOOK(hook_multicast_unbind, unbind,
	    (CUmemGenericAllocationHandle object, CUdevice device, size_t offset, size_t bytes))
{
	int index = process_is_active() ? process_device_index(device) : -1;
	struct holding h;

	if (index < 0)
		return unbind(object, device, offset, bytes);
	WITH_LOCK(&locks.vmm);
	CUresult result = unbind(object, device, offset, bytes);
	uint64_t known = vmm_number_of(HOLDING_HANDLE, object);
	if (result == CUDA_SUCCESS &&
	    ptrmap_remove(HOLDING_BINDING, binding_key(known ? known : object, index, offset), &h))
		vmm_add_reference(h.related, -1);
	return result;
}
