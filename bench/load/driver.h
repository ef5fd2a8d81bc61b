/* The CUDA driver as the load program sees it: libcuda.so.1 opened at run
 * time, so that one binary runs on a real GPU, under allot's interposer and on
 * the simulated GPU.
 *
 * Any failed call ends the program with status 1 and a line that names the
 * call and the error: a load that goes on after an error measures nothing.
 */
#pragma once

#ifdef ALLOT_LOAD_CUDA_H /* to check the rows against NVIDIA's own header */
#include <cuda.h>
#else
#include "abi/cuda_abi.h"
#endif
#include <stddef.h>

/* CU_STREAM_NON_BLOCKING, which cuda_abi.h has no need of. */
#define DRIVER_STREAM_NON_BLOCKING 1u

/* X(member, exported symbol, parameters). Symbols are spelled out with their
 * version: cuda.h renames the plain names, and a plain name in dlsym would
 * quietly find an older function with other parameters. */
#define DRIVER_ROWS(X) \
	X(init, "cuInit", (unsigned flags)) \
	X(device_get, "cuDeviceGet", (CUdevice * ret_dev, int ordinal)) \
	X(primary_retain, "cuDevicePrimaryCtxRetain", (CUcontext * ret_ctx, CUdevice dev)) \
	X(primary_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice dev)) \
	X(ctx_set, "cuCtxSetCurrent", (CUcontext ctx)) \
	X(module_load, "cuModuleLoadData", (CUmodule * ret_mod, const void *image)) \
	X(module_function, "cuModuleGetFunction", \
	  (CUfunction * ret_f, CUmodule mod, const char *name)) \
	X(launch, "cuLaunchKernel", \
	  (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
	   unsigned bz, unsigned shared_bytes, CUstream s, void **params, void **extra)) \
	X(launch_cooperative, "cuLaunchCooperativeKernel", \
	  (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
	   unsigned bz, unsigned shared_bytes, CUstream s, void **params)) \
	X(stream_create, "cuStreamCreate", (CUstream * ret_s, unsigned flags)) \
	X(stream_destroy, "cuStreamDestroy_v2", (CUstream s)) \
	X(stream_sync, "cuStreamSynchronize", (CUstream s)) \
	X(event_create, "cuEventCreate", (CUevent * ret_e, unsigned flags)) \
	X(event_destroy, "cuEventDestroy_v2", (CUevent e)) \
	X(event_record, "cuEventRecord", (CUevent e, CUstream s)) \
	X(event_query, "cuEventQuery", (CUevent e)) \
	X(capture_begin, "cuStreamBeginCapture_v2", (CUstream s, CUstreamCaptureMode mode)) \
	X(capture_end, "cuStreamEndCapture", (CUstream s, CUgraph * ret_graph)) \
	X(graph_instantiate, "cuGraphInstantiateWithFlags", \
	  (CUgraphExec * ret_exec, CUgraph graph, unsigned long long flags)) \
	X(graph_launch, "cuGraphLaunch", (CUgraphExec exec, CUstream s)) \
	X(graph_destroy, "cuGraphDestroy", (CUgraph graph)) \
	X(graph_exec_destroy, "cuGraphExecDestroy", (CUgraphExec exec)) \
	X(mem_info, "cuMemGetInfo_v2", (size_t * ret_free_bytes, size_t * ret_total_bytes)) \
	X(mem_alloc, "cuMemAlloc_v2", (CUdeviceptr * ret_p, size_t bytes)) \
	X(mem_free, "cuMemFree_v2", (CUdeviceptr p)) \
	X(can_access, "cuDeviceCanAccessPeer", (int *ret_can, CUdevice dev, CUdevice peer)) \
	X(enable_access, "cuCtxEnablePeerAccess", (CUcontext peer, unsigned flags)) \
	X(copy_peer, "cuMemcpyPeerAsync", \
	  (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes, \
	   CUstream s)) \
	X(error_name, "cuGetErrorName", (CUresult r, const char **ret_name))

struct driver {
#define X(member, symbol, params) CUresult(*member) params;
	DRIVER_ROWS(X)
#undef X
	CUdevice dev;
	CUcontext ctx; /* primary; current in the thread that opened it */
};

/* Opens the library and makes the primary context of device 0 current in the
 * calling thread. A symbol that is missing is an error only when it is called:
 * graphs, say, need a newer driver than the rest. */
void driver_open(struct driver *d);

/* Releases the context; everything made in it must have been destroyed. */
void driver_close(struct driver *d);

/* The error's name as cuda.h spells it; a static string, or one that lives
 * until the next call. One thread only. */
const char *driver_error_name(const struct driver *d, CUresult r);

/* Members are named by their offset, so that a call costs no look-up of its
 * symbol unless it fails. */
void driver_check(const struct driver *d, CUresult r, size_t member_offset);
void driver_need(const struct driver *d, size_t member_offset);

/* Calls a member; ends the program unless it exists and returns CUDA_SUCCESS. */
#define DRIVER_DO(d, member, ...) \
	(driver_need((d), offsetof(struct driver, member)), \
	 driver_check((d), (d)->member(__VA_ARGS__), offsetof(struct driver, member)))
