/*
 * The driver as the GPU tests see it: libcuda.so.1 opened at run time, like any program that has it
 * loaded for it; errors are returned, for a test may want them. GPU_DO ends the program on one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_abi.h"

/* cuda.h's names and values, for what cuda_abi.h has no need of. */
#define CU_STREAM_NON_BLOCKING 0x1u
#define CU_STREAM_WAIT_VALUE_GEQ 0x0u
#define CU_MEMHOSTALLOC_PORTABLE 0x1u
#define CU_MEMHOSTALLOC_DEVICEMAP 0x2u
#define CU_MEMHOSTREGISTER_PORTABLE 0x1u
#define CU_MEMHOSTREGISTER_DEVICEMAP 0x2u
#define CU_MEM_ALLOC_GRANULARITY_MINIMUM 0x0
#define CU_MEM_ATTACH_GLOBAL 0x1u
#define CU_MEM_ACCESS_FLAGS_PROT_READWRITE 0x3

typedef struct CUipcEventHandle_st {
	char reserved[64];
} CUipcEventHandle;

/* More ways of getting memory, as below. */
#define GPU_MEMORY_ROWS(X) \
	X(mem_alloc_managed, "cuMemAllocManaged", \
	  (CUdeviceptr * ret_p, size_t bytes, unsigned int flags)) \
	X(mem_set, "cuMemsetD8_v2", (CUdeviceptr p, unsigned char value, size_t bytes)) \
	X(ipc_get_memory, "cuIpcGetMemHandle", (CUipcMemHandle * ret_handle, CUdeviceptr p)) \
	X(host_free, "cuMemFreeHost", (void *p)) \
	X(array3d_create, "cuArray3DCreate_v2", \
	  (CUarray * ret_array, const CUDA_ARRAY3D_DESCRIPTOR *desc)) \
	X(mipmap_create, "cuMipmappedArrayCreate", \
	  (CUmipmappedArray * ret_mipmap, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels)) \
	X(mipmap_destroy, "cuMipmappedArrayDestroy", (CUmipmappedArray mipmap)) \
	X(pool_create, "cuMemPoolCreate", (CUmemoryPool * ret_pool, const CUmemPoolProps *props)) \
	X(pool_destroy, "cuMemPoolDestroy", (CUmemoryPool pool)) \
	X(pool_set, "cuMemPoolSetAttribute", \
	  (CUmemoryPool pool, CUmemPool_attribute attribute, void *value)) \
	X(mem_alloc_from_pool, "cuMemAllocFromPoolAsync", \
	  (CUdeviceptr * ret_p, size_t bytes, CUmemoryPool pool, CUstream stream)) \
	X(vmm_reserve, "cuMemAddressReserve", \
	  (CUdeviceptr * ret_p, size_t bytes, size_t alignment, CUdeviceptr hint, \
	   unsigned long long flags)) \
	X(vmm_reserve_free, "cuMemAddressFree", (CUdeviceptr p, size_t bytes)) \
	X(vmm_map, "cuMemMap", \
	  (CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, \
	   unsigned long long flags)) \
	X(vmm_unmap, "cuMemUnmap", (CUdeviceptr p, size_t bytes)) \
	X(vmm_access, "cuMemSetAccess", \
	  (CUdeviceptr p, size_t bytes, const CUmemAccessDesc *desc, size_t count)) \
	X(vmm_retain, "cuMemRetainAllocationHandle", \
	  (CUmemGenericAllocationHandle * ret_handle, void *p)) \
	X(graph_create, "cuGraphCreate", (CUgraph * ret_graph, unsigned int flags)) \
	X(graph_add_alloc, "cuGraphAddMemAllocNode", \
	  (CUgraphNode * ret_node, CUgraph graph, const CUgraphNode *dependencies, size_t count, \
	   CUDA_MEM_ALLOC_NODE_PARAMS *params)) \
	X(graph_add_free, "cuGraphAddMemFreeNode", \
	  (CUgraphNode * ret_node, CUgraph graph, const CUgraphNode *dependencies, size_t count, \
	   CUdeviceptr p)) \
	X(graph_trim, "cuDeviceGraphMemTrim", (CUdevice dev)) \
	X(module_unload, "cuModuleUnload", (CUmodule module)) \
	X(ctx_create, "cuCtxCreate_v2", (CUcontext * ret_ctx, unsigned int flags, CUdevice dev)) \
	X(ctx_pop, "cuCtxPopCurrent_v2", (CUcontext * ret_ctx)) \
	X(ctx_destroy, "cuCtxDestroy_v2", (CUcontext ctx))

