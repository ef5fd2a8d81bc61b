/* Old and rare calls. Simulated device addresses are above 4 GiB, so a call that must return a 32-bit address fails. */
#include "sim/cuda/sim.h"

#define OLD(symbol, params, ...) \
	CUresult symbol params \
	{ \
		SIM_ENTER(symbol); \
		return __VA_ARGS__; \
	}
#define OLD_TWINS(symbol, suffix, params, ...) \
	OLD(symbol, params, __VA_ARGS__) \
	OLD(symbol##suffix, params, __VA_ARGS__)

/* Stores the address if it fits in 32 bits, else frees the allocation. A failure stores 0, as the real driver does. */
static CUresult narrow(CUresult r, CUdeviceptr wide, CUdeviceptr_v1 *ret_ptr)
{
	*ret_ptr = 0;
	if (r != CUDA_SUCCESS)
		return r;
	if (wide > UINT32_MAX) {
		cuMemFree_v2(wide);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_ptr = (CUdeviceptr_v1)wide;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr_v1 *ptr, unsigned int bytes)
{
	CUdeviceptr wide = 0;

	SIM_ENTER(cuMemAlloc);
	SIM_FAIL_IF(!ptr, CUDA_ERROR_INVALID_VALUE);
	return narrow(cuMemAlloc_v2(&wide, bytes), wide, ptr);
}

SIM_FUNCTION(cuMemGetAddressRange, (CUdeviceptr_v1 * base, unsigned int *bytes, CUdeviceptr_v1 ptr),
	     CUDA_ERROR_NOT_FOUND)

#define OLD_VALUE(symbol, type) \
	OLD_TWINS(symbol, _ptsz, \
		  (CUstream stream, CUdeviceptr addr, type value, unsigned int flags), \
		  symbol##_v2(stream, addr, value, flags))

OLD_VALUE(cuStreamWaitValue32, cuuint32_t)
OLD_VALUE(cuStreamWaitValue64, cuuint64_t)
OLD_VALUE(cuStreamWriteValue32, cuuint32_t)
OLD_VALUE(cuStreamWriteValue64, cuuint64_t)
OLD_TWINS(cuStreamBatchMemOp, _ptsz,
	  (CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops, unsigned int flags),
	  cuStreamBatchMemOp_v2(stream, n, ops, flags))

CUresult cuMemAllocPitch(CUdeviceptr_v1 *ptr, unsigned int *pitch, unsigned int width_bytes,
			 unsigned int height, unsigned int element_bytes)
{
	CUdeviceptr wide = 0;
	size_t wide_pitch = 0;

	SIM_ENTER(cuMemAllocPitch);
	SIM_FAIL_IF(!ptr || !pitch, CUDA_ERROR_INVALID_VALUE);
	CUresult r = narrow(cuMemAllocPitch_v2(&wide, &wide_pitch, width_bytes, height,
					       element_bytes),
			    wide, ptr);
	*pitch = r == CUDA_SUCCESS ? (unsigned int)wide_pitch : 0;
	return r;
}

CUresult cuModuleGetGlobal(CUdeviceptr_v1 *ptr, unsigned int *bytes, CUmodule module,
			   const char *name)
{
	CUdeviceptr wide = 0;
	size_t wide_bytes = 0;

	SIM_ENTER(cuModuleGetGlobal);
	SIM_TRY(cuModuleGetGlobal_v2(&wide, &wide_bytes, module, name));
	SIM_FAIL_IF(wide > UINT32_MAX, CUDA_ERROR_NOT_FOUND);
	if (ptr)
		*ptr = (CUdeviceptr_v1)wide;
	if (bytes)
		*bytes = (unsigned int)wide_bytes;
	return CUDA_SUCCESS;
}

OLD(cuMemFree, (CUdeviceptr_v1 ptr), cuMemFree_v2(ptr))
OLD(cuMemAllocHost, (void **ptr, unsigned int bytes), cuMemAllocHost_v2(ptr, bytes))
OLD(cuMemHostRegister, (void *ptr, size_t bytes, unsigned int flags),
    cuMemHostRegister_v2(ptr, bytes, flags))

static unsigned int saturated(size_t bytes)
{
	return bytes < UINT32_MAX ? (unsigned int)bytes : UINT32_MAX;
}

CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total_bytes)
{
	size_t wide_free = 0, wide_total = 0;

	SIM_ENTER(cuMemGetInfo);
	if (!free_bytes && !total_bytes)
		return CUDA_SUCCESS; /* even without a context (CUDA 13.0 on an H200) */
	CUresult r = cuMemGetInfo_v2(&wide_free, &wide_total);
	if (r == CUDA_SUCCESS && free_bytes)
		*free_bytes = saturated(wide_free);
	if (r == CUDA_SUCCESS && total_bytes)
		*total_bytes = saturated(wide_total);
	return r;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	size_t wide = 0;

	SIM_ENTER(cuDeviceTotalMem);
	SIM_TRY(bytes ? cuDeviceTotalMem_v2(&wide, dev) : CUDA_ERROR_INVALID_VALUE);
	*bytes = saturated(wide);
	return CUDA_SUCCESS;
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
	SIM_ENTER(cuArrayCreate);
	SIM_FAIL_IF(!d, CUDA_ERROR_INVALID_VALUE);
	return cuArrayCreate_v2(array, &(CUDA_ARRAY_DESCRIPTOR){ d->Width, d->Height, d->Format,
								 d->NumChannels });
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
	SIM_ENTER(cuArray3DCreate);
	SIM_FAIL_IF(!d, CUDA_ERROR_INVALID_VALUE);
	return cuArray3DCreate_v2(array, &(CUDA_ARRAY3D_DESCRIPTOR){ d->Width, d->Height, d->Depth,
								     d->Format, d->NumChannels,
								     d->Flags });
}

OLD(cuCtxCreate, (CUcontext * ctx, unsigned int flags, CUdevice dev),
    cuCtxCreate_v2(ctx, flags, dev))
OLD(cuGLCtxCreate, (CUcontext * ctx, unsigned int flags, CUdevice dev),
    cuCtxCreate_v2(ctx, flags, dev))
OLD(cuGLCtxCreate_v2, (CUcontext * ctx, unsigned int flags, CUdevice dev),
    cuCtxCreate_v2(ctx, flags, dev))
OLD(cuCtxDestroy, (CUcontext ctx), cuCtxDestroy_v2(ctx))
OLD(cuCtxDetach, (CUcontext ctx), cuCtxDestroy_v2(ctx))
OLD(cuStreamDestroy, (CUstream stream), cuStreamDestroy_v2(stream))
OLD(cuStreamBeginCapture, (CUstream stream),
    cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL))
OLD(cuStreamBeginCapture_ptsz, (CUstream stream),
    cuStreamBeginCapture_v2_ptsz(stream, CU_STREAM_CAPTURE_MODE_GLOBAL))
OLD_TWINS(cuStreamBeginRecaptureToGraph, _ptsz,
	  (CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
	   CUgraphRecaptureCallback callback, void *data),
	  CUDA_ERROR_NOT_SUPPORTED)

/* Contexts have no reference counts. */
SIM_FUNCTION(cuCtxAttach, (CUcontext * ctx, unsigned int flags),
	     ctx && !flags ? cuCtxGetCurrent(ctx) : CUDA_ERROR_INVALID_VALUE)

/* No display, video engine, sparse arrays or fabric are simulated. */
OLD(cuVDPAUCtxCreate,
    (CUcontext * ctx, unsigned int flags, CUdevice dev, VdpDevice vdp, VdpGetProcAddress *get),
    CUDA_ERROR_NOT_SUPPORTED)
OLD(cuVDPAUCtxCreate_v2,
    (CUcontext * ctx, unsigned int flags, CUdevice dev, VdpDevice vdp, VdpGetProcAddress *get),
    CUDA_ERROR_NOT_SUPPORTED)
OLD_TWINS(cuStreamBeginCaptureToCig, _ptsz, (CUstream stream, CUstreamCigCaptureParams *params),
	  CUDA_ERROR_INVALID_CONTEXT)
/* Checks `maps` before anything else, as CUDA 13.0 does on an H200. */
#define MAP_ARRAY(symbol) \
	CUresult symbol(CUarrayMapInfo *maps, unsigned int count, CUstream stream) \
	{ \
		if (count && !maps) \
			return CUDA_ERROR_INVALID_VALUE; \
		SIM_ENTER(symbol); \
		return CUDA_ERROR_NOT_SUPPORTED; \
	}
MAP_ARRAY(cuMemMapArrayAsync)
MAP_ARRAY(cuMemMapArrayAsync_ptsz)
OLD(cuLogicalEndpointCreate, (CUlogicalEndpointId id, const CUlogicalEndpointProp *prop),
    CUDA_ERROR_NOT_SUPPORTED)
OLD(cuLogicalEndpointImport,
    (CUlogicalEndpointId id, const void *handle, CUlogicalEndpointIpcHandleType type),
    CUDA_ERROR_NOT_SUPPORTED)

/* cuLaunch and cuLaunchGrid always run blocks of one thread. */

static CUresult launch_grid(CUfunction f, int width, int height, CUstream stream)
{
	SIM_FAIL_IF(width <= 0 || height <= 0, CUDA_ERROR_INVALID_VALUE);
	return cuLaunchKernel(f, (unsigned int)width, (unsigned int)height, 1, 1, 1, 1, 0, stream,
			      NULL, NULL);
}

OLD(cuLaunch, (CUfunction f), launch_grid(f, 1, 1, NULL))
OLD(cuLaunchGrid, (CUfunction f, int width, int height), launch_grid(f, width, height, NULL))
OLD(cuLaunchGridAsync, (CUfunction f, int width, int height, CUstream stream),
    launch_grid(f, width, height, stream))

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launches, unsigned int count,
					      unsigned int flags)
{
	CUresult r = launches && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

	SIM_ENTER(cuLaunchCooperativeKernelMultiDevice);
	for (unsigned int i = 0; r == CUDA_SUCCESS && i < count; i++) {
		const CUDA_LAUNCH_PARAMS *l = &launches[i];

		r = cuLaunchKernel(l->function, l->gridDimX, l->gridDimY, l->gridDimZ, l->blockDimX,
				   l->blockDimY, l->blockDimZ, l->sharedMemBytes, l->hStream,
				   l->kernelParams, NULL);
	}
	return r;
}

