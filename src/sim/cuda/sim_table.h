/*
 * The functions that the simulated driver exports beyond src/abi/driver_table.h, one row per
 * symbol. A row makes the prototype, the export, and the address for cuGetProcAddress (procaddr.c).
 *
 *   FN(symbol, params)            FN_TWINS(FN, symbol, suffix, params): also symbol##suffix
 */
#pragma once

#include "abi/driver_table.h"
#include "sim/cuda/abi_extra.h"

#define FN_TWINS(FN, symbol, suffix, params) FN(symbol, params) FN(symbol##suffix, params)

#define SIM_TABLE_DEVICE(FN) \
	FN(cuGetErrorName, (CUresult error, const char **name)) \
	FN(cuGetErrorString, (CUresult error, const char **text)) \
	FN(cuGetExportTable, (const void **table, const CUuuid *id)) \
	FN(cuDeviceGetName, (char *name, int size, CUdevice dev)) \
	FN(cuDeviceGetAttribute, (int *value, CUdevice_attribute attr, CUdevice dev)) \
	FN(cuDeviceGetProperties, (CUdevprop * prop, CUdevice dev)) \
	FN(cuDeviceComputeCapability, (int *major, int *minor, CUdevice dev)) \
	FN(cuDeviceGetPCIBusId, (char *text, int size, CUdevice dev)) \
	FN(cuDeviceGetByPCIBusId, (CUdevice * dev, const char *text)) \
	FN(cuDeviceCanAccessPeer, (int *can, CUdevice dev, CUdevice peer)) \
	FN(cuDeviceGetP2PAttribute, \
	   (int *value, CUdevice_P2PAttribute attr, CUdevice src, CUdevice dst)) \
	FN(cuDeviceGetExecAffinitySupport, (int *value, CUexecAffinityType type, CUdevice dev)) \
	FN(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned int flags)) \
	FN(cuProfilerInitialize, (const char *settings, const char *output, int mode)) \
	FN(cuProfilerStart, (void)) \
	FN(cuProfilerStop, (void))

#define SIM_TABLE_CONTEXT(FN) \
	FN(cuCtxPushCurrent_v2, (CUcontext ctx)) \
	FN(cuCtxPopCurrent_v2, (CUcontext * ctx)) \
	FN(cuCtxGetDevice_v2, (CUdevice * dev, CUcontext ctx)) \
	FN(cuCtxGetApiVersion, (CUcontext ctx, unsigned int *version)) \
	FN(cuCtxGetFlags, (unsigned int *flags)) \
	FN(cuCtxSetFlags, (unsigned int flags)) \
	FN(cuCtxGetId, (CUcontext ctx, unsigned long long *id)) \
	FN(cuCtxSetLimit, (CUlimit limit, size_t value)) \
	FN(cuCtxGetLimit, (size_t * value, CUlimit limit)) \
	FN(cuCtxGetCacheConfig, (CUfunc_cache * config)) \
	FN(cuCtxSetCacheConfig, (CUfunc_cache config)) \
	FN(cuCtxGetSharedMemConfig, (CUsharedconfig * config)) \
	FN(cuCtxSetSharedMemConfig, (CUsharedconfig config)) \
	FN(cuCtxGetStreamPriorityRange, (int *least, int *greatest)) \
	FN(cuCtxResetPersistingL2Cache, (void)) \
	FN(cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags)) \
	FN(cuCtxDisablePeerAccess, (CUcontext peer))

