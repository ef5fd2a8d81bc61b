/*
 * Green contexts: parts of a device's processors. Each retains the primary context by itself, past our
 * hook; so we retain it first, which charges it, and release it when the green context is gone.
 */
#include "interpose/flight.h"
#include "interpose/guest.h"
#include "interpose/hooks.h"
#include "interpose/ptrmap.h"
#include "interpose/real.h"

static uint64_t key_of(CUgreenCtx green)
{
	return (uint64_t)(uintptr_t)green;
}

/* Costs nothing by itself; the device is kept, since the handle does not tell it. */
static bool note(CUgreenCtx green, CUdevice device)
{
	const struct holding h = {
		.kind = HOLDING_CONTEXT,
		.key = key_of(green),
		.device = guest_device_index(device),
		.related = (uint64_t)device,
	};

	return ptrmap_insert(&h);
}

CUresult hook_green_create(CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice,
					      unsigned int),
			   CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device,
			   unsigned int flags)
{
	CUcontext primary;

	if (!guest_is_active() || !green)
		return create(green, desc, device, flags);
	CUresult result = hook_primary_retain(real.cuDevicePrimaryCtxRetain, &primary, device);
	if (result != CUDA_SUCCESS)
		return result;
	result = create(green, desc, device, flags);
	/* Its default stream is another one, whoever makes it current. */
	if (result == CUDA_SUCCESS)
		flight_context_seen((CUcontext)*green);
	if (result == CUDA_SUCCESS && !note(*green, device)) {
		real.cuGreenCtxDestroy(*green);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result != CUDA_SUCCESS)
		hook_primary_release(real.cuDevicePrimaryCtxRelease_v2, device);
	return result;
}

CUresult hook_green_destroy(CUresult (*destroy)(CUgreenCtx), CUgreenCtx green)
{
	CUcontext context;
	struct holding h;

	if (!guest_is_active() || !ptrmap_remove(HOLDING_CONTEXT, key_of(green), &h))
		return destroy(green);
	/* Marks die with its streams: nobody may query them afterwards. */
	if (real.cuCtxFromGreenCtx && real.cuCtxFromGreenCtx(&context, green) == CUDA_SUCCESS)
		flight_drop_context(context);
	CUresult result = destroy(green);
	if (result == CUDA_SUCCESS)
		hook_primary_release(real.cuDevicePrimaryCtxRelease_v2, (CUdevice)h.related);
	else
		ptrmap_insert(&h);
	return result;
}
