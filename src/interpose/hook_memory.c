/* Linear device memory: plain, pitched, managed. */
#include "interpose/charge.h"
#include "interpose/guest.h"
#include "interpose/hooks.h"
#include "interpose/ledger.h"
#include "interpose/real.h"

CUresult hook_mem_alloc(CUresult (*alloc)(CUdeviceptr *, size_t), CUdeviceptr *ptr, size_t bytes)
{
	int index = guest_is_active() ? guest_current_index() : -1;
	uint64_t charge = charge_rounded(bytes);

	if (index < 0)
		return alloc(ptr, bytes);
	if (charge_reserve(index, charge))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = alloc(ptr, bytes);
	if (result != CUDA_SUCCESS) {
		ledger_release(index, charge);
		return result;
	}
	if (charge_remember(HOLDING_MEMORY, *ptr, index, charge, charge_owner()))
		return result;
	real.cuMemFree_v2(*ptr);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hook_mem_alloc_managed(CUresult (*alloc)(CUdeviceptr *, size_t, unsigned int),
				CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
	int index = guest_is_active() ? guest_current_index() : -1;
	uint64_t charge = charge_rounded(bytes);

	/* Charged in full at once: the driver may move every page of it to the card. */
	if (index < 0)
		return alloc(ptr, bytes, flags);
	if (charge_reserve(index, charge))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = alloc(ptr, bytes, flags);
	if (result != CUDA_SUCCESS) {
		ledger_release(index, charge);
		return result;
	}
	if (charge_remember(HOLDING_MEMORY, *ptr, index, charge, charge_owner()))
		return result;
	real.cuMemFree_v2(*ptr);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The driver picks the pitch: reserve for the least it can be, and settle by what it was. */
CUresult hook_mem_alloc_pitch(CUresult (*alloc)(CUdeviceptr *, size_t *, size_t, size_t,
						unsigned int),
			      CUdeviceptr *ptr, size_t *pitch, size_t width_bytes, size_t height,
			      unsigned int element_bytes)
{
	int index = guest_is_active() ? guest_current_index() : -1;
	uint64_t area;

	if (index < 0)
		return alloc(ptr, pitch, width_bytes, height, element_bytes);
	uint64_t charge = __builtin_mul_overflow((uint64_t)width_bytes, (uint64_t)height, &area)
				  ? UINT64_MAX
				  : charge_rounded(area);
	if (charge_reserve(index, charge))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = alloc(ptr, pitch, width_bytes, height, element_bytes);
	if (result != CUDA_SUCCESS) {
		ledger_release(index, charge);
		return result;
	}
	uint64_t actual = charge_rounded((uint64_t)*pitch * height);
	if (actual > charge && charge_reserve(index, actual - charge)) {
		real.cuMemFree_v2(*ptr);
		ledger_release(index, charge);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (actual < charge)
		ledger_release(index, charge - actual);
	if (charge_remember(HOLDING_MEMORY, *ptr, index, actual, charge_owner()))
		return result;
	real.cuMemFree_v2(*ptr);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * Forgotten before the driver frees it: afterwards the address may be another thread's already. Given
 * back after, because until then it is held.
 */
CUresult hook_mem_free(CUresult (*release)(CUdeviceptr), CUdeviceptr ptr)
{
	struct holding h;

	if (!guest_is_active() || !ptrmap_remove(HOLDING_MEMORY, ptr, &h))
		return release(ptr);
	CUresult result = release(ptr);
	if (result == CUDA_SUCCESS)
		ledger_release(h.device, h.bytes);
	else
		ptrmap_insert(&h);
	return result;
}

CUresult hook_mem_free_async(CUresult (*release)(CUdeviceptr, CUstream), CUdeviceptr ptr,
			     CUstream stream)
{
	struct holding h;

	/* Pool memory is charged by what its pool reserves: nothing to give back here. */
	if (!guest_is_active() || !ptrmap_remove(HOLDING_MEMORY, ptr, &h))
		return release(ptr, stream);
	CUresult result = release(ptr, stream);
	if (result == CUDA_SUCCESS)
		ledger_release(h.device, h.bytes);
	else
		ptrmap_insert(&h);
	return result;
}