#define SIM_TABLE_MODULE(FN) \
	FN(cuModuleLoad, (CUmodule * module, const char *path)) \
	FN(cuModuleLoadData, (CUmodule * module, const void *image)) \
	FN(cuModuleLoadDataEx, (CUmodule * module, const void *image, unsigned int n, \
				CUjit_option *options, void **values)) \
	FN(cuModuleLoadFatBinary, (CUmodule * module, const void *image)) \
	FN(cuModuleUnload, (CUmodule module)) \
	FN(cuModuleGetFunction, (CUfunction * f, CUmodule module, const char *name)) \
	FN(cuModuleGetGlobal_v2, \
	   (CUdeviceptr * ptr, size_t * bytes, CUmodule module, const char *name)) \
	FN(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode)) \
	FN(cuLinkCreate_v2, \
	   (unsigned int n, CUjit_option *options, void **values, CUlinkState *state)) \
	FN(cuLinkAddData_v2, \
	   (CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, \
	    unsigned int n, CUjit_option *options, void **values)) \
	FN(cuLinkAddFile_v2, (CUlinkState state, CUjitInputType type, const char *path, \
			      unsigned int n, CUjit_option *options, void **values)) \
	FN(cuLinkComplete, (CUlinkState state, void **image, size_t *size)) \
	FN(cuLinkDestroy, (CUlinkState state)) \
	FN(cuLibraryLoadData, \
	   (CUlibrary * library, const void *image, CUjit_option *jit, void **jit_values, \
	    unsigned int jit_n, CUlibraryOption *options, void **values, unsigned int n)) \
	FN(cuLibraryUnload, (CUlibrary library)) \
	FN(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name)) \
	FN(cuLibraryGetModule, (CUmodule * module, CUlibrary library)) \
	FN(cuLibraryGetGlobal, \
	   (CUdeviceptr * ptr, size_t * bytes, CUlibrary library, const char *name)) \
	FN(cuLibraryGetManaged, \
	   (CUdeviceptr * ptr, size_t * bytes, CUlibrary library, const char *name)) \
	FN(cuKernelGetFunction, (CUfunction * f, CUkernel kernel)) \
	FN(cuKernelGetAttribute, \
	   (int *value, CUfunction_attribute attr, CUkernel kernel, CUdevice dev)) \
	FN(cuKernelSetAttribute, \
	   (CUfunction_attribute attr, int value, CUkernel kernel, CUdevice dev)) \
	FN(cuKernelGetLibrary, (CUlibrary * library, CUkernel kernel)) \
	FN(cuKernelGetName, (const char **name, CUkernel kernel)) \
	FN(cuFuncGetAttribute, (int *value, CUfunction_attribute attr, CUfunction f)) \
	FN(cuFuncSetAttribute, (CUfunction f, CUfunction_attribute attr, int value)) \
	FN(cuFuncSetCacheConfig, (CUfunction f, CUfunc_cache config)) \
	FN(cuFuncSetSharedMemConfig, (CUfunction f, CUsharedconfig config)) \
	FN(cuFuncGetModule, (CUmodule * module, CUfunction f)) \
	FN(cuFuncGetName, (const char **name, CUfunction f)) \
	FN(cuFuncLoad, (CUfunction f)) \
	FN(cuFuncIsLoaded, (int *state, CUfunction f)) \
	FN(cuOccupancyMaxActiveBlocksPerMultiprocessor, \
	   (int *blocks, CUfunction f, int block_size, size_t shared_bytes)) \
	FN(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, \
	   (int *blocks, CUfunction f, int block_size, size_t shared_bytes, unsigned int flags)) \
	FN(cuOccupancyMaxPotentialBlockSize, \
	   (int *min_grid, int *block_size, CUfunction f, CUoccupancyB2DSize size, \
	    size_t shared_bytes, int limit)) \
	FN(cuOccupancyMaxPotentialBlockSizeWithFlags, \
	   (int *min_grid, int *block_size, CUfunction f, CUoccupancyB2DSize size, \
	    size_t shared_bytes, int limit, unsigned int flags)) \
	FN(cuOccupancyAvailableDynamicSMemPerBlock, \
	   (size_t * bytes, CUfunction f, int blocks, int block_size))

