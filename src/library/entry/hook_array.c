/*
 * The driver states the size only of an array with deferred mapping, which holds no memory. So for each array the library makes
 * such a twin, reads the twin's size, destroys the twin, and charges that size.
 */
#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/memory/holding.h"
#include "library/memory/swap_hold.h"
#include "library/memory/swap_room.h"

/* With these flags the program maps memory of cuMemCreate into the array. The hook of cuMemCreate charges that memory. */
#define HOLDS_NO_MEMORY (CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_SPARSE)
#define FALLBACK_ALIGNMENT (64 * KIB)

static unsigned format_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8: return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF: return 2;
	default: return 4;
	}
}

/* Estimates the size, for a driver that cannot state it. All further levels of a mipmap together add at most a third. */
static uint64_t computed_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	uint64_t texels = (uint64_t)d->Width * (d->Height ? d->Height : 1) *
			  (d->Depth ? d->Depth : 1);
	uint64_t bytes = texels * d->NumChannels * format_bytes(d->Format);

	if (levels > 1)
		bytes += bytes / 3;
	return (bytes + FALLBACK_ALIGNMENT - 1) / FALLBACK_ALIGNMENT * FALLBACK_ALIGNMENT;
}

static bool array_twin_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, CUdevice device, uint64_t *ret)
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS need;
	CUarray twin;

	if (!real.cuArrayGetMemoryRequirements || !real.cuArray3DCreate_v2 ||
	    real.cuArray3DCreate_v2(&twin, desc) != CUDA_SUCCESS)
		return false;
	bool is_known = real.cuArrayGetMemoryRequirements(&need, twin, device) == CUDA_SUCCESS;
	real.cuArrayDestroy(twin);
	*ret = need.size;
	return is_known;
}

static bool mipmap_twin_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels, CUdevice device,
			      uint64_t *ret)
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS need;
	CUmipmappedArray twin;

	if (!real.cuMipmappedArrayGetMemoryRequirements || !real.cuMipmappedArrayCreate ||
	    real.cuMipmappedArrayCreate(&twin, desc, levels) != CUDA_SUCCESS)
		return false;
	bool is_known = real.cuMipmappedArrayGetMemoryRequirements(&need, twin, device) ==
			CUDA_SUCCESS;
	real.cuMipmappedArrayDestroy(twin);
	*ret = need.size;
	return is_known;
}

/* An array above 1 MiB has whole pages of 2 MiB to itself (measured on an H200 with driver 580). */
static uint64_t rounded(uint64_t bytes)
{
	return charge_rounded(bytes > MIB && bytes < 2 * MIB ? 2 * MIB : bytes);
}

/* In relaxed mode, the queries of the size do not break the program's stream capture. */
static void exchange_capture_mode(CUstreamCaptureMode *mode)
{
	if (real.cuThreadExchangeStreamCaptureMode)
		real.cuThreadExchangeStreamCaptureMode(mode);
}

/* `levels` is 0 for an array without mipmap levels. */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
	CUDA_ARRAY3D_DESCRIPTOR deferred = *desc;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUdevice device;
	uint64_t bytes = 0;

	if (desc->Flags & HOLDS_NO_MEMORY)
		return 0;
	deferred.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
	exchange_capture_mode(&mode);
	bool is_known = real.cuCtxGetDevice(&device) == CUDA_SUCCESS &&
			(levels ? mipmap_twin_bytes(&deferred, levels, device, &bytes)
				: array_twin_bytes(&deferred, device, &bytes));
	exchange_capture_mode(&mode);
	return rounded(is_known ? bytes : computed_bytes(desc, levels));
}

static void undo_array(uint64_t array)
{
	real.cuArrayDestroy((CUarray)(uintptr_t)array);
}

static void undo_mipmap(uint64_t mipmap)
{
	real.cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)mipmap);
}

/* The result's device is -1 if nothing is to be charged, for example because the driver will refuse the call. */
static struct holding charge_of(const void *ret_array, const CUDA_ARRAY3D_DESCRIPTOR *desc,
				unsigned levels)
{
	int index = ret_array && desc ? charge_index() : -1;

	return (struct holding){
		.kind = HOLDING_ARRAY,
		.device = index,
		.bytes = index < 0 ? 0 : array_bytes(desc, levels),
	};
}

DEFINE_HOOK_WITH_ROOM(hook_array_create, create,
		      (CUarray * array, const CUDA_ARRAY_DESCRIPTOR *desc), (array, desc))
{
	WITH_MEMORY_HELD();
	if (!array || !desc || charge_index() < 0)
		return create(array, desc);
	CUDA_ARRAY3D_DESCRIPTOR same = {
		.Width = desc->Width,
		.Height = desc->Height,
		.Format = desc->Format,
		.NumChannels = desc->NumChannels,
	};
	struct holding h = charge_of(array, &same, 0);
	if (!charge_begin_on_gpu(&h))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return charge_end(&h, create(array, desc), array, undo_array);
}

DEFINE_HOOK_WITH_ROOM(hook_array3d_create, create,
		      (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR *desc), (array, desc))
{
	WITH_MEMORY_HELD();
	struct holding h = charge_of(array, desc, 0);

	if (!charge_begin_on_gpu(&h))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return charge_end(&h, create(array, desc), array, undo_array);
}

DEFINE_HOOK_WITH_ROOM(hook_mipmap_create, create,
		      (CUmipmappedArray * mipmap, const CUDA_ARRAY3D_DESCRIPTOR *desc,
		       unsigned int levels),
		      (mipmap, desc, levels))
{
	WITH_MEMORY_HELD();
	struct holding h = charge_of(mipmap, levels ? desc : NULL, levels);

	if (!charge_begin_on_gpu(&h))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return charge_end(&h, create(mipmap, desc, levels), mipmap, undo_mipmap);
}

DEFINE_HOOK(hook_array_destroy, destroy, (CUarray array))
{
	struct holding h;

	if (!charge_forget(HOLDING_ARRAY, (uint64_t)(uintptr_t)array, &h))
		return destroy(array);
	return charge_give_back(&h, destroy(array));
}

DEFINE_HOOK(hook_mipmap_destroy, destroy, (CUmipmappedArray mipmap))
{
	struct holding h;

	if (!charge_forget(HOLDING_ARRAY, (uint64_t)(uintptr_t)mipmap, &h))
		return destroy(mipmap);
	return charge_give_back(&h, destroy(mipmap));
}
