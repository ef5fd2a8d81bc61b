/*
 * For every function of the driver API: whether the library hooks it, and why. docs/reference/driver-api.md is made from this
 * file and driver_table.h (scripts/driver-api). CI fails if a function of NVIDIA's headers, or a symbol of a real libcuda, is
 * in neither.
 *
 *   GOVERNED(group, why)      the functions of DRIVER_TABLE_<group> (driver_table.h): hooked
 *   REFUSED(reason, base)     in DRIVER_TABLE_REFUSED: hooked; a tenant's call fails
 *   PASSED(reason, base)      not hooked
 *   REASON(reason, why)       what a `reason` of REFUSED and PASSED stands for
 *
 * A base name stands for all its forms: versions (_vN) and per-thread-stream twins (_ptsz and _ptds). Either all forms are
 * hooked or none is. So for a form that a newer driver adds, the base tells whether it must be hooked (unknown.h).
 */
#pragma once

/* clang-format off */
#define DRIVER_GOVERNED(GOVERNED) \
	GOVERNED(ENTRY, \
	       "joins the tenant, or hands out functions: ours in place of the driver's") \
	GOVERNED(PEER, \
		 "said again of each range of memory that can be moved to the host, which the driver does not do") \
	GOVERNED(CONTEXT, \
	       "a context is memory that no allocation call names, and its end is the end of " \
	       "what was allocated in it") \
	GOVERNED(INFO, "tells the size of the GPU: a tenant is shown its quota") \
	GOVERNED(MEMORY, "makes memory appear on the GPU, or go") \
	GOVERNED(POINTER, \
	       "asks or says something of an address: memory that can be moved off the GPU is other " \
	       "memory to the driver than to the program, or none at the moment") \
	GOVERNED(VALUE, "a word that a stream waits for or writes may be in memory that can be moved") \
	GOVERNED(NODE, "names memory, which the driver looks at: it may not be on the GPU") \
	GOVERNED(MULTICAST, \
	       "keeps the memory that is bound to it, though its handle was released") \
	GOVERNED(HOST, "page-locked host memory: a tenant may have a quota of it") \
	GOVERNED(GREEN, "holds the primary context, which is charged") \
	GOVERNED(CODE, \
	       "makes memory appear on the GPU that the call does not tell the size of: measured " \
	       "around the call") \
	GOVERNED(STREAM, \
	       "the gate must know of captures, and of streams that are gone; a graph's memory " \
	       "is charged as it is launched") \
	GOVERNED(EVENT, "a program's step may end with it, which is counted") \
	GOVERNED(OLD, "an old ABI of what is governed, or a rare way of doing the same") \
	GOVERNED(LAUNCH, "runs kernels") \
	GOVERNED(COPY, "copies: the engines that do it and the memory's bandwidth are shared") \
	GOVERNED(SET, "fills memory: a kernel of the driver's") \
	GOVERNED(BATCH, "moves or fills bytes, many ranges at once or ahead of time") \
	GOVERNED(OLD_WORK, "work by an old ABI") \
	GOVERNED(WAIT, "a program's step may end with it, and so may a turn")

#define DRIVER_REFUSED(REFUSED) \
	REFUSED(ATTACHED, cuCtxAttach) \
	REFUSED(VIDEO, cuVDPAUCtxCreate) \
	REFUSED(COMMANDS, cuStreamBeginCaptureToCig) \
	REFUSED(SPARSE, cuMemMapArrayAsync) \
	REFUSED(ENDPOINTS, cuLogicalEndpointCreate) \
	REFUSED(ENDPOINTS, cuLogicalEndpointImport)

