/*
 * Every driver API that allot governs, one row each. The row makes the enum, the typed slot for the
 * real function, the name table, the exported wrapper and the list of exports (src/interpose), and
 * the simulated GPU must define every row's symbol (src/sim), so that a governed call which it
 * lacks fails at link time. CI holds the prototypes against NVIDIA's headers.
 *
 * Two kinds of rows, given by the user of the table as two macros:
 *
 *   HOOK(symbol, hook, params, args)
 *       The wrapper calls `hook_<hook>(real function, args...)`, written by hand in gate_<kind>.c.
 *       Several symbols of the same shape share one hook.
 *   WORK(symbol, streams, params, args, work...)
 *       GPU work. The wrapper is generated: enter the gate, call the real function, leave the gate.
 *       `streams` says what a NULL stream means: LEGACY or PER_THREAD (the _ptsz and _ptds twins).
 *       `work` describes the work, one of the WORK_ macros below, as src/interpose/work.h has it:
 *       WORK_KERNEL(stream, function, blocks, threads), WORK_GRAPH(stream, exec),
 *       WORK_COPY(stream, bytes) for asynchronous, WORK_SYNC(bytes) for calls that return when done.
 *       It expands to an initializer with commas in it: take it as `...`.
 *
 * `_v2` is part of a symbol's name: older ABIs of the same name are other functions.
 */
#ifndef ALLOT_DRIVER_DRIVER_TABLE_H
#define ALLOT_DRIVER_DRIVER_TABLE_H

#include "driver/cuda_abi.h"

