/*
 * Memory of the virtual memory API. Physical memory is charged when it is made, and until its handle
 * is released as often as it was obtained *and* its last mapping is gone: the driver keeps it so long.
 */
#include "interpose/charge.h"
#include "interpose/hooks.h"
#include "interpose/real.h"

/*
 * Guards the counts. A handle's value is the driver's to give out again once it is released, though its
 * memory is still mapped; so memory has a number of its own here:
 *     HANDLE    handle value -> number, how often it was obtained
 *     MAPPING   address -> number
 *     PHYSICAL  number -> bytes charged, references: one for its handle, one for each mapping
 */
static struct sys_lock vmm_lock;
static uint64_t numbers;

/* One reference more or less; at none the memory is gone. Holds vmm_lock, as do all below. */
static void add_reference(uint64_t number, int by)
{
	struct holding h;

	if (!number || !ptrmap_find(HOLDING_PHYSICAL, number, &h))
		return; /* imported, or host memory: not charged here */
	h.related += (uint64_t)(int64_t)by;
	if (h.related == 0) {
		ptrmap_remove(HOLDING_PHYSICAL, number, &h);
		ledger_release(h.device, h.bytes);
	} else {
		ptrmap_update(&h);
	}
}

static uint64_t number_of(enum holding_kind kind, uint64_t key)
{
	struct holding h;

	return ptrmap_find(kind, key, &h) ? h.related : 0;
}

/* The handle was obtained once more, or for the first time. Without memory to note it, it stays charged. */
static void obtain(uint64_t handle, uint64_t number)
{
	struct holding h = { .kind = HOLDING_HANDLE, .key = handle, .related = number };

	if (!number)
		return;
	if (!ptrmap_find(HOLDING_HANDLE, handle, &h))
		add_reference(number, 1);
	h.bytes++;
	ptrmap_insert(&h);
}

static void let_go(uint64_t handle)
{
	struct holding h;

	if (!ptrmap_remove(HOLDING_HANDLE, handle, &h))
		return;
	if (--h.bytes)
		ptrmap_insert(&h);
	else
		add_reference(h.related, -1);
}

/* What was just made and can't be noted: charge_end() knows its number alone. */
static CUmemGenericAllocationHandle just_made;

static void undo(uint64_t number)
{
	real.cuMemRelease(just_made);
}

/* Notes what was made: the number in the place of a key. */
static CUresult note(struct holding *h, CUmemGenericAllocationHandle handle)
{
	struct holding named = { .kind = HOLDING_HANDLE, .key = handle, .bytes = 1 };
	uint64_t number = ++numbers;

	just_made = handle;
	CUresult result = charge_end(h, CUDA_SUCCESS, &number, undo);
	if (result != CUDA_SUCCESS)
		return result;
	named.related = number;
	if (ptrmap_insert(&named))
		return result;
	undo(number);
	add_reference(number, -1);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hook_mem_create(CUresult (*create)(CUmemGenericAllocationHandle *, size_t,
					    const CUmemAllocationProp *, unsigned long long),
			 CUmemGenericAllocationHandle *handle, size_t bytes,
			 const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct holding h = {
		.kind = HOLDING_PHYSICAL,
		.device = -1,
		.bytes = bytes,
		.related = 1,
	};

	if (guest_is_active() && prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		h.device = guest_device_index(prop->location.id);
	if (h.device < 0)
		return create(handle, bytes, prop, flags);
	if (!charge_begin(&h))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = create(handle, bytes, prop, flags);
	/* The handle's value may be one that another thread is releasing: forgotten first, see below. */
	WITH_LOCK(&vmm_lock);
	return result == CUDA_SUCCESS ? note(&h, *handle) : charge_end(&h, result, handle, undo);
}

CUresult hook_mem_release(CUresult (*release)(CUmemGenericAllocationHandle),
			  CUmemGenericAllocationHandle handle)
{
	if (!guest_is_active())
		return release(handle);
	/* Held over the call: the driver may hand the same handle value to another thread at once. */
	WITH_LOCK(&vmm_lock);
	CUresult result = release(handle);
	if (result == CUDA_SUCCESS)
		let_go(handle);
	return result;
}

CUresult hook_mem_retain_handle(CUresult (*retain)(CUmemGenericAllocationHandle *, void *),
				CUmemGenericAllocationHandle *handle, void *addr)
{
	if (!guest_is_active())
		return retain(handle, addr);
	WITH_LOCK(&vmm_lock);
	CUresult result = retain(handle, addr);
	/* By the mapping, as the handle may be a new one; by the handle for an address inside one. */
	if (result == CUDA_SUCCESS) {
		uint64_t number = number_of(HOLDING_MAPPING, (uint64_t)(uintptr_t)addr);
		obtain(*handle, number ? number : number_of(HOLDING_HANDLE, *handle));
	}
	return result;
}

CUresult hook_mem_map(CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
				      unsigned long long),
		      CUdeviceptr ptr, size_t bytes, size_t offset,
		      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	if (!guest_is_active())
		return map(ptr, bytes, offset, handle, flags);
	WITH_LOCK(&vmm_lock);
	CUresult result = map(ptr, bytes, offset, handle, flags);
	struct holding h = {
		.kind = HOLDING_MAPPING,
		.key = ptr,
		.bytes = bytes,
		.related = number_of(HOLDING_HANDLE, handle),
	};
	if (result == CUDA_SUCCESS && ptrmap_insert(&h))
		add_reference(h.related, 1);
	return result;
}

CUresult hook_mem_unmap(CUresult (*unmap)(CUdeviceptr, size_t), CUdeviceptr ptr, size_t bytes)
{
	struct holding h;

	if (!guest_is_active())
		return unmap(ptr, bytes);
	WITH_LOCK(&vmm_lock);
	CUresult result = unmap(ptr, bytes);
	/* One call may take away several mappings that lie side by side. */
	for (CUdeviceptr at = ptr; result == CUDA_SUCCESS && at < ptr + bytes; at += h.bytes) {
		if (!ptrmap_remove(HOLDING_MAPPING, at, &h) || !h.bytes)
			break;
		add_reference(h.related, -1);
	}
	return result;
}

void hook_vmm_reset(void)
{
	vmm_lock = (struct sys_lock){ 0 };
}