OLD(cuMemcpyHtoD, (CUdeviceptr_v1 dst, const void *src, unsigned int bytes),
    cuMemcpyHtoD_v2(dst, src, bytes))
OLD(cuMemcpyDtoH, (void *dst, CUdeviceptr_v1 src, unsigned int bytes),
    cuMemcpyDtoH_v2(dst, src, bytes))
OLD(cuMemcpyDtoD, (CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int bytes),
    cuMemcpyDtoD_v2(dst, src, bytes))
OLD(cuMemcpyDtoA, (CUarray dst, unsigned int offset, CUdeviceptr_v1 src, unsigned int bytes),
    cuMemcpyDtoA_v2(dst, offset, src, bytes))
OLD(cuMemcpyAtoD, (CUdeviceptr_v1 dst, CUarray src, unsigned int offset, unsigned int bytes),
    cuMemcpyAtoD_v2(dst, src, offset, bytes))
OLD(cuMemcpyHtoA, (CUarray dst, unsigned int offset, const void *src, unsigned int bytes),
    cuMemcpyHtoA_v2(dst, offset, src, bytes))
OLD(cuMemcpyAtoH, (void *dst, CUarray src, unsigned int offset, unsigned int bytes),
    cuMemcpyAtoH_v2(dst, src, offset, bytes))
