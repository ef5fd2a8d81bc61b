/*
 * Every function of the driver API that allot hooks, one row each. From each row, src/library makes an enum value, the typed
 * slot for the real function, its entry in the name table, the exported wrapper and its entry in the list of exports. The
 * simulated GPU must define every row's symbol (src/sim); if one is missing, linking fails. CI compares the prototypes with
 * NVIDIA's headers.
 *
 * There are two kinds of rows. The user of the table defines a macro for each:
 *
 *   HOOK(symbol, hook, params, args)
 *       The wrapper calls `hook_<hook>(real function, args...)`, written by hand in a file hook_*.c.
 *       Several symbols of the same shape share one hook.
 *   WORK(symbol, streams, params, args, work...)
 *       GPU work. The wrapper is generated: enter the gate, call the real function, leave the gate.
 *       `streams` says what a NULL stream means: LEGACY or PER_THREAD (the _ptsz and _ptds twins).
 *       `work` describes the work by one of the WORK_ macros of src/library/launch/inflight/work.h:
 *       WORK_KERNEL(stream, function, blocks, threads), WORK_GRAPH(stream, exec),
 *       WORK_COPY(stream, bytes) for asynchronous copies, WORK_SYNC(bytes) for calls that return when done.
 *       Each of these macros expands to an initializer with commas, so the user's macro takes `work` as `...`.
 *
 * `_v2` is part of a symbol's name: older versions of a name are separate functions.
 */
#pragma once

#include "abi/cuda_abi.h"