/* X(member, exported symbol, parameters) */
#define GPU_ROWS(X) \
	X(init, "cuInit", (unsigned int flags)) \
	X(device_get, "cuDeviceGet", (CUdevice * ret_dev, int ordinal)) \
	X(device_total, "cuDeviceTotalMem_v2", (size_t * ret_bytes, CUdevice dev)) \
	X(device_pci, "cuDeviceGetPCIBusId", (char *text, int size, CUdevice dev)) \
	X(primary_retain, "cuDevicePrimaryCtxRetain", (CUcontext * ret_ctx, CUdevice dev)) \
	X(primary_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice dev)) \
	X(ctx_set, "cuCtxSetCurrent", (CUcontext ctx)) \
	X(ctx_sync, "cuCtxSynchronize", (void)) \
	X(module_load, "cuModuleLoadData", (CUmodule * ret_module, const void *image)) \
	X(module_function, "cuModuleGetFunction", \
	  (CUfunction * ret_f, CUmodule module, const char *name)) \
	X(launch, "cuLaunchKernel", \
	  (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, \
	   unsigned int by, unsigned int bz, unsigned int shared_bytes, CUstream stream, \
	   void **params, void **extra)) \
	X(launch_host, "cuLaunchHostFunc", (CUstream stream, void (*fn)(void *), void *data)) \
	X(stream_create, "cuStreamCreate", (CUstream * ret_stream, unsigned int flags)) \
	X(stream_destroy, "cuStreamDestroy_v2", (CUstream stream)) \
	X(stream_sync, "cuStreamSynchronize", (CUstream stream)) \
	X(stream_wait_event, "cuStreamWaitEvent", \
	  (CUstream stream, CUevent event, unsigned int flags)) \
	X(stream_wait_value, "cuStreamWaitValue32_v2", \
	  (CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned int flags)) \
	X(stream_write_value, "cuStreamWriteValue32_v2", \
	  (CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned int flags)) \
	X(capture_begin, "cuStreamBeginCapture_v2", (CUstream stream, CUstreamCaptureMode mode)) \
	X(capture_end, "cuStreamEndCapture", (CUstream stream, CUgraph * ret_graph)) \
	X(graph_instantiate, "cuGraphInstantiateWithFlags", \
	  (CUgraphExec * ret_exec, CUgraph graph, unsigned long long flags)) \
	X(graph_launch, "cuGraphLaunch", (CUgraphExec exec, CUstream stream)) \
	X(graph_destroy, "cuGraphDestroy", (CUgraph graph)) \
	X(graph_exec_destroy, "cuGraphExecDestroy", (CUgraphExec exec)) \
	X(event_create, "cuEventCreate", (CUevent * ret_event, unsigned int flags)) \
	X(event_destroy, "cuEventDestroy_v2", (CUevent event)) \
	X(event_record, "cuEventRecord", (CUevent event, CUstream stream)) \
	X(ipc_get_event, "cuIpcGetEventHandle", (CUipcEventHandle * ret_handle, CUevent event)) \
	X(ipc_open_event, "cuIpcOpenEventHandle", (CUevent * ret_event, CUipcEventHandle handle)) \
	X(host_alloc, "cuMemHostAlloc", (void **ret_p, size_t bytes, unsigned int flags)) \
	X(host_register, "cuMemHostRegister_v2", (void *p, size_t bytes, unsigned int flags)) \
	X(host_pointer, "cuMemHostGetDevicePointer_v2", \
	  (CUdeviceptr * ret_p, void *p, unsigned int flags)) \
	X(mem_info, "cuMemGetInfo_v2", (size_t * ret_free_bytes, size_t * ret_total_bytes)) \
	X(mem_alloc, "cuMemAlloc_v2", (CUdeviceptr * ret_p, size_t bytes)) \
	X(mem_alloc_pitch, "cuMemAllocPitch_v2", \
	  (CUdeviceptr * ret_p, size_t * ret_pitch, size_t width, size_t height, \
	   unsigned int element_bytes)) \
	X(mem_free, "cuMemFree_v2", (CUdeviceptr p)) \
	X(mem_to_card, "cuMemcpyHtoD_v2", (CUdeviceptr to, const void *from, size_t bytes)) \
	X(mem_to_host, "cuMemcpyDtoH_v2", (void *to, CUdeviceptr from, size_t bytes)) \
	X(mem_set_async, "cuMemsetD8Async", \
	  (CUdeviceptr p, unsigned char value, size_t bytes, CUstream stream)) \
	X(mem_alloc_async, "cuMemAllocAsync", (CUdeviceptr * ret_p, size_t bytes, CUstream stream)) \
	X(mem_free_async, "cuMemFreeAsync", (CUdeviceptr p, CUstream stream)) \
	X(default_pool, "cuDeviceGetDefaultMemPool", (CUmemoryPool * ret_pool, CUdevice dev)) \
	X(pool_trim, "cuMemPoolTrimTo", (CUmemoryPool pool, size_t keep_bytes)) \
	X(array_create, "cuArrayCreate_v2", \
	  (CUarray * ret_array, const CUDA_ARRAY_DESCRIPTOR *desc)) \
	X(array_destroy, "cuArrayDestroy", (CUarray array)) \
	X(vmm_granularity, "cuMemGetAllocationGranularity", \
	  (size_t * ret_bytes, const CUmemAllocationProp *prop, int option)) \
	X(vmm_create, "cuMemCreate", \
	  (CUmemGenericAllocationHandle * ret_handle, size_t bytes, \
	   const CUmemAllocationProp *prop, unsigned long long flags)) \
	X(vmm_release, "cuMemRelease", (CUmemGenericAllocationHandle handle)) \
	GPU_MEMORY_ROWS(X) \
	X(error_name, "cuGetErrorName", (CUresult result, const char **ret_name))