OLD(cuMemcpyAtoA,
    (CUarray dst, unsigned int dst_offset, CUarray src, unsigned int src_offset, unsigned int bytes),
    cuMemcpyAtoA_v2(dst, dst_offset, src, src_offset, bytes))
OLD(cuMemcpyHtoDAsync, (CUdeviceptr_v1 dst, const void *src, unsigned int bytes, CUstream stream),
    cuMemcpyHtoDAsync_v2(dst, src, bytes, stream))
OLD(cuMemcpyDtoHAsync, (void *dst, CUdeviceptr_v1 src, unsigned int bytes, CUstream stream),
    cuMemcpyDtoHAsync_v2(dst, src, bytes, stream))
OLD(cuMemcpyDtoDAsync, (CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int bytes, CUstream stream),
    cuMemcpyDtoDAsync_v2(dst, src, bytes, stream))
OLD(cuMemcpyHtoAAsync,
    (CUarray dst, unsigned int offset, const void *src, unsigned int bytes, CUstream stream),
    cuMemcpyHtoAAsync_v2(dst, offset, src, bytes, stream))
OLD(cuMemcpyAtoHAsync,
    (void *dst, CUarray src, unsigned int offset, unsigned int bytes, CUstream stream),
    cuMemcpyAtoHAsync_v2(dst, src, offset, bytes, stream))

