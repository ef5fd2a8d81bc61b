#include "library/entry/hook_ipc.h"
#include "library/entry/hook_pool.h"
#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/memory/holding.h"
#include "library/memory/swap_hold.h"
#include "library/memory/swap_room.h"
#include "library/swap/swap_backing.h"
#include "library/trace/trace_record.h"

#define PITCH 512ULL
#define MANAGED_PAGE (2 * MIB)

/* cuMemFree rejects memory that swap can move off the GPU (swap_backing.h), so the library frees it itself. */
static CUresult call_free(CUresult (*release)(CUdeviceptr), CUdeviceptr ptr)
{
	CUresult result;

	return swap_is_on() && swap_backing_free(ptr, &result) ? result : release(ptr);
}

static void undo(uint64_t ptr)
{
	call_free(real.cuMemFree_v2, ptr);
}

static struct holding charge_of(uint64_t bytes)
{
	return (struct holding){
		.kind = HOLDING_MEMORY,
		.device = charge_index_of_call(),
		.bytes = charge_rounded(bytes),
	};
}

static CUresult call_alloc(CUresult (*alloc)(CUdeviceptr *, size_t), CUdeviceptr *ptr, size_t bytes)
{
	/* cuMemAlloc from before CUDA 3.2 returns 32-bit addresses, which movable memory never has. */
	CUresult result = swap_is_on() && alloc == real.cuMemAlloc_v2
				  ? swap_backing_alloc(ptr, bytes)
				  : CUDA_ERROR_NOT_SUPPORTED;

	return result == CUDA_ERROR_NOT_SUPPORTED ? alloc(ptr, bytes) : result;
}

static CUresult try_allocate(CUresult (*alloc)(CUdeviceptr *, size_t), CUdeviceptr *ptr,
			     size_t bytes)
{
	WITH_MEMORY_HELD();
	struct holding h = charge_of(bytes);

	if (!charge_begin_on_gpu(&h))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return charge_end(&h, call_alloc(alloc, ptr, bytes), ptr, undo);
}

static __attribute__((noinline)) CUresult allocate(CUresult (*alloc)(CUdeviceptr *, size_t),
						   CUdeviceptr *ptr, size_t bytes)
{
	return WITH_ROOM(try_allocate(alloc, ptr, bytes));
}

/* Handles rare results: the driver failed, or this suballocation is the first in its chunk (suballoc.h). */
static __attribute__((noinline)) CUresult end_suballoc(CUresult result, const CUdeviceptr *ptr,
						       size_t bytes)
{
	struct holding h = {
		.kind = HOLDING_MEMORY,
		.bytes = charge_rounded(bytes),
		.related = SUBALLOC_SPARE,
	};

	return charge_end(&h, result, ptr, undo);
}

DEFINE_HOOK(hook_mem_alloc, alloc, (CUdeviceptr * ptr, size_t bytes))
{
	struct process_own *own = process_own();

	if (bytes > SUBALLOC_MAX ||
	    !atomic_load_explicit(&own->has_one_device, memory_order_relaxed) ||
	    !suballoc_begin_here(&own->cache))
		return allocate(alloc, ptr, bytes);
	CUresult result = alloc(ptr, bytes);
	if (likely(result == CUDA_SUCCESS && suballoc_end_here(&own->cache, *ptr)))
		return result;
	return end_suballoc(result, ptr, bytes);
}

/* Managed memory is charged in full at once, in whole pages, because the driver may move all its pages to the GPU. */
DEFINE_HOOK(hook_mem_alloc_managed, alloc, (CUdeviceptr * ptr, size_t bytes, unsigned int flags))
{
	WITH_MEMORY_HELD();
	struct holding h = charge_of(bytes < MANAGED_PAGE ? MANAGED_PAGE : bytes);

	if (h.device >= 0)
		ledger_mark_unsure(h.device);
	if (!charge_begin(&h))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return charge_end(&h, alloc(ptr, bytes, flags), ptr, undo);
}

/*
 * Allocates memory that swap can move off the GPU. Pads rows to multiples of PITCH, as every known GPU does. Invalid parameters
 * yield CUDA_ERROR_NOT_SUPPORTED; then the caller calls the driver, which returns the right error.
 */