/* Each macro makes two rows: one for the function `symbol`, and one for its per-thread-stream twin. */
#define HOOK_TWINS(HOOK, symbol, suffix, hook, params, args) \
	HOOK(symbol, hook, params, args) \
	HOOK(symbol##suffix, hook, params, args)
#define WORK_TWINS(WORK, symbol, suffix, params, args, ...) \
	WORK(symbol, LEGACY, params, args, __VA_ARGS__) \
	WORK(symbol##suffix, PER_THREAD, params, args, __VA_ARGS__)

/* cuInit, and the functions that look up driver functions. */
#define DRIVER_TABLE_ENTRY(HOOK) \
	HOOK(cuInit, init, (unsigned int flags), (flags)) \
	HOOK(cuGetProcAddress, get_proc_address, \
	     (const char *symbol, void **pfn, int version, cuuint64_t flags), \
	     (symbol, pfn, version, flags)) \
	HOOK(cuGetProcAddress_v2, get_proc_address_v2, \
	     (const char *symbol, void **pfn, int version, cuuint64_t flags, \
	      CUdriverProcAddressQueryResult *status), \
	     (symbol, pfn, version, flags, status))

/* Contexts. Each takes device memory for which the program makes no allocation call. */
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

/*
 * Access to the memory of another context. For memory that can be moved off the GPU, the library must set this access itself,
 * again after each move (swap_peers.h).
 */
#define DRIVER_TABLE_PEER(HOOK) \
	HOOK(cuCtxEnablePeerAccess, ctx_enable_peer, (CUcontext peer, unsigned int flags), \
	     (peer, flags)) \
	HOOK(cuCtxDisablePeerAccess, ctx_disable_peer, (CUcontext peer), (peer))

/* Queries of the GPU's memory, which must show the tenant's quota. */
#define DRIVER_TABLE_INFO(HOOK) \
	HOOK(cuMemGetInfo_v2, mem_get_info, (size_t *free_bytes, size_t *total_bytes), \
	     (free_bytes, total_bytes)) \
	HOOK(cuDeviceTotalMem_v2, device_total_mem, (size_t *bytes, CUdevice dev), (bytes, dev))

/* Calls that allocate or free device memory. */
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
	HOOK(cuMemUnmap, mem_unmap, (CUdeviceptr ptr, size_t bytes), (ptr, bytes)) \
	HOOK(cuMemExportToShareableHandle, mem_export, \
	     (void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, \
	      unsigned long long flags), \
	     (out, handle, type, flags)) \
	HOOK(cuMemImportFromShareableHandle, mem_import, \
	     (CUmemGenericAllocationHandle *handle, void *os_handle, \
	      CUmemAllocationHandleType type), \
	     (handle, os_handle, type)) \
	HOOK(cuMemPoolCreate, mem_pool_create, \
	     (CUmemoryPool *pool, const CUmemPoolProps *props), (pool, props)) \
	HOOK(cuMemPoolExportToShareableHandle, mem_pool_export, \
	     (void *out, CUmemoryPool pool, CUmemAllocationHandleType type, \
	      unsigned long long flags), \
	     (out, pool, type, flags)) \
	HOOK(cuMemPoolImportFromShareableHandle, mem_pool_import, \
	     (CUmemoryPool *pool, void *os_handle, CUmemAllocationHandleType type, \
	      unsigned long long flags), \
	     (pool, os_handle, type, flags)) \
	HOOK(cuMemPoolImportPointer, mem_pool_import_pointer, \
	     (CUdeviceptr *ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data), \
	     (ptr, pool, data)) \
	HOOK(cuIpcGetMemHandle, ipc_get, (CUipcMemHandle *handle, CUdeviceptr ptr), \
	     (handle, ptr)) \
	HOOK(cuIpcOpenMemHandle, ipc_open, \
	     (CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags), (ptr, handle, flags)) \
	HOOK(cuIpcOpenMemHandle_v2, ipc_open, \
	     (CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags), (ptr, handle, flags)) \
	HOOK(cuIpcCloseMemHandle, ipc_close, (CUdeviceptr ptr), (ptr))

/* Queries and settings for device addresses. The library answers them for memory that can be moved off the GPU (swap.h). */
#define DRIVER_TABLE_POINTER(HOOK) \
	HOOK(cuMemGetAddressRange_v2, get_address_range, \
	     (CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr), (base, bytes, ptr)) \
	HOOK(cuMemGetAddressRange, get_address_range_v1, \
	     (CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 ptr), (base, bytes, ptr)) \
	HOOK(cuPointerGetAttribute, pointer_get_attribute, \
	     (void *value, CUpointer_attribute attr, CUdeviceptr ptr), (value, attr, ptr)) \
	HOOK(cuPointerGetAttributes, pointer_get_attributes, \
	     (unsigned int n, CUpointer_attribute *attrs, void **values, CUdeviceptr ptr), \
	     (n, attrs, values, ptr)) \
	HOOK(cuPointerSetAttribute, pointer_set_attribute, \
	     (const void *value, CUpointer_attribute attr, CUdeviceptr ptr), (value, attr, ptr)) \
	HOOK(cuMemGetHandleForAddressRange, get_handle_for_range, \
	     (void *handle, CUdeviceptr ptr, size_t bytes, CUmemRangeHandleType type, \
	      unsigned long long flags), \
	     (handle, ptr, bytes, type, flags))

#define HOOK_VALUES(HOOK, symbol, hook, type) \
	HOOK_TWINS(HOOK, symbol, _ptsz, hook, \
		   (CUstream stream, CUdeviceptr ptr, type value, unsigned int flags), \
		   (stream, ptr, value, flags)) \
	HOOK_TWINS(HOOK, symbol##_v2, _ptsz, hook, \
		   (CUstream stream, CUdeviceptr ptr, type value, unsigned int flags), \
		   (stream, ptr, value, flags))
#define HOOK_BATCH_OF_VALUES(HOOK, symbol) \
	HOOK_TWINS(HOOK, symbol, _ptsz, stream_batch_values, \
		   (CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops, \
		    unsigned int flags), \
		   (stream, n, ops, flags))

/* Calls by which a stream reads or writes a word, which may be in memory that can be moved off the GPU (swap.h). */
#define DRIVER_TABLE_VALUE(HOOK) \
	HOOK_VALUES(HOOK, cuStreamWaitValue32, stream_value32, cuuint32_t) \
	HOOK_VALUES(HOOK, cuStreamWaitValue64, stream_value64, cuuint64_t) \
	HOOK_VALUES(HOOK, cuStreamWriteValue32, stream_value32, cuuint32_t) \
	HOOK_VALUES(HOOK, cuStreamWriteValue64, stream_value64, cuuint64_t) \
	HOOK_BATCH_OF_VALUES(HOOK, cuStreamBatchMemOp) \
	HOOK_BATCH_OF_VALUES(HOOK, cuStreamBatchMemOp_v2)

/*
 * Graph nodes that refer to memory. The driver reads the memory's address when a node is made, so the memory must be on the
 * GPU then.
 */
#define DRIVER_TABLE_NODE(HOOK) \
	HOOK(cuGraphAddMemcpyNode, add_copy_node, \
	     (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, \
	      const CUDA_MEMCPY3D *copy, CUcontext ctx), \
	     (node, graph, dependencies, count, copy, ctx)) \
	HOOK(cuGraphAddMemsetNode, add_set_node, \
	     (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, \
	      const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx), \
	     (node, graph, dependencies, count, params, ctx)) \
	HOOK(cuGraphMemcpyNodeSetParams, set_copy_node, \
	     (CUgraphNode node, const CUDA_MEMCPY3D *copy), (node, copy)) \
	HOOK(cuGraphMemsetNodeSetParams, set_set_node, \
	     (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params), (node, params)) \
	HOOK(cuGraphExecMemcpyNodeSetParams, set_exec_copy_node, \
	     (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext ctx), \
	     (exec, node, copy, ctx)) \
	HOOK(cuGraphExecMemsetNodeSetParams, set_exec_set_node, \
	     (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params, \
	      CUcontext ctx), \
	     (exec, node, params, ctx))

/* Multicast objects. Memory that is bound to an object stays allocated after its handle was released. */
#define DRIVER_TABLE_MULTICAST(HOOK) \
	HOOK(cuMulticastCreate, multicast_create, \
	     (CUmemGenericAllocationHandle *object, const CUmulticastObjectProp *prop), \
	     (object, prop)) \
	HOOK(cuMulticastBindMem, multicast_bind_mem, \
	     (CUmemGenericAllocationHandle object, size_t offset, \
	      CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes, \
	      unsigned long long flags), \
	     (object, offset, memory, memory_offset, bytes, flags)) \
	HOOK(cuMulticastBindMem_v2, multicast_bind_mem_v2, \
	     (CUmemGenericAllocationHandle object, CUdevice dev, size_t offset, \
	      CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes, \
	      unsigned long long flags), \
	     (object, dev, offset, memory, memory_offset, bytes, flags)) \
	HOOK(cuMulticastBindAddr, multicast_bind_addr, \
	     (CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr ptr, size_t bytes, \
	      unsigned long long flags), \
	     (object, offset, ptr, bytes, flags)) \
	HOOK(cuMulticastBindAddr_v2, multicast_bind_addr_v2, \
	     (CUmemGenericAllocationHandle object, CUdevice dev, size_t offset, CUdeviceptr ptr, \
	      size_t bytes, unsigned long long flags), \
	     (object, dev, offset, ptr, bytes, flags)) \
	HOOK(cuMulticastUnbind, multicast_unbind, \
	     (CUmemGenericAllocationHandle object, CUdevice dev, size_t offset, size_t bytes), \
	     (object, dev, offset, bytes))

/* Page-locked host memory, for which a tenant may have a quota. */
#define DRIVER_TABLE_HOST(HOOK) \
	HOOK(cuMemAllocHost, alloc_host_v1, (void **ptr, unsigned int bytes), (ptr, bytes)) \
	HOOK(cuMemAllocHost_v2, alloc_host, (void **ptr, size_t bytes), (ptr, bytes)) \
	HOOK(cuMemHostAlloc, host_alloc, (void **ptr, size_t bytes, unsigned int flags), \
	     (ptr, bytes, flags)) \
	HOOK(cuMemFreeHost, free_host, (void *ptr), (ptr)) \
	HOOK(cuMemHostRegister, host_register, (void *ptr, size_t bytes, unsigned int flags), \
	     (ptr, bytes, flags)) \
	HOOK(cuMemHostRegister_v2, host_register, (void *ptr, size_t bytes, unsigned int flags), \
	     (ptr, bytes, flags)) \
	HOOK(cuMemHostUnregister, free_host, (void *ptr), (ptr))

/* Streams and captures. The gate must know of each capture, and of the end of each stream and graph. */
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
	HOOK(cuGraphInstantiate, graph_instantiate, \
	     (CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log, \
	      size_t log_size), \
	     (exec, graph, error_node, log, log_size)) \
	HOOK(cuGraphInstantiate_v2, graph_instantiate, \
	     (CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log, \
	      size_t log_size), \
	     (exec, graph, error_node, log, log_size)) \
	HOOK(cuGraphInstantiateWithFlags, graph_instantiate_flags, \
	     (CUgraphExec *exec, CUgraph graph, unsigned long long flags), (exec, graph, flags)) \
	HOOK_TWINS(HOOK, cuGraphInstantiateWithParams, _ptsz, graph_instantiate_params, \
		   (CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params), \
		   (exec, graph, params)) \
	HOOK(cuGraphLaunch, graph_launch, (CUgraphExec exec, CUstream stream), (exec, stream)) \
	HOOK(cuGraphLaunch_ptsz, graph_launch_ptsz, (CUgraphExec exec, CUstream stream), \
	     (exec, stream)) \
	HOOK(cuDeviceGraphMemTrim, graph_mem_trim, (CUdevice dev), (dev)) \
	HOOK(cuGraphExecDestroy, graph_exec_destroy, (CUgraphExec exec), (exec))

/*
 * Old versions of hooked functions, and rare functions for the same purposes. Prototypes with _v1 types have sizes and device
 * addresses of 32 bits. cuGraphUpload maps and copies a graph's memory before the launch, so it has the hook of cuGraphLaunch.
 */
#define DRIVER_TABLE_OLD(HOOK) \
	HOOK(cuMemAlloc, mem_alloc_v1, (CUdeviceptr_v1 *ptr, unsigned int bytes), (ptr, bytes)) \
	HOOK(cuMemAllocPitch, mem_alloc_pitch_v1, \
	     (CUdeviceptr_v1 *ptr, unsigned int *pitch, unsigned int width_bytes, \
	      unsigned int height, unsigned int element_bytes), \
	     (ptr, pitch, width_bytes, height, element_bytes)) \
	HOOK(cuMemFree, mem_free_v1, (CUdeviceptr_v1 ptr), (ptr)) \
	HOOK(cuMemGetInfo, mem_get_info_v1, \
	     (unsigned int *free_bytes, unsigned int *total_bytes), (free_bytes, total_bytes)) \
	HOOK(cuDeviceTotalMem, device_total_mem_v1, (unsigned int *bytes, CUdevice dev), \
	     (bytes, dev)) \
	HOOK(cuArrayCreate, array_create_v1, \
	     (CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *desc), (array, desc)) \
	HOOK(cuArray3DCreate, array3d_create_v1, \
	     (CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc), (array, desc)) \
	HOOK(cuCtxCreate, ctx_create, (CUcontext *ctx, unsigned int flags, CUdevice dev), \
	     (ctx, flags, dev)) \
	HOOK(cuGLCtxCreate, ctx_create, (CUcontext *ctx, unsigned int flags, CUdevice dev), \
	     (ctx, flags, dev)) \
	HOOK(cuGLCtxCreate_v2, ctx_create, (CUcontext *ctx, unsigned int flags, CUdevice dev), \
	     (ctx, flags, dev)) \
	HOOK(cuCtxDestroy, ctx_destroy, (CUcontext ctx), (ctx)) \
	HOOK(cuCtxDetach, ctx_destroy, (CUcontext ctx), (ctx)) \
	HOOK(cuStreamDestroy, stream_destroy, (CUstream stream), (stream)) \
	HOOK_TWINS(HOOK, cuStreamBeginCapture, _ptsz, begin_capture_v1, (CUstream stream), \
		   (stream)) \
	HOOK_TWINS(HOOK, cuStreamBeginRecaptureToGraph, _ptsz, begin_recapture, \
		   (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, \
		    CUgraphRecaptureCallback callback, void *data), \
		   (stream, mode, graph, callback, data)) \
	HOOK(cuGraphUpload, graph_launch, (CUgraphExec exec, CUstream stream), (exec, stream)) \
	HOOK(cuGraphUpload_ptsz, graph_launch_ptsz, (CUgraphExec exec, CUstream stream), \
	     (exec, stream)) \
	HOOK(cuLaunchCooperativeKernelMultiDevice, launch_multi_device, \
	     (CUDA_LAUNCH_PARAMS *launches, unsigned int count, unsigned int flags), \
	     (launches, count, flags))

/* Green contexts: parts of a device, which hold a reference to its primary context. */
#define DRIVER_TABLE_GREEN(HOOK) \
	HOOK(cuGreenCtxCreate, green_create, \
	     (CUgreenCtx *green, CUdevResourceDesc desc, CUdevice dev, unsigned int flags), \
	     (green, desc, dev, flags)) \
	HOOK(cuGreenCtxDestroy, green_destroy, (CUgreenCtx green), (green))

/* Code, variables and stacks. These calls do not state how much memory they take, so it is measured around the call. */
#define DRIVER_TABLE_CODE(HOOK) \
	HOOK(cuModuleLoad, module_load, (CUmodule *module, const char *path), (module, path)) \
	HOOK(cuModuleLoadData, module_load_data, (CUmodule *module, const void *image), \
	     (module, image)) \
	HOOK(cuModuleLoadDataEx, module_load_data_ex, \
	     (CUmodule *module, const void *image, unsigned int count, CUjit_option *options, \
	      void **values), \
	     (module, image, count, options, values)) \
	HOOK(cuModuleLoadFatBinary, module_load_data, (CUmodule *module, const void *image), \
	     (module, image)) \
	HOOK(cuModuleUnload, module_unload, (CUmodule module), (module)) \
	HOOK(cuModuleGetGlobal, module_get_global_v1, \
	     (CUdeviceptr_v1 *ptr, unsigned int *bytes, CUmodule module, const char *name), \
	     (ptr, bytes, module, name)) \
	HOOK(cuModuleGetGlobal_v2, module_get_global, \
	     (CUdeviceptr *ptr, size_t *bytes, CUmodule module, const char *name), \
	     (ptr, bytes, module, name)) \
	HOOK(cuLibraryLoadData, library_load_data, \
	     (CUlibrary *library, const void *image, CUjit_option *jit, void **jit_values, \
	      unsigned int jit_count, CUlibraryOption *options, void **values, \
	      unsigned int count), \
	     (library, image, jit, jit_values, jit_count, options, values, count)) \
	HOOK(cuLibraryLoadFromFile, library_load_file, \
	     (CUlibrary *library, const char *path, CUjit_option *jit, void **jit_values, \
	      unsigned int jit_count, CUlibraryOption *options, void **values, \
	      unsigned int count), \
	     (library, path, jit, jit_values, jit_count, options, values, count)) \
	HOOK(cuLibraryUnload, library_unload, (CUlibrary library), (library)) \
	HOOK(cuLibraryGetModule, library_get_module, (CUmodule *module, CUlibrary library), \
	     (module, library)) \
	HOOK(cuLibraryGetGlobal, library_get_global, \
	     (CUdeviceptr *ptr, size_t *bytes, CUlibrary library, const char *name), \
	     (ptr, bytes, library, name)) \
	HOOK(cuFuncLoad, func_load, (CUfunction function), (function)) \
	HOOK(cuCtxSetLimit, ctx_set_limit, (CUlimit limit, size_t value), (limit, value))

/*
 * Functions that return CUDA_ERROR_NOT_SUPPORTED in a tenant; driver_decisions.h has the reasons. Each row makes its own hook
 * (hook_refuse.c), so twins have hooks of their own.
 */
#define DRIVER_TABLE_REFUSED(HOOK) \
	HOOK(cuCtxAttach, refuse_ctx_attach, (CUcontext *ctx, unsigned int flags), (ctx, flags)) \
	HOOK(cuVDPAUCtxCreate, refuse_vdpau_ctx, \
	     (CUcontext *ctx, unsigned int flags, CUdevice dev, VdpDevice vdp, \
	      VdpGetProcAddress *get), \
	     (ctx, flags, dev, vdp, get)) \
	HOOK(cuVDPAUCtxCreate_v2, refuse_vdpau_ctx_v2, \
	     (CUcontext *ctx, unsigned int flags, CUdevice dev, VdpDevice vdp, \
	      VdpGetProcAddress *get), \
	     (ctx, flags, dev, vdp, get)) \
	HOOK(cuStreamBeginCaptureToCig, refuse_cig, \
	     (CUstream stream, CUstreamCigCaptureParams *params), (stream, params)) \
	HOOK(cuStreamBeginCaptureToCig_ptsz, refuse_cig_ptsz, \
	     (CUstream stream, CUstreamCigCaptureParams *params), (stream, params)) \
	HOOK(cuMemMapArrayAsync, refuse_map_array, \
	     (CUarrayMapInfo *maps, unsigned int count, CUstream stream), (maps, count, stream)) \
	HOOK(cuMemMapArrayAsync_ptsz, refuse_map_array_ptsz, \
	     (CUarrayMapInfo *maps, unsigned int count, CUstream stream), (maps, count, stream)) \
	HOOK(cuLogicalEndpointCreate, refuse_endpoint, \
	     (CUlogicalEndpointId id, const CUlogicalEndpointProp *prop), (id, prop)) \
	HOOK(cuLogicalEndpointImport, refuse_endpoint_import, \
	     (CUlogicalEndpointId id, const void *handle, CUlogicalEndpointIpcHandleType type), \
	     (id, handle, type))

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
		   work_configured(WORK_READS(config) ? config : NULL, f)) \
	WORK_TWINS(WORK, cuLaunchCooperativeKernel, _ptsz, \
		   (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, \
		    unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared_bytes, \
		    CUstream stream, void **params), \
		   (f, gx, gy, gz, bx, by, bz, shared_bytes, stream, params), \
		   WORK_KERNEL(stream, f, (uint64_t)gx *gy *gz, (uint64_t)bx *by *bz))

#define BYTES_2D(c) (WORK_READS(c) ? (uint64_t)(c)->WidthInBytes * (c)->Height : 0)
#define BYTES_3D(c) \
	(WORK_READS(c) ? (uint64_t)(c)->WidthInBytes * (c)->Height * (c)->Depth : 0)
/*
 * Number of bytes of a batch. `others` is false if another list of the call is NULL. The driver refuses such a call, so the
 * number is then 0.
 */
#define BYTES_BATCH(others, sizes, count) \
	((others) && WORK_READS(sizes) ? work_batch_bytes(sizes, count) : 0)

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

/* A memset may return before it is done, except on host memory, so it counts as asynchronous. */
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

/*
 * Batches, and other calls that copy or fill memory. Some batches state their bytes only in structures that differ between CUDA
 * versions. Their rows give the number of operations instead, because the library needs only some size by which it can
 * predict the work's duration.
 */
#define DRIVER_TABLE_BATCH(WORK) \
	WORK_TWINS(WORK, cuMemcpyBatchAsync, _ptsz, \
		   (CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, \
		    CUmemcpyAttributes *attributes, size_t *attribute_of, size_t attributes_n, \
		    size_t *fail, CUstream stream), \
		   (dsts, srcs, sizes, count, attributes, attribute_of, attributes_n, fail, stream), \
		   WORK_COPY(stream, BYTES_BATCH(dsts && srcs, sizes, count))) \
	WORK_TWINS(WORK, cuMemcpyBatchAsync_v2, _ptsz, \
		   (CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, \
		    CUmemcpyAttributes *attributes, size_t *attribute_of, size_t attributes_n, \
		    CUstream stream), \
		   (dsts, srcs, sizes, count, attributes, attribute_of, attributes_n, stream), \
		   WORK_COPY(stream, BYTES_BATCH(dsts && srcs, sizes, count))) \
	WORK_TWINS(WORK, cuMemcpy3DBatchAsync, _ptsz, \
		   (size_t count, CUDA_MEMCPY3D_BATCH_OP *copies, size_t *fail, \
		    unsigned long long flags, CUstream stream), \
		   (count, copies, fail, flags, stream), WORK_COPY(stream, count)) \
	WORK_TWINS(WORK, cuMemcpy3DBatchAsync_v2, _ptsz, \
		   (size_t count, CUDA_MEMCPY3D_BATCH_OP *copies, unsigned long long flags, \
		    CUstream stream), \
		   (count, copies, flags, stream), WORK_COPY(stream, count)) \
	WORK_TWINS(WORK, cuMemcpyWithAttributesAsync, _ptsz, \
		   (CUdeviceptr dst, CUdeviceptr src, size_t bytes, \
		    CUmemcpyAttributes *attributes, CUstream stream), \
		   (dst, src, bytes, attributes, stream), WORK_COPY(stream, bytes)) \
	WORK_TWINS(WORK, cuMemcpy3DWithAttributesAsync, _ptsz, \
		   (CUDA_MEMCPY3D_BATCH_OP *copy, unsigned long long flags, CUstream stream), \
		   (copy, flags, stream), WORK_COPY(stream, 1)) \
	WORK_TWINS(WORK, cuFabricCpyBatchAsync, _ptsz, \
		   (size_t count, CUDA_FABRIC_COPY_BATCH_OP *copies, unsigned long long flags, \
		    CUstream stream), \
		   (count, copies, flags, stream), WORK_COPY(stream, count)) \
	WORK_TWINS(WORK, cuMemBatchDecompressAsync, _ptsz, \
		   (CUmemDecompressParams *params, size_t count, unsigned int flags, \
		    size_t *fail, CUstream stream), \
		   (params, count, flags, fail, stream), WORK_COPY(stream, count)) \
	WORK_TWINS(WORK, cuMemPrefetchAsync, _ptsz, \
		   (CUdeviceptr ptr, size_t bytes, CUdevice dev, CUstream stream), \
		   (ptr, bytes, dev, stream), WORK_COPY(stream, bytes)) \
	WORK_TWINS(WORK, cuMemPrefetchAsync_v2, _ptsz, \
		   (CUdeviceptr ptr, size_t bytes, CUmemLocation location, unsigned int flags, \
		    CUstream stream), \
		   (ptr, bytes, location, flags, stream), WORK_COPY(stream, bytes)) \
	WORK_TWINS(WORK, cuMemPrefetchBatchAsync, _ptsz, \
		   (CUdeviceptr *ptrs, size_t *sizes, size_t count, CUmemLocation *locations, \
		    size_t *location_of, size_t locations_n, unsigned long long flags, \
		    CUstream stream), \
		   (ptrs, sizes, count, locations, location_of, locations_n, flags, stream), \
		   WORK_COPY(stream, BYTES_BATCH(ptrs, sizes, count))) \
	WORK_TWINS(WORK, cuMemDiscardBatchAsync, _ptsz, \
		   (CUdeviceptr *ptrs, size_t *sizes, size_t count, unsigned long long flags, \
		    CUstream stream), \
		   (ptrs, sizes, count, flags, stream), \
		   WORK_COPY(stream, BYTES_BATCH(ptrs, sizes, count))) \
	WORK_TWINS(WORK, cuMemDiscardAndPrefetchBatchAsync, _ptsz, \
		   (CUdeviceptr *ptrs, size_t *sizes, size_t count, CUmemLocation *locations, \
		    size_t *location_of, size_t locations_n, unsigned long long flags, \
		    CUstream stream), \
		   (ptrs, sizes, count, locations, location_of, locations_n, flags, stream), \
		   WORK_COPY(stream, BYTES_BATCH(ptrs, sizes, count)))

/*
 * Work in old versions of the API, which have no per-thread-stream twins. cuLaunch and the two cuLaunchGrid calls use
 * the block shape that an earlier call set, so their rows give 0 threads.
 */
#define DRIVER_TABLE_OLD_WORK(WORK) \
	WORK(cuLaunch, LEGACY, (CUfunction f), (f), WORK_KERNEL(NULL, f, 1, 0)) \
	WORK(cuLaunchGrid, LEGACY, (CUfunction f, int width, int height), (f, width, height), \
	     WORK_KERNEL(NULL, f, (uint64_t)width *(uint64_t)height, 0)) \
	WORK(cuLaunchGridAsync, LEGACY, (CUfunction f, int width, int height, CUstream stream), \
	     (f, width, height, stream), \
	     WORK_KERNEL(stream, f, (uint64_t)width *(uint64_t)height, 0)) \
	WORK(cuMemcpyHtoD, LEGACY, (CUdeviceptr_v1 dst, const void *src, unsigned int bytes), \
	     (dst, src, bytes), WORK_SYNC(bytes)) \
	WORK(cuMemcpyDtoH, LEGACY, (void *dst, CUdeviceptr_v1 src, unsigned int bytes), \
	     (dst, src, bytes), WORK_SYNC(bytes)) \
	WORK(cuMemcpyDtoD, LEGACY, (CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int bytes), \
	     (dst, src, bytes), WORK_SYNC(bytes)) \
	WORK(cuMemcpyDtoA, LEGACY, \
	     (CUarray dst, unsigned int offset, CUdeviceptr_v1 src, unsigned int bytes), \
	     (dst, offset, src, bytes), WORK_SYNC(bytes)) \
	WORK(cuMemcpyAtoD, LEGACY, \
	     (CUdeviceptr_v1 dst, CUarray src, unsigned int offset, unsigned int bytes), \
	     (dst, src, offset, bytes), WORK_SYNC(bytes)) \
	WORK(cuMemcpyHtoA, LEGACY, \
	     (CUarray dst, unsigned int offset, const void *src, unsigned int bytes), \
	     (dst, offset, src, bytes), WORK_SYNC(bytes)) \
	WORK(cuMemcpyAtoH, LEGACY, \
	     (void *dst, CUarray src, unsigned int offset, unsigned int bytes), \
	     (dst, src, offset, bytes), WORK_SYNC(bytes)) \
	WORK(cuMemcpyAtoA, LEGACY, \
	     (CUarray dst, unsigned int dst_offset, CUarray src, unsigned int src_offset, \
	      unsigned int bytes), \
	     (dst, dst_offset, src, src_offset, bytes), WORK_SYNC(bytes)) \
	WORK(cuMemcpyHtoDAsync, LEGACY, \
	     (CUdeviceptr_v1 dst, const void *src, unsigned int bytes, CUstream stream), \
	     (dst, src, bytes, stream), WORK_COPY(stream, bytes)) \
	WORK(cuMemcpyDtoHAsync, LEGACY, \
	     (void *dst, CUdeviceptr_v1 src, unsigned int bytes, CUstream stream), \
	     (dst, src, bytes, stream), WORK_COPY(stream, bytes)) \
	WORK(cuMemcpyDtoDAsync, LEGACY, \
	     (CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned int bytes, CUstream stream), \
	     (dst, src, bytes, stream), WORK_COPY(stream, bytes)) \
	WORK(cuMemcpyHtoAAsync, LEGACY, \
	     (CUarray dst, unsigned int offset, const void *src, unsigned int bytes, \
	      CUstream stream), \
	     (dst, offset, src, bytes, stream), WORK_COPY(stream, bytes)) \
	WORK(cuMemcpyAtoHAsync, LEGACY, \
	     (void *dst, CUarray src, unsigned int offset, unsigned int bytes, \
	      CUstream stream), \
	     (dst, src, offset, bytes, stream), WORK_COPY(stream, bytes)) \
	WORK(cuMemcpy2D, LEGACY, (const CUDA_MEMCPY2D_v1 *copy), (copy), \
	     WORK_SYNC(BYTES_2D(copy))) \
	WORK(cuMemcpy2DUnaligned, LEGACY, (const CUDA_MEMCPY2D_v1 *copy), (copy), \
	     WORK_SYNC(BYTES_2D(copy))) \
	WORK(cuMemcpy2DAsync, LEGACY, (const CUDA_MEMCPY2D_v1 *copy, CUstream stream), \
	     (copy, stream), WORK_COPY(stream, BYTES_2D(copy))) \
	WORK(cuMemcpy3D, LEGACY, (const CUDA_MEMCPY3D_v1 *copy), (copy), \
	     WORK_SYNC(BYTES_3D(copy))) \
	WORK(cuMemcpy3DAsync, LEGACY, (const CUDA_MEMCPY3D_v1 *copy, CUstream stream), \
	     (copy, stream), WORK_COPY(stream, BYTES_3D(copy))) \
	WORK(cuMemsetD8, LEGACY, (CUdeviceptr_v1 dst, unsigned char value, unsigned int n), \
	     (dst, value, n), WORK_COPY(NULL, (uint64_t)n)) \
	WORK(cuMemsetD2D8, LEGACY, \
	     (CUdeviceptr_v1 dst, unsigned int pitch, unsigned char value, unsigned int width, \
	      unsigned int height), \
	     (dst, pitch, value, width, height), WORK_COPY(NULL, (uint64_t)width *height)) \
	WORK(cuMemsetD16, LEGACY, (CUdeviceptr_v1 dst, unsigned short value, unsigned int n), \
	     (dst, value, n), WORK_COPY(NULL, (uint64_t)n * 2)) \
	WORK(cuMemsetD2D16, LEGACY, \
	     (CUdeviceptr_v1 dst, unsigned int pitch, unsigned short value, unsigned int width, \
	      unsigned int height), \
	     (dst, pitch, value, width, height), WORK_COPY(NULL, (uint64_t)width *height * 2)) \
	WORK(cuMemsetD32, LEGACY, (CUdeviceptr_v1 dst, unsigned int value, unsigned int n), \
	     (dst, value, n), WORK_COPY(NULL, (uint64_t)n * 4)) \
	WORK(cuMemsetD2D32, LEGACY, \
	     (CUdeviceptr_v1 dst, unsigned int pitch, unsigned int value, unsigned int width, \
	      unsigned int height), \
	     (dst, pitch, value, width, height), WORK_COPY(NULL, (uint64_t)width *height * 4))

/*
 * Waits for work, at which a step of the program may end. They do not pass the gate. In place of `work`, each row has a
 * function call, which the wrapper makes when the wait has succeeded.
 */
#define DRIVER_TABLE_WAIT(WORK) \
	WORK(cuCtxSynchronize, LEGACY, (void), (), sync_point_after_all()) \
	WORK(cuCtxSynchronize_v2, LEGACY, (CUcontext ctx), (ctx), sync_point_after_all()) \
	WORK(cuStreamSynchronize, LEGACY, (CUstream stream), (stream), \
	     sync_point_after_stream(stream, LEGACY)) \
	WORK(cuStreamSynchronize_ptsz, PER_THREAD, (CUstream stream), (stream), \
	     sync_point_after_stream(stream, PER_THREAD))

/*
 * A wait for one point of a stream. A step of the program may end there (step.h), but the wait is no sync point (sync_point.h),
 * so the daemon does not end the tenant's turn on the GPU there.
 */
#define DRIVER_TABLE_EVENT(HOOK) \
	HOOK(cuEventSynchronize, event_synchronize, (CUevent event), (event))

#define DRIVER_TABLE_HOOKS(HOOK) \
	DRIVER_TABLE_ENTRY(HOOK) \
	DRIVER_TABLE_INFO(HOOK) \
	DRIVER_TABLE_POINTER(HOOK) \
	DRIVER_TABLE_CONTEXT(HOOK) \
	DRIVER_TABLE_PEER(HOOK) \
	DRIVER_TABLE_MEMORY(HOOK) \
	DRIVER_TABLE_MULTICAST(HOOK) \
	DRIVER_TABLE_VALUE(HOOK) \
	DRIVER_TABLE_NODE(HOOK) \
	DRIVER_TABLE_HOST(HOOK) \
	DRIVER_TABLE_STREAM(HOOK) \
	DRIVER_TABLE_EVENT(HOOK) \
	DRIVER_TABLE_OLD(HOOK) \
	DRIVER_TABLE_GREEN(HOOK) \
	DRIVER_TABLE_CODE(HOOK) \
	DRIVER_TABLE_REFUSED(HOOK)

#define DRIVER_TABLE_WORK(WORK) \
	DRIVER_TABLE_LAUNCH(WORK) \
	DRIVER_TABLE_COPY(WORK) \
	DRIVER_TABLE_SET(WORK) \
	DRIVER_TABLE_BATCH(WORK) \
	DRIVER_TABLE_OLD_WORK(WORK) \
	DRIVER_TABLE_WAIT(WORK)

#define DRIVER_TABLE(HOOK, WORK) \
	DRIVER_TABLE_HOOKS(HOOK) \
	DRIVER_TABLE_WORK(WORK)

/*
 * Functions that the library calls but does not hook. They are looked up, never exported.
 *
 *     CALL(symbol, params)
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
	CALL(cuCtxGetLimit, (size_t *value, CUlimit limit)) \
	CALL(cuDeviceGetAttribute, (int *value, CUdevice_attribute attr, CUdevice dev)) \
	CALL(cuCtxFromGreenCtx, (CUcontext *ctx, CUgreenCtx green)) \
	CALL(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *mode)) \
	CALL(cuStreamCreate, (CUstream *stream, unsigned int flags)) \
	CALL(cuMemAddressReserve, \
	     (CUdeviceptr *ptr, size_t bytes, size_t alignment, CUdeviceptr hint, \
	      unsigned long long flags)) \
	CALL(cuMemAddressFree, (CUdeviceptr ptr, size_t bytes)) \
	CALL(cuMemSetAccess, \
	     (CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)) \
	CALL(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status)) \
	CALL(cuStreamIsCapturing_ptsz, (CUstream stream, CUstreamCaptureStatus *status)) \
	CALL(cuStreamGetCtx, (CUstream stream, CUcontext *ctx)) \
	CALL(cuEventCreate, (CUevent *event, unsigned int flags)) \
	CALL(cuEventRecord, (CUevent event, CUstream stream)) \
	CALL(cuEventRecord_ptsz, (CUevent event, CUstream stream)) \
	CALL(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags)) \
	CALL(cuFuncGetAttribute, (int *value, CUfunction_attribute attr, CUfunction f)) \
	CALL(cuFuncGetName, (const char **name, CUfunction f)) \
	CALL(cuKernelGetName, (const char **name, CUkernel kernel)) \
	CALL(cuFuncGetParamInfo, (CUfunction f, size_t index, size_t *offset, size_t *bytes)) \
	CALL(cuKernelGetAttribute, \
	     (int *value, CUfunction_attribute attr, CUkernel kernel, CUdevice dev)) \
	CALL(cuKernelGetParamInfo, (CUkernel f, size_t index, size_t *offset, size_t *bytes)) \
	CALL(cuEventQuery, (CUevent event)) \
	CALL(cuEventElapsedTime, (float *ms, CUevent start, CUevent end)) \
	CALL(cuEventDestroy_v2, (CUevent event)) \
	CALL(cuDeviceGetDefaultMemPool, (CUmemoryPool *pool, CUdevice dev)) \
	CALL(cuDeviceGetMemPool, (CUmemoryPool *pool, CUdevice dev)) \
	CALL(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count)) \
	CALL(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type)) \
	CALL(cuGraphMemAllocNodeGetParams, \
	     (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)) \
	CALL(cuDeviceGetGraphMemAttribute, \
	     (CUdevice dev, CUgraphMem_attribute attr, void *value)) \
	CALL(cuMemGetAllocationPropertiesFromHandle, \
	     (CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)) \
	CALL(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool pool)) \
	CALL(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void *value)) \
	CALL(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void *value)) \
	CALL(cuArrayGetMemoryRequirements, \
	     (CUDA_ARRAY_MEMORY_REQUIREMENTS *req, CUarray array, CUdevice dev)) \
	CALL(cuMipmappedArrayGetMemoryRequirements, \
	     (CUDA_ARRAY_MEMORY_REQUIREMENTS *req, CUmipmappedArray mipmap, CUdevice dev))

/*
 * Functions that only a helper process of the daemon calls, to move another process's memory off the GPU
 * (daemon/gpu/nvml/driver_checkpoint.h). The helper passes NULL for `args`, except to cuCheckpointProcessLock.
 *
 *     CALL(symbol, params)
 */
#define DRIVER_CHECKPOINT_CALLS(CALL) \
	CALL(cuCheckpointProcessGetRestoreThreadId, (int pid, int *tid)) \
	CALL(cuCheckpointProcessGetState, (int pid, CUprocessState *state)) \
	CALL(cuCheckpointProcessLock, (int pid, CUcheckpointLockArgs *args)) \
	CALL(cuCheckpointProcessCheckpoint, (int pid, CUcheckpointCheckpointArgs *args)) \
	CALL(cuCheckpointProcessRestore, (int pid, CUcheckpointRestoreArgs *args)) \
	CALL(cuCheckpointProcessUnlock, (int pid, CUcheckpointUnlockArgs *args))
