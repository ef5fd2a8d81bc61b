/*
 * Green contexts: parts of a device's processors. Each retains the primary context by itself, past our
 * hook. We retain it first, which charges it, and then leave the green context its own reference alone:
 * with another one of ours, the context would live longer than the program has it.
 */
#include "interpose/flight.h"
#include "interpose/guest.h"
#include "interpose/hook_context.h"
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

	if (!guest_is_active() || !green || !guest_device_is_there(device))
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
	if (result == CUDA_SUCCESS)
		context_of_green_retained(device);
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
	CUresult result = context_end_green(destroy, green, (CUdevice)h.related);
	if (result != CUDA_SUCCESS)
		ptrmap_insert(&h);
	return result;
}