static CUresult alloc_pitch_movable(CUdeviceptr *ptr, size_t *pitch, size_t width_bytes,
				    size_t height, unsigned int element_bytes)
{
	size_t row = (width_bytes + PITCH - 1) / PITCH * PITCH;

	if (!pitch || !width_bytes || !height ||
	    (element_bytes != 4 && element_bytes != 8 && element_bytes != 16))
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = swap_backing_alloc(ptr, row * height);
	if (result == CUDA_SUCCESS)
		*pitch = row;
	return result;
}

/*
 * The driver chooses the padding of rows. So this reserves memory for rows padded to PITCH, as on every known GPU, and then
 * corrects the charge. The width alone may be too small by a factor of hundreds.
 */
DEFINE_HOOK_WITH_ROOM(hook_mem_alloc_pitch, alloc,
		      (CUdeviceptr * ptr, size_t *pitch, size_t width_bytes, size_t height,
		       unsigned int element_bytes),
		      (ptr, pitch, width_bytes, height, element_bytes))
{
	WITH_MEMORY_HELD();
	uint64_t area, row = (uint64_t)width_bytes + PITCH - 1;
	bool is_absurd = row < PITCH - 1 ||
			 __builtin_mul_overflow(row / PITCH * PITCH, (uint64_t)height, &area);
	struct holding h = charge_of(is_absurd ? UINT64_MAX : area);

	if (!charge_begin_on_gpu(&h))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = swap_is_on() && alloc == real.cuMemAllocPitch_v2
				  ? alloc_pitch_movable(ptr, pitch, width_bytes, height,
							element_bytes)
				  : CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		result = alloc(ptr, pitch, width_bytes, height, element_bytes);
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

static inline CUresult give_back_suballoc(struct suballoc_chunk *chunk, CUdeviceptr ptr,
					  CUresult result)
{
	if (likely(result == CUDA_SUCCESS)) {
		hook_ipc_freed(ptr);
		/* The trace shows 0 bytes, because the size of a suballocation is not recorded. */
		if (trace_is_on())
			trace_memory_now(TRACE_FREE, suballoc_device(chunk), ptr, 0);
		suballoc_remove(&process_own()->cache, chunk);
	}
	return result;
}

/* Forgets the memory at `ptr` if it was imported from another process's pool. Returns `ptr`. */
static CUdeviceptr forget_import(CUdeviceptr ptr)
{
	if (shared_any() && process_is_active())
		hook_pool_freed_import(ptr);
	return ptr;
}

/* Finds the chunk of suballocations that contains `ptr`, but only in the leaf (suballoc.h) that was read last. */
static inline struct suballoc_chunk *suballoc_nearby(CUdeviceptr ptr)
{
	struct suballoc_chunk *chunk = suballoc_chunk_nearby(&process_own()->cache, ptr);

	return likely(chunk && suballoc_count(chunk)) ? chunk : NULL;
}

static __attribute__((noinline)) CUresult free_any(CUresult (*release)(CUdeviceptr), CUdeviceptr ptr)
{
	WITH_MEMORY_STILL();
	struct suballoc_chunk *chunk = charge_suballoc_at(ptr);
	struct holding h;

	if (chunk)
		return give_back_suballoc(chunk, ptr, release(ptr));
	if (!charge_forget(HOLDING_MEMORY, ptr, &h))
		return call_free(release, forget_import(ptr));
	return give_back(&h, call_free(release, ptr));
}

DEFINE_HOOK(hook_mem_free, release, (CUdeviceptr ptr))
{
	struct suballoc_chunk *chunk = suballoc_nearby(ptr);

	return likely(chunk) ? give_back_suballoc(chunk, ptr, release(ptr)) : free_any(release, ptr);
}

/* The free of a pool's memory gives no charge back, because all bytes that the pool reserves are charged (hook_pool.h). */
DEFINE_HOOK(hook_mem_free_async, release, (CUdeviceptr ptr, CUstream stream))
{
	WITH_MEMORY_STILL();
	struct suballoc_chunk *chunk = charge_suballoc_at(ptr);
	struct backing backing;
	struct holding h;

	if (chunk)
		return give_back_suballoc(chunk, ptr, release(ptr, stream));
	/* Free movable memory once all work has ended, not in stream order. The driver does the same for cuMemAlloc. */
	if (swap_is_on() && swap_backing_find(ptr, &backing))
		return free_any(real.cuMemFree_v2, ptr);
	if (!charge_forget(HOLDING_MEMORY, ptr, &h)) {
		trace_memory(TRACE_FREE, trace_is_on() ? charge_index() : -1, ptr, 0);
		return release(forget_import(ptr), stream);
	}
	return give_back(&h, release(ptr, stream));
}