#define DRIVER_REASONS(REASON) \
	REASON(ATTACHED, \
	       "counts references to a context, which would outlive its charge; deprecated " \
	       "since CUDA 4") \
	REASON(VIDEO, "makes a context for a video interface that no compute container has") \
	REASON(COMMANDS, \
	       "puts work into a graphics command buffer, which reaches the GPU past every " \
	       "gate") \
	REASON(SPARSE, \
	       "keeps memory in a sparse array after its handle was released: it can't be " \
	       "counted") \
	REASON(ENDPOINTS, \
	       "binds memory to an endpoint of the fabric, where it outlives its handles: it " \
	       "can't be counted") \
	REASON(ASKS, "answers a question: makes no memory on the GPU and starts no work") \
	REASON(SETTINGS, \
	       "changes a setting or a record of the host process: no memory on the GPU, no " \
	       "work") \
	REASON(STREAMS, \
	       "makes or ends a stream or event: what that takes is part of the context, whose " \
	       "size is measured; what is put into the stream is governed") \
	REASON(ORDERS, \
	       "waits for work, or orders it: no kernel and no copy; the work itself was let " \
	       "through when it was launched") \
	REASON(PROCESSOR, \
	       "runs a function on the processor, in the order of the stream: no GPU time") \
	REASON(MANAGED, \
	       "a hint about managed memory, which is charged in full from when it was made") \
	REASON(VIEWS, \
	       "describes memory that a governed call made: a texture, surface or tensor map " \
	       "is no memory of its own") \
	REASON(CONTEXT, \
	       "code, its variables, stacks and heaps are part of the context, whose size the " \
	       "daemon measures") \
	REASON(LINKS, "compiles on the processor") \
	REASON(GRAPHS, \
	       "builds or changes a graph: nothing runs and no memory appears before it is " \
	       "instantiated and launched or uploaded, which is governed") \
	REASON(ADDRESSES, \
	       "addresses and access rights: the memory behind them is charged where it is " \
	       "made") \
	REASON(NAMES, \
	       "names an allocation for a process that has imported its pool, which is " \
	       "governed: nothing is made and nothing kept") \
	REASON(MULTICAST, \
	       "a multicast object is addresses; what is bound to it is charged where it was " \
	       "made, until it is unbound as well") \
	REASON(EXTERNAL, \
	       "maps memory that another interface made (Vulkan, a video engine) or that is " \
	       "charged already: nothing new is made. NVML counts it for its maker, then for " \
	       "who holds it still; in a tenant's process that is charged as unnamed") \
	REASON(GRAPHICS, \
	       "shares what a graphics interface made and holds: CUDA makes none of that " \
	       "memory") \
	REASON(AFTER_REFUSED, "works on what only a refused call can make") \
	REASON(CHECKPOINT, \
	       "moves what a process holds off the GPU and back; it stays charged meanwhile") \
	REASON(TOOLS, "for debuggers, profilers and logs: none of the program's memory or work") \
	REASON(PRIVATE, \
	       "tables without names, without which no CUDA runtime starts; memory made " \
	       "through them shows when the daemon compares with NVML") \
	REASON(UNDOCUMENTED, "in no header of NVIDIA's: no program is built against it")

