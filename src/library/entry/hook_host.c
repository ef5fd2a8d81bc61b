/* The ledger counts page-locked host memory separately, perhaps with a quota. Managed memory is charged to the GPU instead. */
#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/memory/holding.h"

#define HOST_PAGE 4096ULL

/* Recorded like device memory. This is safe: host and device addresses never coincide, and a context's end frees both. */
static struct holding charge_of(uint64_t bytes)
{
	return (struct holding){
		.kind = HOLDING_MEMORY,
		.device = process_is_active() ? REGION_HOST : -1,
		.bytes = bytes > UINT64_MAX - HOST_PAGE ? UINT64_MAX
							: (bytes + HOST_PAGE - 1) & -HOST_PAGE,
	};
}

static void undo_alloc(uint64_t ptr)
{
	real.cuMemFreeHost((void *)(uintptr_t)ptr);
}

static void undo_register(uint64_t ptr)
{
	real.cuMemHostUnregister((void *)(uintptr_t)ptr);
}

/* `made` points to the address. */
#define LOCKS_MEMORY(hook, params, args, made, undo) \
	DEFINE_HOOK(hook, lock, params) \
	{ \
		struct holding h = charge_of(bytes); \
		if (!charge_begin(&h)) \
			return CUDA_ERROR_OUT_OF_MEMORY; \
		return charge_end(&h, lock args, made, undo); \
	}

LOCKS_MEMORY(hook_host_alloc, (void **ptr, size_t bytes, unsigned int flags), (ptr, bytes, flags),
	     ptr, undo_alloc)
LOCKS_MEMORY(hook_alloc_host, (void **ptr, size_t bytes), (ptr, bytes), ptr, undo_alloc)
LOCKS_MEMORY(hook_alloc_host_v1, (void **ptr, unsigned int bytes), (ptr, bytes), ptr, undo_alloc)
LOCKS_MEMORY(hook_host_register, (void *ptr, size_t bytes, unsigned int flags), (ptr, bytes, flags),
	     &ptr, undo_register)

DEFINE_HOOK(hook_free_host, release, (void *ptr))
{
	struct holding h;

	if (!charge_forget(HOLDING_MEMORY, (uint64_t)(uintptr_t)ptr, &h))
		return release(ptr);
	return charge_give_back(&h, release(ptr));
}