/* A row and its per-thread-default-stream twin. */
#define HOOK_TWINS(HOOK, symbol, suffix, hook, params, args) \
	HOOK(symbol, hook, params, args) \
	HOOK(symbol##suffix, hook, params, args)
#define WORK_TWINS(WORK, symbol, suffix, params, args, ...) \
	WORK(symbol, LEGACY, params, args, __VA_ARGS__) \
	WORK(symbol##suffix, PER_THREAD, params, args, __VA_ARGS__)

/* Start, and the two ways of looking functions up. */
#define DRIVER_TABLE_ENTRY(HOOK) \
	HOOK(cuInit, init, (unsigned int flags), (flags)) \
	HOOK(cuGetProcAddress, get_proc_address, \
	     (const char *symbol, void **pfn, int version, cuuint64_t flags), \
	     (symbol, pfn, version, flags)) \
	HOOK(cuGetProcAddress_v2, get_proc_address_v2, \
	     (const char *symbol, void **pfn, int version, cuuint64_t flags, \
	      CUdriverProcAddressQueryResult *status), \
	     (symbol, pfn, version, flags, status))

/* Contexts: memory that no allocation call names. */
#define DRIVER_TABLE_CONTEXT(HOOK) \
	HOOK(cuDevicePrimaryCtxRetain, primary_retain, (CUcontext *ctx, CUdevice dev), (ctx, dev)) \
	HOOK(cuDevicePrimaryCtxRelease, primary_release, (CUdevice dev), (dev)) \
	HOOK(cuDevicePrimaryCtxRelease_v2, primary_release, (CUdevice dev), (dev)) \
	HOOK(cuDevicePrimaryCtxReset, primary_reset, (CUdevice dev), (dev)) \
	HOOK(cuDevicePrimaryCtxReset_v2, primary_reset, (CUdevice dev), (dev)) \
	HOOK(cuCtxCreate_v2, ctx_create, (CUcontext *ctx, unsigned int flags, CUdevice dev), \
	     (ctx, flags, dev)) \
	HOOK(cuCtxCreate_v3, ctx_create_v3, \
	     (CUcontext *ctx, CUexecAffinityParam *affinity, int affinities, unsigned int flags, \
	      CUdevice dev), \
	     (ctx, affinity, affinities, flags, dev)) \
	HOOK(cuCtxCreate_v4, ctx_create_v4, \
	     (CUcontext *ctx, CUctxCreateParams *how, unsigned int flags, CUdevice dev), \
	     (ctx, how, flags, dev)) \
	HOOK(cuCtxDestroy_v2, ctx_destroy, (CUcontext ctx), (ctx))

/* What the tenant may see of the card's memory. */
#define DRIVER_TABLE_INFO(HOOK) \
	HOOK(cuMemGetInfo_v2, mem_get_info, (size_t *free_bytes, size_t *total_bytes), \
	     (free_bytes, total_bytes)) \
	HOOK(cuDeviceTotalMem_v2, device_total_mem, (size_t *bytes, CUdevice dev), (bytes, dev))

/* Device memory: what makes it appear, and what makes it go. */
#define DRIVER_TABLE_MEMORY(HOOK) \
	HOOK(cuMemAlloc_v2, mem_alloc, (CUdeviceptr *ptr, size_t bytes), (ptr, bytes)) \
	HOOK(cuMemAllocPitch_v2, mem_alloc_pitch, \
	     (CUdeviceptr *ptr, size_t *pitch, size_t width_bytes, size_t height, \
	      unsigned int element_bytes), \
	     (ptr, pitch, width_bytes, height, element_bytes)) \
	HOOK(cuMemAllocManaged, mem_alloc_managed, \
	     (CUdeviceptr *ptr, size_t bytes, unsigned int flags), (ptr, bytes, flags)) \
	HOOK(cuMemFree_v2, mem_free, (CUdeviceptr ptr), (ptr)) \
	HOOK_TWINS(HOOK, cuMemAllocAsync, _ptsz, mem_alloc_async, \
		   (CUdeviceptr *ptr, size_t bytes, CUstream stream), (ptr, bytes, stream)) \
	HOOK_TWINS(HOOK, cuMemAllocFromPoolAsync, _ptsz, mem_alloc_from_pool_async, \
		   (CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream), \
		   (ptr, bytes, pool, stream)) \
	HOOK_TWINS(HOOK, cuMemFreeAsync, _ptsz, mem_free_async, (CUdeviceptr ptr, CUstream stream), \
		   (ptr, stream)) \
	HOOK(cuMemPoolTrimTo, mem_pool_trim_to, (CUmemoryPool pool, size_t keep_bytes), \
	     (pool, keep_bytes)) \
	HOOK(cuMemPoolDestroy, mem_pool_destroy, (CUmemoryPool pool), (pool)) \
	HOOK(cuArrayCreate_v2, array_create, \
	     (CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc), (array, desc)) \
	HOOK(cuArray3DCreate_v2, array3d_create, \
	     (CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc), (array, desc)) \
	HOOK(cuArrayDestroy, array_destroy, (CUarray array), (array)) \
	HOOK(cuMipmappedArrayCreate, mipmap_create, \
	     (CUmipmappedArray *mipmap, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels), \
	     (mipmap, desc, levels)) \
	HOOK(cuMipmappedArrayDestroy, mipmap_destroy, (CUmipmappedArray mipmap), (mipmap)) \
	HOOK(cuMemCreate, mem_create, \
	     (CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop, \
	      unsigned long long flags), \
	     (handle, bytes, prop, flags)) \
	HOOK(cuMemRelease, mem_release, (CUmemGenericAllocationHandle handle), (handle)) \
	HOOK(cuMemRetainAllocationHandle, mem_retain_handle, \
	     (CUmemGenericAllocationHandle *handle, void *addr), (handle, addr)) \
	HOOK(cuMemMap, mem_map, \
	     (CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, \
	      unsigned long long flags), \
	     (ptr, bytes, offset, handle, flags)) \
	HOOK(cuMemUnmap, mem_unmap, (CUdeviceptr ptr, size_t bytes), (ptr, bytes))

/* Streams and captures: the gate must know a capture, and when a stream or graph is gone. */
#define DRIVER_TABLE_STREAM(HOOK) \
	HOOK_TWINS(HOOK, cuStreamBeginCapture_v2, _ptsz, begin_capture, \
		   (CUstream stream, CUstreamCaptureMode mode), (stream, mode)) \
	HOOK_TWINS(HOOK, cuStreamBeginCaptureToGraph, _ptsz, begin_capture_to_graph, \
		   (CUstream stream, CUgraph graph, const CUgraphNode *dependencies, \
		    const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode), \
		   (stream, graph, dependencies, edges, count, mode)) \
	HOOK_TWINS(HOOK, cuStreamEndCapture, _ptsz, end_capture, \
		   (CUstream stream, CUgraph *graph), (stream, graph)) \
	HOOK(cuStreamDestroy_v2, stream_destroy, (CUstream stream), (stream)) \
	HOOK(cuGraphExecDestroy, graph_exec_destroy, (CUgraphExec exec), (exec))

#define DRIVER_TABLE_LAUNCH(WORK) \
	WORK_TWINS(WORK, cuLaunchKernel, _ptsz, \
		   (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, \
		    unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared_bytes, \
		    CUstream stream, void **params, void **extra), \
		   (f, gx, gy, gz, bx, by, bz, shared_bytes, stream, params, extra), \
		   WORK_KERNEL(stream, f, (uint64_t)gx *gy *gz, (uint64_t)bx *by *bz)) \
	WORK_TWINS(WORK, cuLaunchKernelEx, _ptsz, \
		   (const CUlaunchConfig *config, CUfunction f, void **params, void **extra), \
		   (config, f, params, extra), \
		   WORK_KERNEL(config ? config->hStream : NULL, f, \
			       config ? (uint64_t)config->gridDimX * config->gridDimY * \
						config->gridDimZ : 0, \
			       config ? (uint64_t)config->blockDimX * config->blockDimY * \
						config->blockDimZ : 0)) \
	WORK_TWINS(WORK, cuLaunchCooperativeKernel, _ptsz, \
		   (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, \
		    unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared_bytes, \
		    CUstream stream, void **params), \
		   (f, gx, gy, gz, bx, by, bz, shared_bytes, stream, params), \
		   WORK_KERNEL(stream, f, (uint64_t)gx *gy *gz, (uint64_t)bx *by *bz)) \
	WORK_TWINS(WORK, cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), \
		   (exec, stream), WORK_GRAPH(stream, exec))

#define BYTES_2D(c) ((c) ? (c)->WidthInBytes * (c)->Height : 0)
#define BYTES_3D(c) ((c) ? (c)->WidthInBytes * (c)->Height * (c)->Depth : 0)

#define DRIVER_TABLE_COPY(WORK) \
	WORK_TWINS(WORK, cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t bytes), \
		   (dst, src, bytes), WORK_SYNC(bytes)) \
	WORK_TWINS(WORK, cuMemcpyPeer, _ptds, \
		   (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, \
		    size_t bytes), \
		   (dst, dst_ctx, src, src_ctx, bytes), WORK_SYNC(bytes)) \
	WORK_TWINS(WORK, cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dst, const void *src, size_t bytes), \
		   (dst, src, bytes), WORK_SYNC(bytes)) \
	WORK_TWINS(WORK, cuMemcpyDtoH_v2, _ptds, (void *dst, CUdeviceptr src, size_t bytes), \
		   (dst, src, bytes), WORK_SYNC(bytes)) \
	WORK_TWINS(WORK, cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t bytes), \
		   (dst, src, bytes), WORK_SYNC(bytes)) \
	WORK_TWINS(WORK, cuMemcpyDtoA_v2, _ptds, \
		   (CUarray dst, size_t dst_offset, CUdeviceptr src, size_t bytes), \
		   (dst, dst_offset, src, bytes), WORK_SYNC(bytes)) \
	WORK_TWINS(WORK, cuMemcpyAtoD_v2, _ptds, \
		   (CUdeviceptr dst, CUarray src, size_t src_offset, size_t bytes), \
		   (dst, src, src_offset, bytes), WORK_SYNC(bytes)) \
	WORK_TWINS(WORK, cuMemcpyHtoA_v2, _ptds, \
		   (CUarray dst, size_t dst_offset, const void *src, size_t bytes), \
		   (dst, dst_offset, src, bytes), WORK_SYNC(bytes)) \
	WORK_TWINS(WORK, cuMemcpyAtoH_v2, _ptds, \
		   (void *dst, CUarray src, size_t src_offset, size_t bytes), \
		   (dst, src, src_offset, bytes), WORK_SYNC(bytes)) \
	WORK_TWINS(WORK, cuMemcpyAtoA_v2, _ptds, \
		   (CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes), \
		   (dst, dst_offset, src, src_offset, bytes), WORK_SYNC(bytes)) \
	WORK_TWINS(WORK, cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *copy), (copy), \
		   WORK_SYNC(BYTES_2D(copy))) \
	WORK_TWINS(WORK, cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *copy), (copy), \
		   WORK_SYNC(BYTES_2D(copy))) \
	WORK_TWINS(WORK, cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *copy), (copy), \
		   WORK_SYNC(BYTES_3D(copy))) \
	WORK_TWINS(WORK, cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER *copy), (copy), \
		   WORK_SYNC(BYTES_3D(copy))) \
	WORK_TWINS(WORK, cuMemcpyAsync, _ptsz, \
		   (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream), \
		   (dst, src, bytes, stream), WORK_COPY(stream, bytes)) \
	WORK_TWINS(WORK, cuMemcpyPeerAsync, _ptsz, \
		   (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, \
		    size_t bytes, CUstream stream), \
		   (dst, dst_ctx, src, src_ctx, bytes, stream), WORK_COPY(stream, bytes)) \
	WORK_TWINS(WORK, cuMemcpyHtoDAsync_v2, _ptsz, \
		   (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream), \
		   (dst, src, bytes, stream), WORK_COPY(stream, bytes)) \
	WORK_TWINS(WORK, cuMemcpyDtoHAsync_v2, _ptsz, \
		   (void *dst, CUdeviceptr src, size_t bytes, CUstream stream), \
		   (dst, src, bytes, stream), WORK_COPY(stream, bytes)) \
	WORK_TWINS(WORK, cuMemcpyDtoDAsync_v2, _ptsz, \
		   (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream), \
		   (dst, src, bytes, stream), WORK_COPY(stream, bytes)) \
	WORK_TWINS(WORK, cuMemcpyHtoAAsync_v2, _ptsz, \
		   (CUarray dst, size_t dst_offset, const void *src, size_t bytes, CUstream stream), \
		   (dst, dst_offset, src, bytes, stream), WORK_COPY(stream, bytes)) \
	WORK_TWINS(WORK, cuMemcpyAtoHAsync_v2, _ptsz, \
		   (void *dst, CUarray src, size_t src_offset, size_t bytes, CUstream stream), \
		   (dst, src, src_offset, bytes, stream), WORK_COPY(stream, bytes)) \
	WORK_TWINS(WORK, cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *copy, CUstream stream), \
		   (copy, stream), WORK_COPY(stream, BYTES_2D(copy))) \
	WORK_TWINS(WORK, cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *copy, CUstream stream), \
		   (copy, stream), WORK_COPY(stream, BYTES_3D(copy))) \
	WORK_TWINS(WORK, cuMemcpy3DPeerAsync, _ptsz, \
		   (const CUDA_MEMCPY3D_PEER *copy, CUstream stream), (copy, stream), \
		   WORK_COPY(stream, BYTES_3D(copy)))