#define DRIVER_PASSED(PASSED) \
	PASSED(ASKS, cuArray3DGetDescriptor) PASSED(ASKS, cuArrayGetDescriptor) \
	PASSED(ASKS, cuArrayGetMemoryRequirements) PASSED(ASKS, cuArrayGetPlane) \
	PASSED(ASKS, cuArrayGetSparseProperties) PASSED(ASKS, cuCtxFromGreenCtx) \
	PASSED(ASKS, cuCtxGetApiVersion) PASSED(ASKS, cuCtxGetCacheConfig) \
	PASSED(ASKS, cuCtxGetCurrent) PASSED(ASKS, cuCtxGetDevResource) \
	PASSED(ASKS, cuCtxGetDevice) PASSED(ASKS, cuCtxGetExecAffinity) \
	PASSED(ASKS, cuCtxGetFlags) PASSED(ASKS, cuCtxGetId) PASSED(ASKS, cuCtxGetLimit) \
	PASSED(ASKS, cuCtxGetSharedMemConfig) PASSED(ASKS, cuCtxGetStreamPriorityRange) \
	PASSED(ASKS, cuDeviceCanAccessPeer) PASSED(ASKS, cuDeviceComputeCapability) \
	PASSED(ASKS, cuDeviceGet) PASSED(ASKS, cuDeviceGetAttribute) \
	PASSED(ASKS, cuDeviceGetByPCIBusId) PASSED(ASKS, cuDeviceGetCliqueCount) \
	PASSED(ASKS, cuDeviceGetCliqueInfo) PASSED(ASKS, cuDeviceGetCount) \
	PASSED(ASKS, cuDeviceGetDefaultMemPool) PASSED(ASKS, cuDeviceGetDevResource) \
	PASSED(ASKS, cuDeviceGetExecAffinitySupport) PASSED(ASKS, cuDeviceGetFabricClusterUuid) \
	PASSED(ASKS, cuDeviceGetGraphMemAttribute) \
	PASSED(ASKS, cuDeviceGetHostAtomicCapabilities) PASSED(ASKS, cuDeviceGetLuid) \
	PASSED(ASKS, cuDeviceGetMemPool) PASSED(ASKS, cuDeviceGetName) \
	PASSED(ASKS, cuDeviceGetNvSciSyncAttributes) \
	PASSED(ASKS, cuDeviceGetP2PAtomicCapabilities) PASSED(ASKS, cuDeviceGetP2PAttribute) \
	PASSED(ASKS, cuDeviceGetPCIBusId) PASSED(ASKS, cuDeviceGetProperties) \
	PASSED(ASKS, cuDeviceGetTexture1DLinearMaxWidth) PASSED(ASKS, cuDeviceGetUuid) \
	PASSED(ASKS, cuDevicePrimaryCtxGetState) PASSED(ASKS, cuDriverGetVersion) \
	PASSED(ASKS, cuEventElapsedTime) PASSED(ASKS, cuEventQuery) \
	PASSED(ASKS, cuFuncGetAttribute) PASSED(ASKS, cuFuncGetModule) \
	PASSED(ASKS, cuFuncGetName) PASSED(ASKS, cuFuncGetParamCount) \
	PASSED(ASKS, cuFuncGetParamInfo) PASSED(ASKS, cuFuncIsLoaded) \
	PASSED(ASKS, cuGLGetDevices) PASSED(ASKS, cuGetErrorName) PASSED(ASKS, cuGetErrorString) \
	PASSED(ASKS, cuGreenCtxGetDevResource) PASSED(ASKS, cuGreenCtxGetId) \
	PASSED(ASKS, cuKernelGetAttribute) PASSED(ASKS, cuKernelGetLibrary) \
	PASSED(ASKS, cuKernelGetName) PASSED(ASKS, cuKernelGetParamCount) \
	PASSED(ASKS, cuKernelGetParamInfo) PASSED(ASKS, cuLibraryEnumerateKernels) \
	PASSED(ASKS, cuLibraryGetKernelCount) PASSED(ASKS, cuMemGetAccess) \
	PASSED(ASKS, cuMemGetAllocationGranularity) \
	PASSED(ASKS, cuMemGetAllocationPropertiesFromHandle) \
	PASSED(ASKS, cuMemGetDefaultMemPool) PASSED(ASKS, cuMemGetLocationInfo) \
	PASSED(ASKS, cuMemGetMemPool) PASSED(ASKS, cuMemHostGetDevicePointer) \
	PASSED(ASKS, cuMemHostGetFlags) PASSED(ASKS, cuMemPoolGetAccess) \
	PASSED(ASKS, cuMemPoolGetAttribute) PASSED(ASKS, cuMemRangeGetAttribute) \
	PASSED(ASKS, cuMemRangeGetAttributes) PASSED(ASKS, cuMipmappedArrayGetLevel) \
	PASSED(ASKS, cuMipmappedArrayGetMemoryRequirements) \
	PASSED(ASKS, cuMipmappedArrayGetSparseProperties) \
	PASSED(ASKS, cuModuleEnumerateFunctions) PASSED(ASKS, cuModuleGetFunctionCount) \
	PASSED(ASKS, cuModuleGetLoadingMode) PASSED(ASKS, cuMulticastGetGranularity) \
	PASSED(ASKS, cuOccupancyAvailableDynamicSMemPerBlock) \
	PASSED(ASKS, cuOccupancyMaxActiveBlocksPerMultiprocessor) \
	PASSED(ASKS, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
	PASSED(ASKS, cuOccupancyMaxActiveClusters) \
	PASSED(ASKS, cuOccupancyMaxPotentialBlockSize) \
	PASSED(ASKS, cuOccupancyMaxPotentialBlockSizeWithFlags) \
	PASSED(ASKS, cuOccupancyMaxPotentialClusterSize) \
	PASSED(ASKS, cuStreamGetAttribute) \
	PASSED(ASKS, cuStreamGetCaptureInfo) PASSED(ASKS, cuStreamGetCtx) \
	PASSED(ASKS, cuStreamGetDevResource) PASSED(ASKS, cuStreamGetDevice) \
	PASSED(ASKS, cuStreamGetFlags) PASSED(ASKS, cuStreamGetGreenCtx) \
	PASSED(ASKS, cuStreamGetId) PASSED(ASKS, cuStreamGetPriority) \
	PASSED(ASKS, cuStreamIsCapturing) PASSED(ASKS, cuStreamQuery) \
	PASSED(ASKS, cuVDPAUGetDevice) \
	PASSED(SETTINGS, cuCtxPopCurrent) PASSED(SETTINGS, cuCtxPushCurrent) \
	PASSED(SETTINGS, cuCtxResetPersistingL2Cache) PASSED(SETTINGS, cuCtxSetCacheConfig) \
	PASSED(SETTINGS, cuCtxSetCurrent) PASSED(SETTINGS, cuCtxSetFlags) \
	PASSED(SETTINGS, cuCtxSetSharedMemConfig) PASSED(SETTINGS, cuDevResourceGenerateDesc) \
	PASSED(SETTINGS, cuDevSmResourceSplit) PASSED(SETTINGS, cuDevSmResourceSplitByCount) \
	PASSED(SETTINGS, cuDevicePrimaryCtxSetFlags) \
	PASSED(SETTINGS, cuDeviceRegisterAsyncNotification) \
	PASSED(SETTINGS, cuDeviceSetGraphMemAttribute) PASSED(SETTINGS, cuDeviceSetMemPool) \
	PASSED(SETTINGS, cuDeviceUnregisterAsyncNotification) \
	PASSED(SETTINGS, cuFlushGPUDirectRDMAWrites) PASSED(SETTINGS, cuFuncSetBlockShape) \
	PASSED(SETTINGS, cuFuncSetCacheConfig) PASSED(SETTINGS, cuFuncSetSharedMemConfig) \
	PASSED(SETTINGS, cuFuncSetSharedSize) PASSED(SETTINGS, cuKernelSetCacheConfig) \
	PASSED(SETTINGS, cuMemPoolSetAccess) PASSED(SETTINGS, cuMemPoolSetAttribute) \
	PASSED(SETTINGS, cuMemSetMemPool) PASSED(SETTINGS, cuParamSetSize) \
	PASSED(SETTINGS, cuParamSetTexRef) PASSED(SETTINGS, cuParamSetf) \
	PASSED(SETTINGS, cuParamSeti) PASSED(SETTINGS, cuParamSetv) \
	PASSED(SETTINGS, cuStreamCopyAttributes) \
	PASSED(SETTINGS, cuStreamSetAttribute) \
	PASSED(SETTINGS, cuThreadExchangeStreamCaptureMode) PASSED(SETTINGS, cuUserObjectCreate) \
	PASSED(SETTINGS, cuUserObjectRelease) PASSED(SETTINGS, cuUserObjectRetain) \
	PASSED(STREAMS, cuEventCreate) PASSED(STREAMS, cuEventDestroy) \
	PASSED(STREAMS, cuGreenCtxStreamCreate) PASSED(STREAMS, cuIpcGetEventHandle) \
	PASSED(STREAMS, cuIpcOpenEventHandle) PASSED(STREAMS, cuStreamCreate) \
	PASSED(STREAMS, cuStreamCreateWithPriority) \
	PASSED(ORDERS, cuCtxRecordEvent) \
	PASSED(ORDERS, cuCtxWaitEvent) PASSED(ORDERS, cuDestroyExternalSemaphore) \
	PASSED(ORDERS, cuEventRecord) PASSED(ORDERS, cuEventRecordWithFlags) \
	PASSED(ORDERS, cuGreenCtxRecordEvent) \
	PASSED(ORDERS, cuGreenCtxWaitEvent) PASSED(ORDERS, cuImportExternalSemaphore) \
	PASSED(ORDERS, cuSignalExternalSemaphoresAsync) \
	PASSED(ORDERS, cuStreamWaitEvent) \
	PASSED(ORDERS, cuWaitExternalSemaphoresAsync) \
	PASSED(PROCESSOR, cuLaunchHostFunc) PASSED(PROCESSOR, cuStreamAddCallback) \
	PASSED(MANAGED, cuMemAdvise) PASSED(MANAGED, cuStreamAttachMemAsync) \
	PASSED(VIEWS, cuModuleGetSurfRef) PASSED(VIEWS, cuModuleGetTexRef) \
	PASSED(VIEWS, cuSurfObjectCreate) PASSED(VIEWS, cuSurfObjectDestroy) \
	PASSED(VIEWS, cuSurfObjectGetResourceDesc) PASSED(VIEWS, cuSurfRefGetArray) \
	PASSED(VIEWS, cuSurfRefSetArray) PASSED(VIEWS, cuTensorMapEncodeIm2col) \
	PASSED(VIEWS, cuTensorMapEncodeIm2colWide) PASSED(VIEWS, cuTensorMapEncodeTiled) \
	PASSED(VIEWS, cuTensorMapReplaceAddress) PASSED(VIEWS, cuTensorMapSetAllocationClass) \
	PASSED(VIEWS, cuTexObjectCreate) PASSED(VIEWS, cuTexObjectDestroy) \
	PASSED(VIEWS, cuTexObjectGetResourceDesc) PASSED(VIEWS, cuTexObjectGetResourceViewDesc) \
	PASSED(VIEWS, cuTexObjectGetTextureDesc) PASSED(VIEWS, cuTexRefCreate) \
	PASSED(VIEWS, cuTexRefDestroy) PASSED(VIEWS, cuTexRefGetAddress) \
	PASSED(VIEWS, cuTexRefGetAddressMode) PASSED(VIEWS, cuTexRefGetArray) \
	PASSED(VIEWS, cuTexRefGetBorderColor) PASSED(VIEWS, cuTexRefGetFilterMode) \
	PASSED(VIEWS, cuTexRefGetFlags) PASSED(VIEWS, cuTexRefGetFormat) \
	PASSED(VIEWS, cuTexRefGetMaxAnisotropy) PASSED(VIEWS, cuTexRefGetMipmapFilterMode) \
	PASSED(VIEWS, cuTexRefGetMipmapLevelBias) PASSED(VIEWS, cuTexRefGetMipmapLevelClamp) \
	PASSED(VIEWS, cuTexRefGetMipmappedArray) PASSED(VIEWS, cuTexRefSetAddress) \
	PASSED(VIEWS, cuTexRefSetAddress2D) PASSED(VIEWS, cuTexRefSetAddressMode) \
	PASSED(VIEWS, cuTexRefSetArray) PASSED(VIEWS, cuTexRefSetBorderColor) \
	PASSED(VIEWS, cuTexRefSetFilterMode) PASSED(VIEWS, cuTexRefSetFlags) \
	PASSED(VIEWS, cuTexRefSetFormat) PASSED(VIEWS, cuTexRefSetMaxAnisotropy) \
	PASSED(VIEWS, cuTexRefSetMipmapFilterMode) PASSED(VIEWS, cuTexRefSetMipmapLevelBias) \
	PASSED(VIEWS, cuTexRefSetMipmapLevelClamp) PASSED(VIEWS, cuTexRefSetMipmappedArray) \
	PASSED(CONTEXT, cuFuncSetAttribute) PASSED(CONTEXT, cuKernelGetFunction) \
	PASSED(CONTEXT, cuKernelSetAttribute) \
	PASSED(CONTEXT, cuLibraryGetKernel) PASSED(CONTEXT, cuLibraryGetManaged) \
	PASSED(CONTEXT, cuLibraryGetUnifiedFunction) \
	PASSED(CONTEXT, cuModuleGetFunction) \
	PASSED(LINKS, cuLinkAddData) PASSED(LINKS, cuLinkAddFile) PASSED(LINKS, cuLinkComplete) \
	PASSED(LINKS, cuLinkCreate) PASSED(LINKS, cuLinkDestroy) \
	PASSED(GRAPHS, cuGraphAddBatchMemOpNode) PASSED(GRAPHS, cuGraphAddChildGraphNode) \
	PASSED(GRAPHS, cuGraphAddDependencies) PASSED(GRAPHS, cuGraphAddEmptyNode) \
	PASSED(GRAPHS, cuGraphAddEventRecordNode) PASSED(GRAPHS, cuGraphAddEventWaitNode) \
	PASSED(GRAPHS, cuGraphAddExternalSemaphoresSignalNode) \
	PASSED(GRAPHS, cuGraphAddExternalSemaphoresWaitNode) PASSED(GRAPHS, cuGraphAddHostNode) \
	PASSED(GRAPHS, cuGraphAddKernelNode) PASSED(GRAPHS, cuGraphAddMemAllocNode) \
	PASSED(GRAPHS, cuGraphAddMemFreeNode) \
	PASSED(GRAPHS, cuGraphAddNode) \
	PASSED(GRAPHS, cuGraphBatchMemOpNodeGetParams) \
	PASSED(GRAPHS, cuGraphBatchMemOpNodeSetParams) \
	PASSED(GRAPHS, cuGraphChildGraphNodeGetGraph) PASSED(GRAPHS, cuGraphClone) \
	PASSED(GRAPHS, cuGraphConditionalHandleCreate) PASSED(GRAPHS, cuGraphCreate) \
	PASSED(GRAPHS, cuGraphDebugDotPrint) PASSED(GRAPHS, cuGraphDestroy) \
	PASSED(GRAPHS, cuGraphDestroyNode) PASSED(GRAPHS, cuGraphEventRecordNodeGetEvent) \
	PASSED(GRAPHS, cuGraphEventRecordNodeSetEvent) \
	PASSED(GRAPHS, cuGraphEventWaitNodeGetEvent) \
	PASSED(GRAPHS, cuGraphEventWaitNodeSetEvent) \
	PASSED(GRAPHS, cuGraphExecBatchMemOpNodeSetParams) \
	PASSED(GRAPHS, cuGraphExecChildGraphNodeSetParams) \
	PASSED(GRAPHS, cuGraphExecEventRecordNodeSetEvent) \
	PASSED(GRAPHS, cuGraphExecEventWaitNodeSetEvent) \
	PASSED(GRAPHS, cuGraphExecExternalSemaphoresSignalNodeSetParams) \
	PASSED(GRAPHS, cuGraphExecExternalSemaphoresWaitNodeSetParams) \
	PASSED(GRAPHS, cuGraphExecGetFlags) PASSED(GRAPHS, cuGraphExecGetId) \
	PASSED(GRAPHS, cuGraphExecHostNodeSetParams) \
	PASSED(GRAPHS, cuGraphExecKernelNodeSetParams) \
	PASSED(GRAPHS, cuGraphExecNodeSetParams) \
	PASSED(GRAPHS, cuGraphExecUpdate) \
	PASSED(GRAPHS, cuGraphExternalSemaphoresSignalNodeGetParams) \
	PASSED(GRAPHS, cuGraphExternalSemaphoresSignalNodeSetParams) \
	PASSED(GRAPHS, cuGraphExternalSemaphoresWaitNodeGetParams) \
	PASSED(GRAPHS, cuGraphExternalSemaphoresWaitNodeSetParams) \
	PASSED(GRAPHS, cuGraphGetEdges) PASSED(GRAPHS, cuGraphGetId) \
	PASSED(GRAPHS, cuGraphGetNodes) PASSED(GRAPHS, cuGraphGetRootNodes) \
	PASSED(GRAPHS, cuGraphHostNodeGetParams) PASSED(GRAPHS, cuGraphHostNodeSetParams) \
	PASSED(GRAPHS, cuGraphKernelNodeCopyAttributes) \
	PASSED(GRAPHS, cuGraphKernelNodeGetAttribute) PASSED(GRAPHS, cuGraphKernelNodeGetParams) \
	PASSED(GRAPHS, cuGraphKernelNodeSetAttribute) PASSED(GRAPHS, cuGraphKernelNodeSetParams) \
	PASSED(GRAPHS, cuGraphMemAllocNodeGetParams) PASSED(GRAPHS, cuGraphMemFreeNodeGetParams) \
	PASSED(GRAPHS, cuGraphMemcpyNodeGetParams) \
	PASSED(GRAPHS, cuGraphMemsetNodeGetParams) \
	PASSED(GRAPHS, cuGraphNodeFindInClone) PASSED(GRAPHS, cuGraphNodeGetContainingGraph) \
	PASSED(GRAPHS, cuGraphNodeGetDependencies) PASSED(GRAPHS, cuGraphNodeGetDependentNodes) \
	PASSED(GRAPHS, cuGraphNodeGetEnabled) PASSED(GRAPHS, cuGraphNodeGetLocalId) \
	PASSED(GRAPHS, cuGraphNodeGetParams) PASSED(GRAPHS, cuGraphNodeGetToolsId) \
	PASSED(GRAPHS, cuGraphNodeGetType) PASSED(GRAPHS, cuGraphNodeSetEnabled) \
	PASSED(GRAPHS, cuGraphNodeSetParams) PASSED(GRAPHS, cuGraphReleaseUserObject) \
	PASSED(GRAPHS, cuGraphRemoveDependencies) PASSED(GRAPHS, cuGraphRetainUserObject) \
	PASSED(GRAPHS, cuStreamUpdateCaptureDependencies) \
	PASSED(ADDRESSES, cuMemAddressFree) PASSED(ADDRESSES, cuMemAddressReserve) \
	PASSED(ADDRESSES, cuMemSetAccess) \
	PASSED(NAMES, cuMemPoolExportPointer) \
	PASSED(MULTICAST, cuMulticastAddDevice) \
	PASSED(EXTERNAL, cuDestroyExternalMemory) \
	PASSED(EXTERNAL, cuExternalMemoryGetMappedBuffer) \
	PASSED(EXTERNAL, cuExternalMemoryGetMappedMipmappedArray) \
	PASSED(EXTERNAL, cuImportExternalMemory) \
	PASSED(GRAPHICS, cuEGLStreamConsumerAcquireFrame) \
	PASSED(GRAPHICS, cuEGLStreamConsumerConnect) \
	PASSED(GRAPHICS, cuEGLStreamConsumerConnectWithFlags) \
	PASSED(GRAPHICS, cuEGLStreamConsumerDisconnect) \
	PASSED(GRAPHICS, cuEGLStreamConsumerReleaseFrame) \
	PASSED(GRAPHICS, cuEGLStreamProducerConnect) \
	PASSED(GRAPHICS, cuEGLStreamProducerDisconnect) \
	PASSED(GRAPHICS, cuEGLStreamProducerPresentFrame) \
	PASSED(GRAPHICS, cuEGLStreamProducerReturnFrame) \
	PASSED(GRAPHICS, cuEventCreateFromEGLSync) PASSED(GRAPHICS, cuGLInit) \
	PASSED(GRAPHICS, cuGLMapBufferObject) PASSED(GRAPHICS, cuGLMapBufferObjectAsync) \
	PASSED(GRAPHICS, cuGLRegisterBufferObject) PASSED(GRAPHICS, cuGLSetBufferObjectMapFlags) \
	PASSED(GRAPHICS, cuGLUnmapBufferObject) PASSED(GRAPHICS, cuGLUnmapBufferObjectAsync) \
	PASSED(GRAPHICS, cuGLUnregisterBufferObject) \
	PASSED(GRAPHICS, cuGraphicsEGLRegisterImage) \
	PASSED(GRAPHICS, cuGraphicsGLRegisterBuffer) PASSED(GRAPHICS, cuGraphicsGLRegisterImage) \
	PASSED(GRAPHICS, cuGraphicsMapResources) \
	PASSED(GRAPHICS, cuGraphicsResourceGetMappedEglFrame) \
	PASSED(GRAPHICS, cuGraphicsResourceGetMappedMipmappedArray) \
	PASSED(GRAPHICS, cuGraphicsResourceGetMappedPointer) \
	PASSED(GRAPHICS, cuGraphicsResourceSetMapFlags) \
	PASSED(GRAPHICS, cuGraphicsSubResourceGetMappedArray) \
	PASSED(GRAPHICS, cuGraphicsUnmapResources) \
	PASSED(GRAPHICS, cuGraphicsUnregisterResource) \
	PASSED(GRAPHICS, cuGraphicsVDPAURegisterOutputSurface) \
	PASSED(GRAPHICS, cuGraphicsVDPAURegisterVideoSurface) \
	PASSED(AFTER_REFUSED, cuLogicalEndpointAddDevice) \
	PASSED(AFTER_REFUSED, cuLogicalEndpointBindAddr) \
	PASSED(AFTER_REFUSED, cuLogicalEndpointBindMem) \
	PASSED(AFTER_REFUSED, cuLogicalEndpointDestroy) \
	PASSED(AFTER_REFUSED, cuLogicalEndpointExport) \
	PASSED(AFTER_REFUSED, cuLogicalEndpointGetLimits) \
	PASSED(AFTER_REFUSED, cuLogicalEndpointIdRelease) \
	PASSED(AFTER_REFUSED, cuLogicalEndpointIdReserve) \
	PASSED(AFTER_REFUSED, cuLogicalEndpointQuery) \
	PASSED(AFTER_REFUSED, cuLogicalEndpointUnbind) \
	PASSED(AFTER_REFUSED, cuStreamEndCaptureToCig) \
	PASSED(CHECKPOINT, cuCheckpointOperationComplete) \
	PASSED(CHECKPOINT, cuCheckpointProcessCheckpoint) \
	PASSED(CHECKPOINT, cuCheckpointProcessGetRestoreThreadId) \
	PASSED(CHECKPOINT, cuCheckpointProcessGetState) \
	PASSED(CHECKPOINT, cuCheckpointProcessLock) \
	PASSED(CHECKPOINT, cuCheckpointProcessRestore) \
	PASSED(CHECKPOINT, cuCheckpointProcessUnlock) \
	PASSED(TOOLS, cuCoredumpDeregisterCompleteCallback) \
	PASSED(TOOLS, cuCoredumpDeregisterStartCallback) PASSED(TOOLS, cuCoredumpGetAttribute) \
	PASSED(TOOLS, cuCoredumpGetAttributeGlobal) \
	PASSED(TOOLS, cuCoredumpRegisterCompleteCallback) \
	PASSED(TOOLS, cuCoredumpRegisterStartCallback) PASSED(TOOLS, cuCoredumpSetAttribute) \
	PASSED(TOOLS, cuCoredumpSetAttributeGlobal) PASSED(TOOLS, cuLogsCurrent) \
	PASSED(TOOLS, cuLogsDumpToFile) PASSED(TOOLS, cuLogsDumpToMemory) \
	PASSED(TOOLS, cuLogsRegisterCallback) PASSED(TOOLS, cuLogsUnregisterCallback) \
	PASSED(TOOLS, cuProfilerInitialize) PASSED(TOOLS, cuProfilerStart) \
	PASSED(TOOLS, cuProfilerStop) PASSED(TOOLS, cudbgApiAttach) \
	PASSED(TOOLS, cudbgApiClientPid) PASSED(TOOLS, cudbgApiClientRevision) \
	PASSED(TOOLS, cudbgApiDetach) PASSED(TOOLS, cudbgApiInit) \
	PASSED(TOOLS, cudbgAttachHandlerAvailable) PASSED(TOOLS, cudbgDebuggerCapabilities) \
	PASSED(TOOLS, cudbgDebuggerInitialized) PASSED(TOOLS, cudbgDetachSuspendedDevicesMask) \
	PASSED(TOOLS, cudbgEnableIntegratedMemcheck) PASSED(TOOLS, cudbgEnableLaunchBlocking) \
	PASSED(TOOLS, cudbgEnablePreemptionDebugging) PASSED(TOOLS, cudbgGetAPI) \
	PASSED(TOOLS, cudbgGetAPIVersion) PASSED(TOOLS, cudbgInjectionPath) \
	PASSED(TOOLS, cudbgIpcFlag) PASSED(TOOLS, cudbgMain) \
	PASSED(TOOLS, cudbgReportDriverApiError) PASSED(TOOLS, cudbgReportDriverApiErrorFlags) \
	PASSED(TOOLS, cudbgReportDriverInternalError) \
	PASSED(TOOLS, cudbgReportedDriverApiErrorCode) \
	PASSED(TOOLS, cudbgReportedDriverApiErrorFuncNameAddr) \
	PASSED(TOOLS, cudbgReportedDriverApiErrorFuncNameSize) \
	PASSED(TOOLS, cudbgReportedDriverApiErrorNameAddr) \
	PASSED(TOOLS, cudbgReportedDriverApiErrorNameSize) \
	PASSED(TOOLS, cudbgReportedDriverApiErrorSource) \
	PASSED(TOOLS, cudbgReportedDriverApiErrorStringAddr) \
	PASSED(TOOLS, cudbgReportedDriverApiErrorStringSize) \
	PASSED(TOOLS, cudbgReportedDriverInternalErrorCode) \
	PASSED(TOOLS, cudbgResumeForAttachDetach) PASSED(TOOLS, cudbgRpcEnabled) \
	PASSED(TOOLS, cudbgSessionId) PASSED(TOOLS, cudbgUseExternalDebugger) \
	PASSED(PRIVATE, cuGetExportTable) \
	PASSED(UNDOCUMENTED, cuEGLApiInit) PASSED(UNDOCUMENTED, cuMemGetAttribute)
/* clang-format on */