#define SIM_TABLE_STREAM(FN) \
	FN(cuStreamCreate, (CUstream * stream, unsigned int flags)) \
	FN(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority)) \
	FN(cuGreenCtxStreamCreate, \
	   (CUstream * stream, CUgreenCtx green, unsigned int flags, int priority)) \
	FN_TWINS(FN, cuStreamQuery, _ptsz, (CUstream stream)) \
	FN_TWINS(FN, cuStreamWaitEvent, _ptsz, \
		 (CUstream stream, CUevent event, unsigned int flags)) \
	FN(cuStreamGetCtx_ptsz, (CUstream stream, CUcontext * ctx)) \
	FN_TWINS(FN, cuStreamGetCtx_v2, _ptsz, \
		 (CUstream stream, CUcontext * ctx, CUgreenCtx * green)) \
	FN_TWINS(FN, cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice * dev)) \
	FN_TWINS(FN, cuStreamGetFlags, _ptsz, (CUstream stream, unsigned int *flags)) \
	FN_TWINS(FN, cuStreamGetPriority, _ptsz, (CUstream stream, int *priority)) \
	FN_TWINS(FN, cuStreamGetId, _ptsz, (CUstream stream, unsigned long long *id)) \
	FN_TWINS(FN, cuStreamAddCallback, _ptsz, \
		 (CUstream stream, CUstreamCallback callback, void *data, unsigned int flags)) \
	FN_TWINS(FN, cuStreamAttachMemAsync, _ptsz, \
		 (CUstream stream, CUdeviceptr ptr, size_t bytes, unsigned int flags)) \
	FN_TWINS(FN, cuStreamWaitValue32_v2, _ptsz, \
		 (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)) \
	FN_TWINS(FN, cuStreamWriteValue32_v2, _ptsz, \
		 (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)) \
	FN_TWINS(FN, cuStreamWaitValue64_v2, _ptsz, \
		 (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)) \
	FN_TWINS(FN, cuStreamWriteValue64_v2, _ptsz, \
		 (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)) \
	FN_TWINS(FN, cuStreamBatchMemOp_v2, _ptsz, \
		 (CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops, \
		  unsigned int flags)) \
	FN_TWINS(FN, cuStreamGetCaptureInfo_v2, _ptsz, \
		 (CUstream stream, CUstreamCaptureStatus * status, cuuint64_t * id, \
		  CUgraph * graph, const CUgraphNode **nodes, size_t *count)) \
	FN_TWINS(FN, cuStreamGetCaptureInfo_v3, _ptsz, \
		 (CUstream stream, CUstreamCaptureStatus * status, cuuint64_t * id, CUgraph * graph, \
		  const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count)) \
	FN_TWINS(FN, cuStreamCopyAttributes, _ptsz, (CUstream dst, CUstream src)) \
	FN_TWINS(FN, cuStreamGetAttribute, _ptsz, \
		 (CUstream stream, CUstreamAttrID attr, void *value)) \
	FN_TWINS(FN, cuStreamSetAttribute, _ptsz, \
		 (CUstream stream, CUstreamAttrID attr, const void *value)) \
	FN_TWINS(FN, cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn fn, void *data)) \
	FN(cuEventElapsedTime_v2, (float *ms, CUevent start, CUevent end)) \
	FN_TWINS(FN, cuEventRecordWithFlags, _ptsz, \
		 (CUevent event, CUstream stream, unsigned int flags)) \
	FN(cuIpcGetEventHandle, (CUipcEventHandle * handle, CUevent event)) \
	FN(cuIpcOpenEventHandle, (CUevent * event, CUipcEventHandle handle))

#define SIM_TABLE_MEMORY(FN) \
	FN(cuMemHostGetDevicePointer_v2, (CUdeviceptr * dptr, void *ptr, unsigned int flags)) \
	FN(cuMemHostGetFlags, (unsigned int *flags, void *ptr)) \
	FN(cuPointerGetAttributes, \
	   (unsigned int n, CUpointer_attribute *attrs, void **values, CUdeviceptr ptr)) \
	FN(cuPointerSetAttribute, (const void *value, CUpointer_attribute attr, CUdeviceptr ptr)) \
	FN(cuMemAddressReserve, (CUdeviceptr * ptr, size_t bytes, size_t alignment, \
				 CUdeviceptr hint, unsigned long long flags)) \
	FN(cuMemAddressFree, (CUdeviceptr ptr, size_t bytes)) \
	FN(cuMemSetAccess, \
	   (CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)) \
	FN(cuMemGetAccess, \
	   (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)) \
	FN(cuMemGetAllocationGranularity, (size_t * bytes, const CUmemAllocationProp *prop, \
					   CUmemAllocationGranularity_flags option)) \
	FN(cuMemGetHandleForAddressRange, (void *handle, CUdeviceptr ptr, size_t bytes, \
					   CUmemRangeHandleType type, unsigned long long flags)) \
	FN(cuMulticastGetGranularity, (size_t * bytes, const CUmulticastObjectProp *prop, \
				       CUmulticastGranularity_flags option)) \
	FN(cuMulticastAddDevice, (CUmemGenericAllocationHandle object, CUdevice dev)) \
	FN(cuImportExternalMemory, \
	   (CUexternalMemory * memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)) \
	FN(cuExternalMemoryGetMappedBuffer, (CUdeviceptr * ptr, CUexternalMemory memory, \
					     const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)) \
	FN(cuDestroyExternalMemory, (CUexternalMemory memory)) \
	FN(cuMemPoolExportPointer, (CUmemPoolPtrExportData * data, CUdeviceptr ptr)) \
	FN(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count)) \
	FN(cuMemPoolGetAccess, (int *flags, CUmemoryPool pool, CUmemLocation *location)) \
	FN(cuMemAdvise, (CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice dev)) \
	FN(cuMemAdvise_v2, \
	   (CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUmemLocation location)) \
	FN(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR * desc, CUarray array)) \
	FN(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR * desc, CUarray array)) \
	FN(cuMipmappedArrayGetLevel, (CUarray * array, CUmipmappedArray mipmap, unsigned int level))

