/* Old and rarely used functions. Most hooks widen 32-bit sizes, call the newer function's hook, and narrow the results. */
#include "library/entry/hooks.h"
#include "library/launch/captures.h"
#include "library/launch/inflight/inflight.h"
#include "library/launch/gate.h"
#include "library/loader/real.h"
#include "library/memory/holding.h"
#include "library/memory/swap_hold.h"

/* *_wide() and *_narrow() call old functions of the driver with the types of the newer ones. */

static CUresult alloc_wide(CUdeviceptr *ptr, size_t bytes)
{
	CUdeviceptr_v1 narrow = 0;
	CUresult result = real.cuMemAlloc(&narrow, (unsigned int)bytes);

	*ptr = narrow;
	return result;
}

/* If the call fails, sets *ptr to 0, as the driver (580) does. */
DEFINE_HOOK(hook_mem_alloc_v1, alloc, (CUdeviceptr_v1 * ptr, unsigned int bytes))
{
	CUdeviceptr wide = 0;

	if (!ptr || charge_index() < 0)
		return alloc(ptr, bytes);
	CUresult result = hook_mem_alloc(alloc_wide, &wide, bytes);
	*ptr = result == CUDA_SUCCESS ? (CUdeviceptr_v1)wide : 0;
	return result;
}

static CUresult alloc_pitch_wide(CUdeviceptr *ptr, size_t *pitch, size_t width_bytes, size_t height,
				 unsigned int element_bytes)
{
	CUdeviceptr_v1 narrow = 0;
	unsigned int narrow_pitch = 0;
	CUresult result = real.cuMemAllocPitch(&narrow, &narrow_pitch, (unsigned int)width_bytes,
					       (unsigned int)height, element_bytes);

	*ptr = narrow;
	*pitch = narrow_pitch;
	return result;
}

DEFINE_HOOK(hook_mem_alloc_pitch_v1, alloc,
	    (CUdeviceptr_v1 * ptr, unsigned int *pitch, unsigned int width_bytes,
	     unsigned int height, unsigned int element_bytes))
{
	CUdeviceptr wide = 0;
	size_t wide_pitch = 0;

	if (!ptr || !pitch || charge_index() < 0)
		return alloc(ptr, pitch, width_bytes, height, element_bytes);
	CUresult result = hook_mem_alloc_pitch(alloc_pitch_wide, &wide, &wide_pitch, width_bytes,
					       height, element_bytes);
	*ptr = result == CUDA_SUCCESS ? (CUdeviceptr_v1)wide : 0;
	*pitch = result == CUDA_SUCCESS ? (unsigned int)wide_pitch : 0;
	return result;
}

static CUresult free_wide(CUdeviceptr ptr)
{
	return real.cuMemFree((CUdeviceptr_v1)ptr);
}

DEFINE_HOOK(hook_mem_free_v1, release, (CUdeviceptr_v1 ptr))
{
	return hook_mem_free(free_wide, ptr);
}

static unsigned int narrowed(size_t bytes)
{
	return bytes < UINT32_MAX ? (unsigned int)bytes : UINT32_MAX;
}

/* Returns the old call's result, because the newer call's may differ (driver 580), but the newer hook's sizes. */
DEFINE_HOOK(hook_mem_get_info_v1, get, (unsigned int *free_bytes, unsigned int *total_bytes))
{
	size_t wide_free = 0, wide_total = 0;
	CUresult result = get(free_bytes, total_bytes);

	if (result != CUDA_SUCCESS || !process_is_active() || !real.cuMemGetInfo_v2 ||
	    (!free_bytes && !total_bytes))
		return result;
	if (hook_mem_get_info(real.cuMemGetInfo_v2, &wide_free, &wide_total) != CUDA_SUCCESS)
		return result;
	if (free_bytes)
		*free_bytes = narrowed(wide_free);
	if (total_bytes)
		*total_bytes = narrowed(wide_total);
	return result;
}

