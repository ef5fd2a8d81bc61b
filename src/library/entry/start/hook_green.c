/* Green contexts are parts of a device's processors. The first one may make the primary context, whose memory is charged. */
#include "library/entry/hooks.h"
#include "library/entry/start/hook_context.h"
#include "library/launch/inflight/inflight.h"
#include "library/loader/real.h"
#include "library/memory/ptrmap.h"
#include "library/state/process_state.h"

static uint64_t key_of(CUgreenCtx green)
{
	return (uint64_t)(uintptr_t)green;
}

/* Records the green context's device, which its handle does not tell. The green context itself takes no memory. */
static bool note(CUgreenCtx green, CUdevice device)
{
	const struct holding h = {
		.kind = HOLDING_CONTEXT,
		.key = key_of(green),
		.device = process_device_index(device),
		.related = (uint64_t)device,
	};

	return ptrmap_insert(&h);
}

DEFINE_HOOK(hook_green_create, create,
	    (CUgreenCtx * green, CUdevResourceDesc desc, CUdevice device, unsigned int flags))
{
	if (!process_is_active() || !green || !process_device_exists(device))
		return create(green, desc, device, flags);
	CUresult result = context_create_green(create, green, desc, device, flags);
	if (result != CUDA_SUCCESS)
		return result;
	/* A green context has a default stream of its own, so it counts as a further context. */
	inflight_note_context((CUcontext)*green);
	if (note(*green, device))
		return CUDA_SUCCESS;
	context_end_green(real.cuGreenCtxDestroy, *green, device);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

DEFINE_HOOK(hook_green_destroy, destroy, (CUgreenCtx green))
{
	CUcontext context;
	struct holding h;

	if (!process_is_active() || !ptrmap_remove(HOLDING_CONTEXT, key_of(green), &h))
		return destroy(green);
	/* The library's events end with the context's streams, and must not be queried afterwards. */
	if (real.cuCtxFromGreenCtx && real.cuCtxFromGreenCtx(&context, green) == CUDA_SUCCESS)
		inflight_drop_context(context);
	CUresult result = context_end_green(destroy, green, (CUdevice)h.related);
	if (result != CUDA_SUCCESS)
		ptrmap_insert(&h);
	return result;
}