#define SIM_TABLE_GRAPH(FN) \
	FN(cuGraphCreate, (CUgraph * graph, unsigned int flags)) \
	FN(cuGraphClone, (CUgraph * clone, CUgraph graph)) \
	FN(cuGraphDestroy, (CUgraph graph)) \
	FN(cuGraphExecUpdate_v2, \
	   (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo * info)) \
	FN(cuGraphExecGetFlags, (CUgraphExec exec, cuuint64_t * flags)) \
	FN(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode * nodes, size_t * count)) \
	FN(cuGraphAddMemAllocNode, \
	   (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count, \
	    CUDA_MEM_ALLOC_NODE_PARAMS *params)) \
	FN(cuGraphAddMemFreeNode, (CUgraphNode * node, CUgraph graph, \
				   const CUgraphNode *dependencies, size_t count, CUdeviceptr ptr)) \
	FN(cuGraphAddEmptyNode, \
	   (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count)) \
	FN(cuGraphAddKernelNode_v2, \
	   (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count, \
	    const CUDA_KERNEL_NODE_PARAMS *params)) \
	FN(cuGraphKernelNodeGetParams_v2, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS * params)) \
	FN(cuGraphAddMemcpyNode, \
	   (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count, \
	    const CUDA_MEMCPY3D *copy, CUcontext ctx)) \
	FN(cuGraphAddMemsetNode, \
	   (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count, \
	    const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)) \
	FN(cuGraphAddHostNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, \
				size_t count, const CUDA_HOST_NODE_PARAMS *params)) \
	FN(cuGraphAddDependencies, \
	   (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)) \
	FN(cuGraphAddDependencies_v2, \
	   (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, \
	    const CUgraphEdgeData *edges, size_t count)) \
	FN(cuGraphAddNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, \
			    size_t count, CUgraphNodeParams *params)) \
	FN(cuGraphAddNode_v2, \
	   (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, \
	    const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)) \
	FN(cuGraphDebugDotPrint, (CUgraph graph, const char *path, unsigned int flags))

/* A function of a future driver, which no table of allot lists (future.c). */
#define SIM_TABLE_FUTURE(FN) FN(cuMemAlloc_v9, (CUdeviceptr * ptr, size_t bytes))

#define SIM_TABLE(FN) \
	SIM_TABLE_FUTURE(FN) \
	DRIVER_CHECKPOINT_CALLS(FN) \
	SIM_TABLE_DEVICE(FN) \
	SIM_TABLE_CONTEXT(FN) \
	SIM_TABLE_MODULE(FN) \
	SIM_TABLE_STREAM(FN) \
	SIM_TABLE_MEMORY(FN) \
	SIM_TABLE_GRAPH(FN)

/* Prototypes. The library exports these functions and no others. */
#pragma GCC visibility push(default)
#define DECLARE_HOOK(symbol, hook, params, args) CUresult symbol params;
#define DECLARE_WORK(symbol, streams, params, args, work) CUresult symbol params;
#define DECLARE(symbol, params) CUresult symbol params;
DRIVER_TABLE(DECLARE_HOOK, DECLARE_WORK)
DRIVER_CALLS(DECLARE)
SIM_TABLE(DECLARE)
#undef DECLARE_HOOK
#undef DECLARE_WORK
#undef DECLARE
#pragma GCC visibility pop