DEFINE_HOOK(hook_device_total_mem_v1, get, (unsigned int *bytes, CUdevice device))
{
	size_t wide = 0;
	CUresult result = get(bytes, device);

	if (result != CUDA_SUCCESS || !process_is_active() || !real.cuDeviceTotalMem_v2)
		return result;
	if (hook_device_total_mem(real.cuDeviceTotalMem_v2, &wide, device) == CUDA_SUCCESS && bytes)
		*bytes = narrowed(wide);
	return result;
}

static CUresult array_create_narrow(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
{
	const CUDA_ARRAY_DESCRIPTOR_v1 narrow = {
		.Width = (unsigned int)d->Width,
		.Height = (unsigned int)d->Height,
		.Format = d->Format,
		.NumChannels = d->NumChannels,
	};

	return real.cuArrayCreate(array, &narrow);
}

DEFINE_HOOK(hook_array_create_v1, create, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR_v1 *d))
{
	if (!array || !d || charge_index() < 0)
		return create(array, d);
	CUDA_ARRAY_DESCRIPTOR wide = {
		.Width = d->Width,
		.Height = d->Height,
		.Format = d->Format,
		.NumChannels = d->NumChannels,
	};
	return hook_array_create(array_create_narrow, array, &wide);
}

static CUresult array3d_create_narrow(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	const CUDA_ARRAY3D_DESCRIPTOR_v1 narrow = {
		.Width = (unsigned int)d->Width,
		.Height = (unsigned int)d->Height,
		.Depth = (unsigned int)d->Depth,
		.Format = d->Format,
		.NumChannels = d->NumChannels,
		.Flags = d->Flags,
	};

	return real.cuArray3DCreate(array, &narrow);
}

DEFINE_HOOK(hook_array3d_create_v1, create, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d))
{
	if (!array || !d || charge_index() < 0)
		return create(array, d);
	CUDA_ARRAY3D_DESCRIPTOR wide = {
		.Width = d->Width,
		.Height = d->Height,
		.Depth = d->Depth,
		.Format = d->Format,
		.NumChannels = d->NumChannels,
		.Flags = d->Flags,
	};
	return hook_array3d_create(array3d_create_narrow, array, &wide);
}

DEFINE_HOOK(hook_begin_capture_v1, begin, (CUstream stream))
{
	WITH_MEMORY_STILL();
	captures_begin();
	return captures_began(stream, begin(stream));
}

DEFINE_HOOK(hook_begin_recapture, begin,
	    (CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
	     CUgraphRecaptureCallback callback, void *data))
{
	WITH_MEMORY_STILL();
	captures_begin();
	return captures_began(stream, begin(stream, mode, graph, callback, data));
}

static struct work work_of(const CUDA_LAUNCH_PARAMS *l)
{
	return (struct work){
		.kind = WORK_IS_KERNEL,
		.streams = LEGACY,
		.stream = l->hStream,
		.subject = l->function,
		.blocks = (uint64_t)l->gridDimX * l->gridDimY * l->gridDimZ,
		.threads = (uint64_t)l->blockDimX * l->blockDimY * l->blockDimZ,
	};
}

/* No deadlock if a thread holds one device's lease and waits for another's: the daemon ends each lease at its deadline. */
DEFINE_HOOK(hook_launch_multi_device, launch,
	    (CUDA_LAUNCH_PARAMS * launches, unsigned int count, unsigned int flags))
{
	struct work work[REGION_MAX_DEVICES];
	struct gate_pass pass[REGION_MAX_DEVICES];
	bool is_refused = false;

	/* Before cuInit the driver refuses the call without reading `launches`, which may then be invalid. */
	if (!process_is_active() || !launches || count > REGION_MAX_DEVICES ||
	    !process_device_exists(0))
		return launch(launches, count, flags);
	for (unsigned int i = 0; i < count; i++) {
		work[i] = work_of(&launches[i]);
		gate_enter(&pass[i], &work[i]);
		is_refused |= pass[i].is_refused;
	}
	CUresult result = is_refused ? CUDA_ERROR_OUT_OF_MEMORY : launch(launches, count, flags);
	while (count-- > 0)
		gate_leave(&pass[count], &work[count], result);
	return result;
}