struct gpu {
#define X(member, symbol, params) CUresult(*member) params;
	GPU_ROWS(X)
#undef X
	CUdevice dev;
	CUfunction burn, exchange;
	uint32_t turns_per_ms; /* of burn's loop, on 132 blocks */
	bool is_simulated;
};

extern struct gpu gpu;

/* Opens the library, makes device 0's primary context current and loads the kernels. Ends the
 * program with status 1 and a line when something of that fails. */
void gpu_open(uint32_t turns_per_ms);

/* As cuda.h spells it; a static string. */
const char *gpu_error_name(CUresult result);

/* Ends the program with status 1 and a line that names `what`, unless result is CUDA_SUCCESS. */
void gpu_check(CUresult result, const char *what);

#define GPU_DO(member, ...) gpu_check(gpu.member(__VA_ARGS__), #member)

/* A kernel that keeps 132 blocks busy for that long when alone. */
void gpu_burn(CUstream stream, uint64_t us);

/* A kernel that writes 1 to *mine and spins until *peer is not 0; both are device addresses of mapped
 * host memory. On a real GPU it gives up after 5 s and then adds 1 to *given_up; the simulated one
 * leaves that to the caller's watchdog. */
void gpu_exchange(CUstream stream, CUdeviceptr mine, CUdeviceptr peer, CUdeviceptr given_up);