/* A memset returns before it is done, except on host memory: asynchronous on the default stream. */
#define DRIVER_TABLE_SET(WORK) \
	WORK_TWINS(WORK, cuMemsetD8_v2, _ptds, (CUdeviceptr dst, unsigned char value, size_t n), \
		   (dst, value, n), WORK_COPY(NULL, n)) \
	WORK_TWINS(WORK, cuMemsetD16_v2, _ptds, (CUdeviceptr dst, unsigned short value, size_t n), \
		   (dst, value, n), WORK_COPY(NULL, n * 2)) \
	WORK_TWINS(WORK, cuMemsetD32_v2, _ptds, (CUdeviceptr dst, unsigned int value, size_t n), \
		   (dst, value, n), WORK_COPY(NULL, n * 4)) \
	WORK_TWINS(WORK, cuMemsetD2D8_v2, _ptds, \
		   (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, \
		    size_t height), \
		   (dst, pitch, value, width, height), WORK_COPY(NULL, width *height)) \
	WORK_TWINS(WORK, cuMemsetD2D16_v2, _ptds, \
		   (CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, \
		    size_t height), \
		   (dst, pitch, value, width, height), WORK_COPY(NULL, width *height * 2)) \
	WORK_TWINS(WORK, cuMemsetD2D32_v2, _ptds, \
		   (CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, \
		    size_t height), \
		   (dst, pitch, value, width, height), WORK_COPY(NULL, width *height * 4)) \
	WORK_TWINS(WORK, cuMemsetD8Async, _ptsz, \
		   (CUdeviceptr dst, unsigned char value, size_t n, CUstream stream), \
		   (dst, value, n, stream), WORK_COPY(stream, n)) \
	WORK_TWINS(WORK, cuMemsetD16Async, _ptsz, \
		   (CUdeviceptr dst, unsigned short value, size_t n, CUstream stream), \
		   (dst, value, n, stream), WORK_COPY(stream, n * 2)) \
	WORK_TWINS(WORK, cuMemsetD32Async, _ptsz, \
		   (CUdeviceptr dst, unsigned int value, size_t n, CUstream stream), \
		   (dst, value, n, stream), WORK_COPY(stream, n * 4)) \
	WORK_TWINS(WORK, cuMemsetD2D8Async, _ptsz, \
		   (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, \
		    size_t height, CUstream stream), \
		   (dst, pitch, value, width, height, stream), WORK_COPY(stream, width *height)) \
	WORK_TWINS(WORK, cuMemsetD2D16Async, _ptsz, \
		   (CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, \
		    size_t height, CUstream stream), \
		   (dst, pitch, value, width, height, stream), \
		   WORK_COPY(stream, width *height * 2)) \
	WORK_TWINS(WORK, cuMemsetD2D32Async, _ptsz, \
		   (CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, \
		    size_t height, CUstream stream), \
		   (dst, pitch, value, width, height, stream), \
		   WORK_COPY(stream, width *height * 4))

