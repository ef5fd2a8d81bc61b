/*
 * Of the functions that are passed (driver_decisions.h), those that are *quiet*: what they do or answer is
 * the same whether launches before them have reached the driver or wait in our queue (interpose/ahead.h).
 * All others wait for the queue first, and so does each that is in no table.
 *
 *   QUIET(base)     all forms of that name: the program gets the driver's own function
 *   WATCHED(base)   none is quiet, and we must know of each call, also while nothing is queued: events that
 *                   begin, events that other processes come to know (they can then observe their place in
 *                   the order of calls), functions that may be launched in other ways from then on, waits for
 *                   all that was launched (interpose/rest.h)
 *
 * A function belongs here if it puts nothing into a stream, waits for nothing, frees and changes nothing that
 * queued work uses, and tells nothing that queued work changes. cuGetExportTable hands out private functions,
 * which nobody can be put before; the CUDA runtime uses them for contexts and code alone.
 */
#ifndef ALLOT_DRIVER_DRIVER_QUIET_H
#define ALLOT_DRIVER_DRIVER_QUIET_H

/* clang-format off */
#define DRIVER_QUIET(QUIET) \
	QUIET(cuArray3DGetDescriptor) QUIET(cuArrayGetDescriptor) \
	QUIET(cuArrayGetMemoryRequirements) QUIET(cuArrayGetSparseProperties) \
	QUIET(cuCtxFromGreenCtx) QUIET(cuCtxGetApiVersion) QUIET(cuCtxGetCacheConfig) \
	QUIET(cuCtxGetCurrent) QUIET(cuCtxGetDevResource) QUIET(cuCtxGetDevice) \
	QUIET(cuCtxGetExecAffinity) QUIET(cuCtxGetFlags) QUIET(cuCtxGetId) \
	QUIET(cuCtxGetLimit) QUIET(cuCtxGetSharedMemConfig) \
	QUIET(cuCtxGetStreamPriorityRange) QUIET(cuCtxPopCurrent) QUIET(cuCtxPushCurrent) \
	QUIET(cuCtxSetCurrent) QUIET(cuDeviceCanAccessPeer) \
	QUIET(cuDeviceComputeCapability) QUIET(cuDeviceGet) QUIET(cuDeviceGetAttribute) \
	QUIET(cuDeviceGetByPCIBusId) QUIET(cuDeviceGetCount) \
	QUIET(cuDeviceGetDefaultMemPool) QUIET(cuDeviceGetDevResource) \
	QUIET(cuDeviceGetExecAffinitySupport) QUIET(cuDeviceGetLuid) \
	QUIET(cuDeviceGetMemPool) QUIET(cuDeviceGetName) QUIET(cuDeviceGetP2PAttribute) \
	QUIET(cuDeviceGetPCIBusId) QUIET(cuDeviceGetProperties) \
	QUIET(cuDeviceGetTexture1DLinearMaxWidth) QUIET(cuDeviceGetUuid) \
	QUIET(cuDevicePrimaryCtxGetState) QUIET(cuDriverGetVersion) \
	QUIET(cuFuncGetModule) QUIET(cuFuncGetName) \
	QUIET(cuFuncGetParamCount) QUIET(cuFuncGetParamInfo) QUIET(cuFuncIsLoaded) \
	QUIET(cuGetErrorName) QUIET(cuGetErrorString) QUIET(cuGetExportTable) \
	QUIET(cuGreenCtxGetDevResource) QUIET(cuGreenCtxGetId) \
	QUIET(cuKernelGetFunction) QUIET(cuKernelGetLibrary) QUIET(cuKernelGetName) \
	QUIET(cuKernelGetParamCount) QUIET(cuKernelGetParamInfo) \
	QUIET(cuLibraryEnumerateKernels) QUIET(cuLibraryGetKernel) \
	QUIET(cuLibraryGetKernelCount) QUIET(cuLinkAddData) QUIET(cuLinkAddFile) \
	QUIET(cuLinkComplete) QUIET(cuLinkCreate) QUIET(cuLinkDestroy) QUIET(cuMemGetAccess) \
	QUIET(cuMemGetAllocationGranularity) \
	QUIET(cuMemGetAllocationPropertiesFromHandle) QUIET(cuMemGetDefaultMemPool) \
	QUIET(cuMemGetMemPool) QUIET(cuMemHostGetDevicePointer) QUIET(cuMemHostGetFlags) \
	QUIET(cuMemPoolGetAccess) QUIET(cuMipmappedArrayGetMemoryRequirements) \
	QUIET(cuMipmappedArrayGetSparseProperties) QUIET(cuModuleEnumerateFunctions) \
	QUIET(cuModuleGetFunction) QUIET(cuModuleGetFunctionCount) \
	QUIET(cuModuleGetLoadingMode) QUIET(cuMulticastGetGranularity) \
	QUIET(cuOccupancyAvailableDynamicSMemPerBlock) \
	QUIET(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
	QUIET(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
	QUIET(cuOccupancyMaxActiveClusters) QUIET(cuOccupancyMaxPotentialBlockSize) \
	QUIET(cuOccupancyMaxPotentialBlockSizeWithFlags) \
	QUIET(cuOccupancyMaxPotentialClusterSize) \
	QUIET(cuStreamCreate) \
	QUIET(cuStreamCreateWithPriority) QUIET(cuStreamGetAttribute) \
	QUIET(cuStreamGetCaptureInfo) QUIET(cuStreamGetCtx) QUIET(cuStreamGetDevResource) \
	QUIET(cuStreamGetDevice) QUIET(cuStreamGetFlags) QUIET(cuStreamGetGreenCtx) \
	QUIET(cuStreamGetId) QUIET(cuStreamGetPriority) QUIET(cuStreamIsCapturing) \
	QUIET(cuTensorMapEncodeIm2col) QUIET(cuTensorMapEncodeIm2colWide) \
	QUIET(cuTensorMapEncodeTiled) QUIET(cuTensorMapReplaceAddress) \
	QUIET(cuThreadExchangeStreamCaptureMode)

#define DRIVER_WATCHED(WATCHED) \
	WATCHED(cuCtxSynchronize) WATCHED(cuEventCreate) WATCHED(cuFuncSetAttribute) \
	WATCHED(cuIpcGetEventHandle) WATCHED(cuIpcOpenEventHandle) WATCHED(cuKernelSetAttribute) \
	WATCHED(cuStreamSynchronize)
/* clang-format on */

#endif
