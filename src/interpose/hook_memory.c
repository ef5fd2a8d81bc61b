/* Linear device memory: plain, pitched, managed. */
#include "interpose/charge.h"
#include "interpose/hook_ipc.h"
#include "interpose/hooks.h"
#include "interpose/real.h"

static void undo(uint64_t ptr)
{
	real.cuMemFree_v2(ptr);
}

static struct holding charge_of(uint64_t bytes)
{
	return (struct holding){
		.kind = HOLDING_MEMORY,
		.device = charge_index(),
		.bytes = charge_rounded(bytes),
	};
}

CUresult hook_mem_alloc(CUresult (*alloc)(CUdeviceptr *, size_t), CUdeviceptr *ptr, size_t bytes)
{
	struct holding h = charge_of(bytes);

	if (!charge_begin(&h))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return charge_end(&h, alloc(ptr, bytes), ptr, undo);
}

/* Charged in full at once: the driver may move every page of it to the card. */
CUresult hook_mem_alloc_managed(CUresult (*alloc)(CUdeviceptr *, size_t, unsigned int),
				CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
	struct holding h = charge_of(bytes);

	if (!charge_begin(&h))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return charge_end(&h, alloc(ptr, bytes, flags), ptr, undo);
}

/* The driver picks the pitch: reserve for the least it can be, and settle by what it was. */
CUresult hook_mem_alloc_pitch(CUresult (*alloc)(CUdeviceptr *, size_t *, size_t, size_t,
						unsigned int),
			      CUdeviceptr *ptr, size_t *pitch, size_t width_bytes, size_t height,
			      unsigned int element_bytes)
{
	uint64_t area;
	bool is_absurd = __builtin_mul_overflow((uint64_t)width_bytes, (uint64_t)height, &area);
	struct holding h = charge_of(is_absurd ? UINT64_MAX : area);

	if (!charge_begin(&h))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = alloc(ptr, pitch, width_bytes, height, element_bytes);
	if (result == CUDA_SUCCESS && !charge_resize(&h, charge_rounded((uint64_t)*pitch * height))) {
		undo(*ptr);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return charge_end(&h, result, ptr, undo);
}

static CUresult give_back(const struct holding *h, CUresult result)
{
	if (result == CUDA_SUCCESS)
		hook_ipc_freed(h->key);
	return charge_give_back(h, result);
}

CUresult hook_mem_free(CUresult (*release)(CUdeviceptr), CUdeviceptr ptr)
{
	struct holding h;

	if (!charge_forget(HOLDING_MEMORY, ptr, &h))
		return release(ptr);
	return give_back(&h, release(ptr));
}

/* Pool memory is charged by what its pool reserves: nothing to give back here. */
CUresult hook_mem_free_async(CUresult (*release)(CUdeviceptr, CUstream), CUdeviceptr ptr,
			     CUstream stream)
{
	struct holding h;

	if (!charge_forget(HOLDING_MEMORY, ptr, &h))
		return release(ptr, stream);
	return give_back(&h, release(ptr, stream));
}