#define DRIVER_TABLE_HOOKS(HOOK) \
	DRIVER_TABLE_ENTRY(HOOK) \
	DRIVER_TABLE_CONTEXT(HOOK) \
	DRIVER_TABLE_INFO(HOOK) \
	DRIVER_TABLE_MEMORY(HOOK) \
	DRIVER_TABLE_STREAM(HOOK)

#define DRIVER_TABLE_WORK(WORK) \
	DRIVER_TABLE_LAUNCH(WORK) \
	DRIVER_TABLE_COPY(WORK) \
	DRIVER_TABLE_SET(WORK)

#define DRIVER_TABLE(HOOK, WORK) \
	DRIVER_TABLE_HOOKS(HOOK) \
	DRIVER_TABLE_WORK(WORK)

/*
 * What the library itself calls and does not hook: resolved, never exported.
 *   CALL(symbol, params)
 */
#define DRIVER_CALLS(CALL) \
	CALL(cuDriverGetVersion, (int *version)) \
	CALL(cuDeviceGet, (CUdevice *dev, int ordinal)) \
	CALL(cuDeviceGetCount, (int *count)) \
	CALL(cuDeviceGetUuid, (CUuuid *uuid, CUdevice dev)) \
	CALL(cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice dev)) \
	CALL(cuDevicePrimaryCtxGetState, (CUdevice dev, unsigned int *flags, int *active)) \
	CALL(cuCtxGetCurrent, (CUcontext *ctx)) \
	CALL(cuCtxSetCurrent, (CUcontext ctx)) \
	CALL(cuCtxGetDevice, (CUdevice *dev)) \
	CALL(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *mode)) \
	CALL(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status)) \
	CALL(cuStreamIsCapturing_ptsz, (CUstream stream, CUstreamCaptureStatus *status)) \
	CALL(cuStreamGetCtx, (CUstream stream, CUcontext *ctx)) \
	CALL(cuStreamSynchronize, (CUstream stream)) \
	CALL(cuStreamSynchronize_ptsz, (CUstream stream)) \
	CALL(cuEventCreate, (CUevent *event, unsigned int flags)) \
	CALL(cuEventRecord, (CUevent event, CUstream stream)) \
	CALL(cuEventRecord_ptsz, (CUevent event, CUstream stream)) \
	CALL(cuEventQuery, (CUevent event)) \
	CALL(cuEventElapsedTime, (float *ms, CUevent start, CUevent end)) \
	CALL(cuEventDestroy_v2, (CUevent event)) \
	CALL(cuDeviceGetDefaultMemPool, (CUmemoryPool *pool, CUdevice dev)) \
	CALL(cuDeviceGetMemPool, (CUmemoryPool *pool, CUdevice dev)) \
	CALL(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void *value)) \
	CALL(cuArrayGetMemoryRequirements, \
	     (CUDA_ARRAY_MEMORY_REQUIREMENTS *req, CUarray array, CUdevice dev)) \
	CALL(cuMipmappedArrayGetMemoryRequirements, \
	     (CUDA_ARRAY_MEMORY_REQUIREMENTS *req, CUmipmappedArray mipmap, CUdevice dev))

#endif