#define SIDE(c, side) \
	.side##XInBytes = (c)->side##XInBytes, .side##Y = (c)->side##Y, \
	.side##MemoryType = (c)->side##MemoryType, .side##Host = (c)->side##Host, \
	.side##Device = (c)->side##Device, .side##Array = (c)->side##Array, \
	.side##Pitch = (c)->side##Pitch

static CUDA_MEMCPY2D wide_2d(const CUDA_MEMCPY2D_v1 *c)
{
	return (CUDA_MEMCPY2D){
		SIDE(c, src),
		SIDE(c, dst),
		.WidthInBytes = c->WidthInBytes,
		.Height = c->Height,
	};
}

static CUDA_MEMCPY3D wide_3d(const CUDA_MEMCPY3D_v1 *c)
{
	return (CUDA_MEMCPY3D){
		SIDE(c, src),
		.srcZ = c->srcZ,
		.srcHeight = c->srcHeight,
		SIDE(c, dst),
		.dstZ = c->dstZ,
		.dstHeight = c->dstHeight,
		.WidthInBytes = c->WidthInBytes,
		.Height = c->Height,
		.Depth = c->Depth,
	};
}

#define OLD_COPY(symbol, newer, type, wide) \
	CUresult symbol(const type##_v1 *copy) \
	{ \
		SIM_ENTER(symbol); \
		return copy ? newer(&(type[]){ wide(copy) }[0]) : CUDA_ERROR_INVALID_VALUE; \
	}
#define OLD_COPY_ASYNC(symbol, newer, type, wide) \
	CUresult symbol(const type##_v1 *copy, CUstream stream) \
	{ \
		SIM_ENTER(symbol); \
		return copy ? newer(&(type[]){ wide(copy) }[0], stream) : CUDA_ERROR_INVALID_VALUE; \
	}

OLD_COPY(cuMemcpy2D, cuMemcpy2D_v2, CUDA_MEMCPY2D, wide_2d)
OLD_COPY(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, wide_2d)
OLD_COPY(cuMemcpy3D, cuMemcpy3D_v2, CUDA_MEMCPY3D, wide_3d)
OLD_COPY_ASYNC(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, wide_2d)
OLD_COPY_ASYNC(cuMemcpy3DAsync, cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, wide_3d)

#define OLD_SET(symbol, type) \
	OLD(symbol, (CUdeviceptr_v1 dst, type value, unsigned int n), symbol##_v2(dst, value, n))
#define OLD_SET_2D(symbol, type) \
	OLD(symbol, \
	    (CUdeviceptr_v1 dst, unsigned int pitch, type value, unsigned int width, \
	     unsigned int height), \
	    symbol##_v2(dst, pitch, value, width, height))

OLD_SET(cuMemsetD8, unsigned char)
OLD_SET(cuMemsetD16, unsigned short)
OLD_SET(cuMemsetD32, unsigned int)
OLD_SET_2D(cuMemsetD2D8, unsigned char)
OLD_SET_2D(cuMemsetD2D16, unsigned short)
OLD_SET_2D(cuMemsetD2D32, unsigned int)
