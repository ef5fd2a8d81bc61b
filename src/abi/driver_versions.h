/*
 * SINCE(version, symbol): cuGetProcAddress returns `symbol` for its base name from this CUDA version on. The version is written
 * as in CUDA_VERSION (1000 * major + 10 * minor).
 *
 * The driver's rule: of a name's forms (_vN), it returns the newest that is not newer than the requested version. If the
 * per-thread stream is requested and the name has twins (_ptsz or _ptds), only the twins count. The table comes from the
 * answers of driver 580.159.04 (CUDA 13.0) to every name that it exports, every version and all flags. It agrees with the names
 * in cudaTypedefs.h (PFN_<base>_v<version>), and CI compares it with those of CUDA 11.8 to 13.5. A newer driver answers the
 * same, because the ABI of a released version stays.
 */
#pragma once

#define DRIVER_VERSIONS_NEWEST 13000 /* the table lacks functions that later versions add */

/* clang-format off */
#define DRIVER_VERSIONS(SINCE) \
	SINCE(2000, cuArray3DCreate) SINCE(2000, cuArray3DGetDescriptor) \
	SINCE(2000, cuArrayCreate) SINCE(2000, cuArrayDestroy) \
	SINCE(2000, cuArrayGetDescriptor) SINCE(2000, cuCtxAttach) SINCE(2000, cuCtxCreate) \
	SINCE(2000, cuCtxDestroy) SINCE(2000, cuCtxDetach) SINCE(2000, cuCtxGetDevice) \
	SINCE(2000, cuCtxPopCurrent) SINCE(2000, cuCtxPushCurrent) \
	SINCE(2000, cuCtxSynchronize) SINCE(2000, cuDeviceComputeCapability) \
	SINCE(2000, cuDeviceGet) SINCE(2000, cuDeviceGetAttribute) \
	SINCE(2000, cuDeviceGetCount) SINCE(2000, cuDeviceGetName) \
	SINCE(2000, cuDeviceGetProperties) SINCE(2000, cuDeviceTotalMem) \
	SINCE(2000, cuEventCreate) SINCE(2000, cuEventDestroy) SINCE(2000, cuEventElapsedTime) \
	SINCE(2000, cuEventQuery) SINCE(2000, cuEventRecord) SINCE(2000, cuEventSynchronize) \
	SINCE(2000, cuFuncSetBlockShape) SINCE(2000, cuFuncSetSharedSize) \
	SINCE(2000, cuGLCtxCreate) SINCE(2000, cuGLInit) SINCE(2000, cuGLMapBufferObject) \
	SINCE(2000, cuGLRegisterBufferObject) SINCE(2000, cuGLUnmapBufferObject) \
	SINCE(2000, cuGLUnregisterBufferObject) SINCE(2000, cuInit) SINCE(2000, cuLaunch) \
	SINCE(2000, cuLaunchGrid) SINCE(2000, cuLaunchGridAsync) SINCE(2000, cuMemAlloc) \
	SINCE(2000, cuMemAllocHost) SINCE(2000, cuMemAllocPitch) SINCE(2000, cuMemFree) \
	SINCE(2000, cuMemFreeHost) SINCE(2000, cuMemGetAddressRange) SINCE(2000, cuMemGetInfo) \
	SINCE(2000, cuMemcpy2D) SINCE(2000, cuMemcpy2DAsync) SINCE(2000, cuMemcpy2DUnaligned) \
	SINCE(2000, cuMemcpy3D) SINCE(2000, cuMemcpy3DAsync) SINCE(2000, cuMemcpyAtoA) \
	SINCE(2000, cuMemcpyAtoD) SINCE(2000, cuMemcpyAtoH) SINCE(2000, cuMemcpyAtoHAsync) \
	SINCE(2000, cuMemcpyDtoA) SINCE(2000, cuMemcpyDtoD) SINCE(2000, cuMemcpyDtoH) \
	SINCE(2000, cuMemcpyDtoHAsync) SINCE(2000, cuMemcpyHtoA) SINCE(2000, cuMemcpyHtoAAsync) \
	SINCE(2000, cuMemcpyHtoD) SINCE(2000, cuMemcpyHtoDAsync) SINCE(2000, cuMemsetD16) \
	SINCE(2000, cuMemsetD2D16) SINCE(2000, cuMemsetD2D32) SINCE(2000, cuMemsetD2D8) \
	SINCE(2000, cuMemsetD32) SINCE(2000, cuMemsetD8) SINCE(2000, cuModuleGetFunction) \
	SINCE(2000, cuModuleGetGlobal) SINCE(2000, cuModuleGetTexRef) SINCE(2000, cuModuleLoad) \
	SINCE(2000, cuModuleLoadData) SINCE(2000, cuModuleLoadFatBinary) \
	SINCE(2000, cuModuleUnload) SINCE(2000, cuParamSetSize) SINCE(2000, cuParamSetTexRef) \
	SINCE(2000, cuParamSetf) SINCE(2000, cuParamSeti) SINCE(2000, cuParamSetv) \
	SINCE(2000, cuStreamCreate) SINCE(2000, cuStreamDestroy) SINCE(2000, cuStreamQuery) \
	SINCE(2000, cuStreamSynchronize) SINCE(2000, cuTexRefCreate) \
	SINCE(2000, cuTexRefDestroy) SINCE(2000, cuTexRefGetAddress) \
	SINCE(2000, cuTexRefGetAddressMode) SINCE(2000, cuTexRefGetArray) \
	SINCE(2000, cuTexRefGetFilterMode) SINCE(2000, cuTexRefGetFlags) \
	SINCE(2000, cuTexRefGetFormat) SINCE(2000, cuTexRefSetAddress) \
	SINCE(2000, cuTexRefSetAddressMode) SINCE(2000, cuTexRefSetArray) \
	SINCE(2000, cuTexRefSetFilterMode) SINCE(2000, cuTexRefSetFlags) \
	SINCE(2000, cuTexRefSetFormat) SINCE(2010, cuModuleLoadDataEx) \
	SINCE(2020, cuDriverGetVersion) SINCE(2020, cuFuncGetAttribute) \
	SINCE(2020, cuMemHostAlloc) SINCE(2020, cuMemHostGetDevicePointer) \
	SINCE(2020, cuTexRefSetAddress2D) SINCE(2030, cuGLMapBufferObjectAsync) \
	SINCE(2030, cuGLSetBufferObjectMapFlags) SINCE(2030, cuGLUnmapBufferObjectAsync) \
	SINCE(2030, cuMemHostGetFlags) SINCE(3000, cuFuncSetCacheConfig) \
	SINCE(3000, cuGetExportTable) SINCE(3000, cuGraphicsGLRegisterBuffer) \
	SINCE(3000, cuGraphicsGLRegisterImage) SINCE(3000, cuGraphicsMapResources) \
	SINCE(3000, cuGraphicsResourceGetMappedPointer) \
	SINCE(3000, cuGraphicsResourceSetMapFlags) \
	SINCE(3000, cuGraphicsSubResourceGetMappedArray) SINCE(3000, cuGraphicsUnmapResources) \
	SINCE(3000, cuGraphicsUnregisterResource) SINCE(3000, cuMemcpyDtoDAsync) \
	SINCE(3000, cuModuleGetSurfRef) SINCE(3000, cuSurfRefGetArray) \
	SINCE(3000, cuSurfRefSetArray) SINCE(3010, cuCtxGetLimit) SINCE(3010, cuCtxSetLimit) \
	SINCE(3010, cuGraphicsVDPAURegisterOutputSurface) \
	SINCE(3010, cuGraphicsVDPAURegisterVideoSurface) SINCE(3010, cuVDPAUCtxCreate) \
	SINCE(3010, cuVDPAUGetDevice) SINCE(3020, cuArray3DCreate_v2) \
	SINCE(3020, cuArray3DGetDescriptor_v2) SINCE(3020, cuArrayCreate_v2) \
	SINCE(3020, cuArrayGetDescriptor_v2) SINCE(3020, cuCtxCreate_v2) \
	SINCE(3020, cuCtxGetApiVersion) SINCE(3020, cuCtxGetCacheConfig) \
	SINCE(3020, cuCtxSetCacheConfig) SINCE(3020, cuDeviceTotalMem_v2) \
	SINCE(3020, cuGLCtxCreate_v2) SINCE(3020, cuGLMapBufferObjectAsync_v2) \
	SINCE(3020, cuGLMapBufferObject_v2) SINCE(3020, cuGraphicsResourceGetMappedPointer_v2) \
	SINCE(3020, cuMemAllocHost_v2) SINCE(3020, cuMemAllocPitch_v2) \
	SINCE(3020, cuMemAlloc_v2) SINCE(3020, cuMemFree_v2) \
	SINCE(3020, cuMemGetAddressRange_v2) SINCE(3020, cuMemGetInfo_v2) \
	SINCE(3020, cuMemHostGetDevicePointer_v2) SINCE(3020, cuMemcpy2DAsync_v2) \
	SINCE(3020, cuMemcpy2DUnaligned_v2) SINCE(3020, cuMemcpy2D_v2) \
	SINCE(3020, cuMemcpy3DAsync_v2) SINCE(3020, cuMemcpy3D_v2) SINCE(3020, cuMemcpyAtoA_v2) \
	SINCE(3020, cuMemcpyAtoD_v2) SINCE(3020, cuMemcpyAtoHAsync_v2) \
	SINCE(3020, cuMemcpyAtoH_v2) SINCE(3020, cuMemcpyDtoA_v2) \
	SINCE(3020, cuMemcpyDtoDAsync_v2) SINCE(3020, cuMemcpyDtoD_v2) \
	SINCE(3020, cuMemcpyDtoHAsync_v2) SINCE(3020, cuMemcpyDtoH_v2) \
	SINCE(3020, cuMemcpyHtoAAsync_v2) SINCE(3020, cuMemcpyHtoA_v2) \
	SINCE(3020, cuMemcpyHtoDAsync_v2) SINCE(3020, cuMemcpyHtoD_v2) \
	SINCE(3020, cuMemsetD16Async) SINCE(3020, cuMemsetD16_v2) \
	SINCE(3020, cuMemsetD2D16Async) SINCE(3020, cuMemsetD2D16_v2) \
	SINCE(3020, cuMemsetD2D32Async) SINCE(3020, cuMemsetD2D32_v2) \
	SINCE(3020, cuMemsetD2D8Async) SINCE(3020, cuMemsetD2D8_v2) \
	SINCE(3020, cuMemsetD32Async) SINCE(3020, cuMemsetD32_v2) SINCE(3020, cuMemsetD8Async) \
	SINCE(3020, cuMemsetD8_v2) SINCE(3020, cuModuleGetGlobal_v2) \
	SINCE(3020, cuStreamWaitEvent) SINCE(3020, cuTexRefGetAddress_v2) \
	SINCE(3020, cuTexRefSetAddress2D_v2) SINCE(3020, cuTexRefSetAddress_v2) \
	SINCE(3020, cuVDPAUCtxCreate_v2) SINCE(4000, cuCtxDestroy_v2) \
	SINCE(4000, cuCtxDisablePeerAccess) SINCE(4000, cuCtxEnablePeerAccess) \
	SINCE(4000, cuCtxGetCurrent) SINCE(4000, cuCtxPopCurrent_v2) \
	SINCE(4000, cuCtxPushCurrent_v2) SINCE(4000, cuCtxSetCurrent) \
	SINCE(4000, cuDeviceCanAccessPeer) SINCE(4000, cuEventDestroy_v2) \
	SINCE(4000, cuLaunchKernel) SINCE(4000, cuMemHostRegister) \
	SINCE(4000, cuMemHostUnregister) SINCE(4000, cuMemcpy) SINCE(4000, cuMemcpy3DPeer) \
	SINCE(4000, cuMemcpy3DPeerAsync) SINCE(4000, cuMemcpyAsync) SINCE(4000, cuMemcpyPeer) \
	SINCE(4000, cuMemcpyPeerAsync) SINCE(4000, cuPointerGetAttribute) \
	SINCE(4000, cuProfilerInitialize) SINCE(4000, cuProfilerStart) \
	SINCE(4000, cuProfilerStop) SINCE(4000, cuStreamDestroy_v2) \
	SINCE(4010, cuDeviceGetByPCIBusId) SINCE(4010, cuDeviceGetPCIBusId) \
	SINCE(4010, cuGLGetDevices) SINCE(4010, cuIpcCloseMemHandle) \
	SINCE(4010, cuIpcGetEventHandle) SINCE(4010, cuIpcGetMemHandle) \
	SINCE(4010, cuIpcOpenEventHandle) SINCE(4010, cuIpcOpenMemHandle) \
	SINCE(4010, cuTexRefSetAddress2D_v3) SINCE(4020, cuCtxGetSharedMemConfig) \
	SINCE(4020, cuCtxSetSharedMemConfig) SINCE(4020, cuFuncSetSharedMemConfig) \
	SINCE(5000, cuGraphicsResourceGetMappedMipmappedArray) \
	SINCE(5000, cuMipmappedArrayCreate) SINCE(5000, cuMipmappedArrayDestroy) \
	SINCE(5000, cuMipmappedArrayGetLevel) SINCE(5000, cuStreamAddCallback) \
	SINCE(5000, cuSurfObjectCreate) SINCE(5000, cuSurfObjectDestroy) \
	SINCE(5000, cuSurfObjectGetResourceDesc) SINCE(5000, cuTexObjectCreate) \
	SINCE(5000, cuTexObjectDestroy) SINCE(5000, cuTexObjectGetResourceDesc) \
	SINCE(5000, cuTexObjectGetResourceViewDesc) SINCE(5000, cuTexObjectGetTextureDesc) \
	SINCE(5000, cuTexRefGetMaxAnisotropy) SINCE(5000, cuTexRefGetMipmapFilterMode) \
	SINCE(5000, cuTexRefGetMipmapLevelBias) SINCE(5000, cuTexRefGetMipmapLevelClamp) \
	SINCE(5000, cuTexRefGetMipmappedArray) SINCE(5000, cuTexRefSetMaxAnisotropy) \
	SINCE(5000, cuTexRefSetMipmapFilterMode) SINCE(5000, cuTexRefSetMipmapLevelBias) \
	SINCE(5000, cuTexRefSetMipmapLevelClamp) SINCE(5000, cuTexRefSetMipmappedArray) \
	SINCE(5050, cuCtxGetStreamPriorityRange) SINCE(5050, cuLinkAddData) \
	SINCE(5050, cuLinkAddFile) SINCE(5050, cuLinkComplete) SINCE(5050, cuLinkCreate) \
	SINCE(5050, cuLinkDestroy) SINCE(5050, cuStreamCreateWithPriority) \
	SINCE(5050, cuStreamGetFlags) SINCE(5050, cuStreamGetPriority) \
	SINCE(6000, cuGetErrorName) SINCE(6000, cuGetErrorString) \
	SINCE(6000, cuMemAllocManaged) SINCE(6000, cuPointerSetAttribute) \
	SINCE(6000, cuStreamAttachMemAsync) SINCE(6050, cuGLGetDevices_v2) \
	SINCE(6050, cuGraphicsResourceSetMapFlags_v2) SINCE(6050, cuLinkAddData_v2) \
	SINCE(6050, cuLinkAddFile_v2) SINCE(6050, cuLinkCreate_v2) \
	SINCE(6050, cuMemHostRegister_v2) \
	SINCE(6050, cuOccupancyMaxActiveBlocksPerMultiprocessor) \
	SINCE(6050, cuOccupancyMaxPotentialBlockSize) SINCE(7000, cuCtxGetFlags) \
	SINCE(7000, cuDevicePrimaryCtxGetState) SINCE(7000, cuDevicePrimaryCtxRelease) \
	SINCE(7000, cuDevicePrimaryCtxReset) SINCE(7000, cuDevicePrimaryCtxRetain) \
	SINCE(7000, cuDevicePrimaryCtxSetFlags) SINCE(7000, cuEGLStreamConsumerAcquireFrame) \
	SINCE(7000, cuEGLStreamConsumerConnect) SINCE(7000, cuEGLStreamConsumerDisconnect) \
	SINCE(7000, cuEGLStreamConsumerReleaseFrame) SINCE(7000, cuEGLStreamProducerConnect) \
	SINCE(7000, cuEGLStreamProducerDisconnect) SINCE(7000, cuEGLStreamProducerPresentFrame) \
	SINCE(7000, cuEGLStreamProducerReturnFrame) SINCE(7000, cuEventRecord_ptsz) \
	SINCE(7000, cuGLMapBufferObjectAsync_v2_ptsz) SINCE(7000, cuGLMapBufferObject_v2_ptds) \
	SINCE(7000, cuGraphicsEGLRegisterImage) SINCE(7000, cuGraphicsMapResources_ptsz) \
	SINCE(7000, cuGraphicsResourceGetMappedEglFrame) \
	SINCE(7000, cuGraphicsUnmapResources_ptsz) SINCE(7000, cuLaunchKernel_ptsz) \
	SINCE(7000, cuMemcpy2DAsync_v2_ptsz) SINCE(7000, cuMemcpy2DUnaligned_v2_ptds) \
	SINCE(7000, cuMemcpy2D_v2_ptds) SINCE(7000, cuMemcpy3DAsync_v2_ptsz) \
	SINCE(7000, cuMemcpy3DPeerAsync_ptsz) SINCE(7000, cuMemcpy3DPeer_ptds) \
	SINCE(7000, cuMemcpy3D_v2_ptds) SINCE(7000, cuMemcpyAsync_ptsz) \
	SINCE(7000, cuMemcpyAtoA_v2_ptds) SINCE(7000, cuMemcpyAtoD_v2_ptds) \
	SINCE(7000, cuMemcpyAtoHAsync_v2_ptsz) SINCE(7000, cuMemcpyAtoH_v2_ptds) \
	SINCE(7000, cuMemcpyDtoA_v2_ptds) SINCE(7000, cuMemcpyDtoDAsync_v2_ptsz) \
	SINCE(7000, cuMemcpyDtoD_v2_ptds) SINCE(7000, cuMemcpyDtoHAsync_v2_ptsz) \
	SINCE(7000, cuMemcpyDtoH_v2_ptds) SINCE(7000, cuMemcpyHtoAAsync_v2_ptsz) \
	SINCE(7000, cuMemcpyHtoA_v2_ptds) SINCE(7000, cuMemcpyHtoDAsync_v2_ptsz) \
	SINCE(7000, cuMemcpyHtoD_v2_ptds) SINCE(7000, cuMemcpyPeerAsync_ptsz) \
	SINCE(7000, cuMemcpyPeer_ptds) SINCE(7000, cuMemcpy_ptds) \
	SINCE(7000, cuMemsetD16Async_ptsz) SINCE(7000, cuMemsetD16_v2_ptds) \
	SINCE(7000, cuMemsetD2D16Async_ptsz) SINCE(7000, cuMemsetD2D16_v2_ptds) \
	SINCE(7000, cuMemsetD2D32Async_ptsz) SINCE(7000, cuMemsetD2D32_v2_ptds) \
	SINCE(7000, cuMemsetD2D8Async_ptsz) SINCE(7000, cuMemsetD2D8_v2_ptds) \
	SINCE(7000, cuMemsetD32Async_ptsz) SINCE(7000, cuMemsetD32_v2_ptds) \
	SINCE(7000, cuMemsetD8Async_ptsz) SINCE(7000, cuMemsetD8_v2_ptds) \
	SINCE(7000, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
	SINCE(7000, cuOccupancyMaxPotentialBlockSizeWithFlags) \
	SINCE(7000, cuPointerGetAttributes) SINCE(7000, cuStreamAddCallback_ptsz) \
	SINCE(7000, cuStreamAttachMemAsync_ptsz) SINCE(7000, cuStreamGetFlags_ptsz) \
	SINCE(7000, cuStreamGetPriority_ptsz) SINCE(7000, cuStreamQuery_ptsz) \
	SINCE(7000, cuStreamSynchronize_ptsz) SINCE(7000, cuStreamWaitEvent_ptsz) \
	SINCE(8000, cuDeviceGetP2PAttribute) SINCE(8000, cuEGLStreamConsumerConnectWithFlags) \
	SINCE(8000, cuMemAdvise) SINCE(8000, cuMemPrefetchAsync) \
	SINCE(8000, cuMemPrefetchAsync_ptsz) SINCE(8000, cuMemRangeGetAttribute) \
	SINCE(8000, cuMemRangeGetAttributes) SINCE(8000, cuStreamBatchMemOp) \
	SINCE(8000, cuStreamBatchMemOp_ptsz) SINCE(8000, cuStreamWaitValue32) \
	SINCE(8000, cuStreamWaitValue32_ptsz) SINCE(8000, cuStreamWriteValue32) \
	SINCE(8000, cuStreamWriteValue32_ptsz) SINCE(8000, cuTexRefGetBorderColor) \
	SINCE(8000, cuTexRefSetBorderColor) SINCE(9000, cuFuncSetAttribute) \
	SINCE(9000, cuLaunchCooperativeKernel) \
	SINCE(9000, cuLaunchCooperativeKernelMultiDevice) \
	SINCE(9000, cuLaunchCooperativeKernel_ptsz) SINCE(9000, cuStreamWaitValue64) \
	SINCE(9000, cuStreamWaitValue64_ptsz) SINCE(9000, cuStreamWriteValue64) \
	SINCE(9000, cuStreamWriteValue64_ptsz) SINCE(9020, cuDeviceGetUuid) \
	SINCE(9020, cuStreamGetCtx) SINCE(9020, cuStreamGetCtx_ptsz) \
	SINCE(10000, cuDestroyExternalMemory) SINCE(10000, cuDestroyExternalSemaphore) \
	SINCE(10000, cuDeviceGetLuid) SINCE(10000, cuExternalMemoryGetMappedBuffer) \
	SINCE(10000, cuExternalMemoryGetMappedMipmappedArray) \
	SINCE(10000, cuGraphAddChildGraphNode) SINCE(10000, cuGraphAddDependencies) \
	SINCE(10000, cuGraphAddEmptyNode) SINCE(10000, cuGraphAddHostNode) \
	SINCE(10000, cuGraphAddKernelNode) SINCE(10000, cuGraphAddMemcpyNode) \
	SINCE(10000, cuGraphAddMemsetNode) SINCE(10000, cuGraphChildGraphNodeGetGraph) \
	SINCE(10000, cuGraphClone) SINCE(10000, cuGraphCreate) SINCE(10000, cuGraphDestroy) \
	SINCE(10000, cuGraphDestroyNode) SINCE(10000, cuGraphExecDestroy) \
	SINCE(10000, cuGraphGetEdges) SINCE(10000, cuGraphGetNodes) \
	SINCE(10000, cuGraphGetRootNodes) SINCE(10000, cuGraphHostNodeGetParams) \
	SINCE(10000, cuGraphHostNodeSetParams) SINCE(10000, cuGraphInstantiate) \
	SINCE(10000, cuGraphKernelNodeGetParams) SINCE(10000, cuGraphKernelNodeSetParams) \
	SINCE(10000, cuGraphLaunch) SINCE(10000, cuGraphLaunch_ptsz) \
	SINCE(10000, cuGraphMemcpyNodeGetParams) SINCE(10000, cuGraphMemcpyNodeSetParams) \
	SINCE(10000, cuGraphMemsetNodeGetParams) SINCE(10000, cuGraphMemsetNodeSetParams) \
	SINCE(10000, cuGraphNodeFindInClone) SINCE(10000, cuGraphNodeGetDependencies) \
	SINCE(10000, cuGraphNodeGetDependentNodes) SINCE(10000, cuGraphNodeGetType) \
	SINCE(10000, cuGraphRemoveDependencies) SINCE(10000, cuImportExternalMemory) \
	SINCE(10000, cuImportExternalSemaphore) SINCE(10000, cuLaunchHostFunc) \
	SINCE(10000, cuLaunchHostFunc_ptsz) SINCE(10000, cuSignalExternalSemaphoresAsync) \
	SINCE(10000, cuSignalExternalSemaphoresAsync_ptsz) SINCE(10000, cuStreamBeginCapture) \
	SINCE(10000, cuStreamBeginCapture_ptsz) SINCE(10000, cuStreamEndCapture) \
	SINCE(10000, cuStreamEndCapture_ptsz) SINCE(10000, cuStreamIsCapturing) \
	SINCE(10000, cuStreamIsCapturing_ptsz) SINCE(10000, cuWaitExternalSemaphoresAsync) \
	SINCE(10000, cuWaitExternalSemaphoresAsync_ptsz) \
	SINCE(10010, cuGraphExecKernelNodeSetParams) SINCE(10010, cuStreamBeginCapture_v2) \
	SINCE(10010, cuStreamBeginCapture_v2_ptsz) SINCE(10010, cuStreamGetCaptureInfo) \
	SINCE(10010, cuStreamGetCaptureInfo_ptsz) \
	SINCE(10010, cuThreadExchangeStreamCaptureMode) \
	SINCE(10020, cuDeviceGetNvSciSyncAttributes) SINCE(10020, cuGraphExecHostNodeSetParams) \
	SINCE(10020, cuGraphExecMemcpyNodeSetParams) \
	SINCE(10020, cuGraphExecMemsetNodeSetParams) SINCE(10020, cuGraphExecUpdate) \
	SINCE(10020, cuMemAddressFree) SINCE(10020, cuMemAddressReserve) \
	SINCE(10020, cuMemCreate) SINCE(10020, cuMemExportToShareableHandle) \
	SINCE(10020, cuMemGetAccess) SINCE(10020, cuMemGetAllocationGranularity) \
	SINCE(10020, cuMemGetAllocationPropertiesFromHandle) \
	SINCE(10020, cuMemImportFromShareableHandle) SINCE(10020, cuMemMap) \
	SINCE(10020, cuMemRelease) SINCE(10020, cuMemSetAccess) SINCE(10020, cuMemUnmap) \
	SINCE(10020, cuOccupancyAvailableDynamicSMemPerBlock) \
	SINCE(11000, cuCtxResetPersistingL2Cache) SINCE(11000, cuDevicePrimaryCtxRelease_v2) \
	SINCE(11000, cuDevicePrimaryCtxReset_v2) SINCE(11000, cuDevicePrimaryCtxSetFlags_v2) \
	SINCE(11000, cuFuncGetModule) SINCE(11000, cuGraphInstantiate_v2) \
	SINCE(11000, cuGraphKernelNodeCopyAttributes) \
	SINCE(11000, cuGraphKernelNodeGetAttribute) SINCE(11000, cuGraphKernelNodeSetAttribute) \
	SINCE(11000, cuIpcOpenMemHandle_v2) SINCE(11000, cuMemRetainAllocationHandle) \
	SINCE(11000, cuStreamCopyAttributes) SINCE(11000, cuStreamCopyAttributes_ptsz) \
	SINCE(11000, cuStreamGetAttribute) SINCE(11000, cuStreamGetAttribute_ptsz) \
	SINCE(11000, cuStreamSetAttribute) SINCE(11000, cuStreamSetAttribute_ptsz) \
	SINCE(11010, cuArrayGetSparseProperties) \
	SINCE(11010, cuDeviceGetTexture1DLinearMaxWidth) SINCE(11010, cuEventRecordWithFlags) \
	SINCE(11010, cuEventRecordWithFlags_ptsz) SINCE(11010, cuGraphAddEventRecordNode) \
	SINCE(11010, cuGraphAddEventWaitNode) SINCE(11010, cuGraphEventRecordNodeGetEvent) \
	SINCE(11010, cuGraphEventRecordNodeSetEvent) SINCE(11010, cuGraphEventWaitNodeGetEvent) \
	SINCE(11010, cuGraphEventWaitNodeSetEvent) \
	SINCE(11010, cuGraphExecChildGraphNodeSetParams) \
	SINCE(11010, cuGraphExecEventRecordNodeSetEvent) \
	SINCE(11010, cuGraphExecEventWaitNodeSetEvent) SINCE(11010, cuGraphUpload) \
	SINCE(11010, cuGraphUpload_ptsz) SINCE(11010, cuMemMapArrayAsync) \
	SINCE(11010, cuMemMapArrayAsync_ptsz) SINCE(11010, cuMipmappedArrayGetSparseProperties) \
	SINCE(11020, cuArrayGetPlane) SINCE(11020, cuDeviceGetDefaultMemPool) \
	SINCE(11020, cuDeviceGetMemPool) SINCE(11020, cuDeviceSetMemPool) \
	SINCE(11020, cuGraphAddExternalSemaphoresSignalNode) \
	SINCE(11020, cuGraphAddExternalSemaphoresWaitNode) \
	SINCE(11020, cuGraphExecExternalSemaphoresSignalNodeSetParams) \
	SINCE(11020, cuGraphExecExternalSemaphoresWaitNodeSetParams) \
	SINCE(11020, cuGraphExternalSemaphoresSignalNodeGetParams) \
	SINCE(11020, cuGraphExternalSemaphoresSignalNodeSetParams) \
	SINCE(11020, cuGraphExternalSemaphoresWaitNodeGetParams) \
	SINCE(11020, cuGraphExternalSemaphoresWaitNodeSetParams) SINCE(11020, cuMemAllocAsync) \
	SINCE(11020, cuMemAllocAsync_ptsz) SINCE(11020, cuMemAllocFromPoolAsync) \
	SINCE(11020, cuMemAllocFromPoolAsync_ptsz) SINCE(11020, cuMemFreeAsync) \
	SINCE(11020, cuMemFreeAsync_ptsz) SINCE(11020, cuMemPoolCreate) \
	SINCE(11020, cuMemPoolDestroy) SINCE(11020, cuMemPoolExportPointer) \
	SINCE(11020, cuMemPoolExportToShareableHandle) SINCE(11020, cuMemPoolGetAccess) \
	SINCE(11020, cuMemPoolGetAttribute) SINCE(11020, cuMemPoolImportFromShareableHandle) \
	SINCE(11020, cuMemPoolImportPointer) SINCE(11020, cuMemPoolSetAccess) \
	SINCE(11020, cuMemPoolSetAttribute) SINCE(11020, cuMemPoolTrimTo) \
	SINCE(11030, cuFlushGPUDirectRDMAWrites) SINCE(11030, cuGetProcAddress) \
	SINCE(11030, cuGraphDebugDotPrint) SINCE(11030, cuGraphReleaseUserObject) \
	SINCE(11030, cuGraphRetainUserObject) SINCE(11030, cuStreamGetCaptureInfo_v2) \
	SINCE(11030, cuStreamGetCaptureInfo_v2_ptsz) \
	SINCE(11030, cuStreamUpdateCaptureDependencies) \
	SINCE(11030, cuStreamUpdateCaptureDependencies_ptsz) SINCE(11030, cuUserObjectCreate) \
	SINCE(11030, cuUserObjectRelease) SINCE(11030, cuUserObjectRetain) \
	SINCE(11040, cuCtxCreate_v3) SINCE(11040, cuCtxGetExecAffinity) \
	SINCE(11040, cuDeviceGetExecAffinitySupport) SINCE(11040, cuDeviceGetGraphMemAttribute) \
	SINCE(11040, cuDeviceGetUuid_v2) SINCE(11040, cuDeviceGraphMemTrim) \
	SINCE(11040, cuDeviceSetGraphMemAttribute) SINCE(11040, cuGraphAddMemAllocNode) \
	SINCE(11040, cuGraphAddMemFreeNode) SINCE(11040, cuGraphInstantiateWithFlags) \
	SINCE(11040, cuGraphMemAllocNodeGetParams) SINCE(11040, cuGraphMemFreeNodeGetParams) \
	SINCE(11060, cuArrayGetMemoryRequirements) SINCE(11060, cuGraphNodeGetEnabled) \
	SINCE(11060, cuGraphNodeSetEnabled) SINCE(11060, cuLaunchKernelEx) \
	SINCE(11060, cuLaunchKernelEx_ptsz) SINCE(11060, cuMipmappedArrayGetMemoryRequirements) \
	SINCE(11070, cuGraphAddBatchMemOpNode) SINCE(11070, cuGraphBatchMemOpNodeGetParams) \
	SINCE(11070, cuGraphBatchMemOpNodeSetParams) \
	SINCE(11070, cuGraphExecBatchMemOpNodeSetParams) \
	SINCE(11070, cuMemGetHandleForAddressRange) SINCE(11070, cuModuleGetLoadingMode) \
	SINCE(11070, cuOccupancyMaxActiveClusters) \
	SINCE(11070, cuOccupancyMaxPotentialClusterSize) SINCE(11070, cuStreamBatchMemOp_v2) \
	SINCE(11070, cuStreamBatchMemOp_v2_ptsz) SINCE(11070, cuStreamWaitValue32_v2) \
	SINCE(11070, cuStreamWaitValue32_v2_ptsz) SINCE(11070, cuStreamWaitValue64_v2) \
	SINCE(11070, cuStreamWaitValue64_v2_ptsz) SINCE(11070, cuStreamWriteValue32_v2) \
	SINCE(11070, cuStreamWriteValue32_v2_ptsz) SINCE(11070, cuStreamWriteValue64_v2) \
	SINCE(11070, cuStreamWriteValue64_v2_ptsz) SINCE(12000, cuCtxGetId) \
	SINCE(12000, cuGetProcAddress_v2) SINCE(12000, cuGraphAddKernelNode_v2) \
	SINCE(12000, cuGraphExecGetFlags) SINCE(12000, cuGraphExecKernelNodeSetParams_v2) \
	SINCE(12000, cuGraphExecUpdate_v2) SINCE(12000, cuGraphInstantiateWithParams) \
	SINCE(12000, cuGraphInstantiateWithParams_ptsz) \
	SINCE(12000, cuGraphKernelNodeGetParams_v2) SINCE(12000, cuGraphKernelNodeSetParams_v2) \
	SINCE(12000, cuKernelGetAttribute) SINCE(12000, cuKernelGetFunction) \
	SINCE(12000, cuKernelSetAttribute) SINCE(12000, cuKernelSetCacheConfig) \
	SINCE(12000, cuLibraryGetGlobal) SINCE(12000, cuLibraryGetKernel) \
	SINCE(12000, cuLibraryGetManaged) SINCE(12000, cuLibraryGetModule) \
	SINCE(12000, cuLibraryGetUnifiedFunction) SINCE(12000, cuLibraryLoadData) \
	SINCE(12000, cuLibraryLoadFromFile) SINCE(12000, cuLibraryUnload) \
	SINCE(12000, cuStreamGetId) SINCE(12000, cuStreamGetId_ptsz) \
	SINCE(12000, cuTensorMapEncodeIm2col) SINCE(12000, cuTensorMapEncodeTiled) \
	SINCE(12000, cuTensorMapReplaceAddress) SINCE(12010, cuCoredumpGetAttribute) \
	SINCE(12010, cuCoredumpGetAttributeGlobal) SINCE(12010, cuCoredumpSetAttribute) \
	SINCE(12010, cuCoredumpSetAttributeGlobal) SINCE(12010, cuCtxSetFlags) \
	SINCE(12010, cuMulticastAddDevice) SINCE(12010, cuMulticastBindAddr) \
	SINCE(12010, cuMulticastBindMem) SINCE(12010, cuMulticastCreate) \
	SINCE(12010, cuMulticastGetGranularity) SINCE(12010, cuMulticastUnbind) \
	SINCE(12020, cuGraphAddNode) SINCE(12020, cuGraphExecNodeSetParams) \
	SINCE(12020, cuGraphNodeSetParams) SINCE(12020, cuMemAdvise_v2) \
	SINCE(12020, cuMemPrefetchAsync_v2) SINCE(12020, cuMemPrefetchAsync_v2_ptsz) \
	SINCE(12030, cuFuncGetName) SINCE(12030, cuGraphAddDependencies_v2) \
	SINCE(12030, cuGraphAddNode_v2) SINCE(12030, cuGraphConditionalHandleCreate) \
	SINCE(12030, cuGraphGetEdges_v2) SINCE(12030, cuGraphNodeGetDependencies_v2) \
	SINCE(12030, cuGraphNodeGetDependentNodes_v2) \
	SINCE(12030, cuGraphRemoveDependencies_v2) SINCE(12030, cuKernelGetName) \
	SINCE(12030, cuStreamBeginCaptureToGraph) \
	SINCE(12030, cuStreamBeginCaptureToGraph_ptsz) SINCE(12030, cuStreamGetCaptureInfo_v3) \
	SINCE(12030, cuStreamGetCaptureInfo_v3_ptsz) \
	SINCE(12030, cuStreamUpdateCaptureDependencies_v2) \
	SINCE(12030, cuStreamUpdateCaptureDependencies_v2_ptsz) SINCE(12040, cuCtxFromGreenCtx) \
	SINCE(12040, cuCtxGetDevResource) SINCE(12040, cuDevResourceGenerateDesc) \
	SINCE(12040, cuDevSmResourceSplitByCount) SINCE(12040, cuDeviceGetDevResource) \
	SINCE(12040, cuDeviceRegisterAsyncNotification) \
	SINCE(12040, cuDeviceUnregisterAsyncNotification) SINCE(12040, cuFuncGetParamInfo) \
	SINCE(12040, cuFuncIsLoaded) SINCE(12040, cuFuncLoad) SINCE(12040, cuGreenCtxCreate) \
	SINCE(12040, cuGreenCtxDestroy) SINCE(12040, cuGreenCtxGetDevResource) \
	SINCE(12040, cuGreenCtxRecordEvent) SINCE(12040, cuGreenCtxWaitEvent) \
	SINCE(12040, cuKernelGetParamInfo) SINCE(12040, cuLibraryEnumerateKernels) \
	SINCE(12040, cuLibraryGetKernelCount) SINCE(12040, cuModuleEnumerateFunctions) \
	SINCE(12040, cuModuleGetFunctionCount) SINCE(12040, cuStreamGetGreenCtx) \
	SINCE(12050, cuCtxCreate_v4) SINCE(12050, cuCtxRecordEvent) \
	SINCE(12050, cuCtxWaitEvent) SINCE(12050, cuGreenCtxStreamCreate) \
	SINCE(12050, cuKernelGetLibrary) SINCE(12050, cuStreamGetCtx_v2) \
	SINCE(12050, cuStreamGetCtx_v2_ptsz) SINCE(12060, cuMemBatchDecompressAsync) \
	SINCE(12060, cuMemBatchDecompressAsync_ptsz) \
	SINCE(12080, cuCheckpointProcessCheckpoint) \
	SINCE(12080, cuCheckpointProcessGetRestoreThreadId) \
	SINCE(12080, cuCheckpointProcessGetState) SINCE(12080, cuCheckpointProcessLock) \
	SINCE(12080, cuCheckpointProcessRestore) SINCE(12080, cuCheckpointProcessUnlock) \
	SINCE(12080, cuEventElapsedTime_v2) SINCE(12080, cuMemcpy3DBatchAsync) \
	SINCE(12080, cuMemcpy3DBatchAsync_ptsz) SINCE(12080, cuMemcpyBatchAsync) \
	SINCE(12080, cuMemcpyBatchAsync_ptsz) SINCE(12080, cuStreamGetDevice) \
	SINCE(12080, cuStreamGetDevice_ptsz) SINCE(12080, cuTensorMapEncodeIm2colWide) \
	SINCE(12090, cuGreenCtxGetId) SINCE(12090, cuLogsCurrent) \
	SINCE(12090, cuLogsDumpToFile) SINCE(12090, cuLogsDumpToMemory) \
	SINCE(12090, cuLogsRegisterCallback) SINCE(12090, cuLogsUnregisterCallback) \
	SINCE(13000, cuCtxGetDevice_v2) SINCE(13000, cuCtxSynchronize_v2) \
	SINCE(13000, cuDeviceGetHostAtomicCapabilities) \
	SINCE(13000, cuDeviceGetP2PAtomicCapabilities) \
	SINCE(13000, cuMemDiscardAndPrefetchBatchAsync) \
	SINCE(13000, cuMemDiscardAndPrefetchBatchAsync_ptsz) \
	SINCE(13000, cuMemDiscardBatchAsync) SINCE(13000, cuMemDiscardBatchAsync_ptsz) \
	SINCE(13000, cuMemGetDefaultMemPool) SINCE(13000, cuMemGetMemPool) \
	SINCE(13000, cuMemPrefetchBatchAsync) SINCE(13000, cuMemPrefetchBatchAsync_ptsz) \
	SINCE(13000, cuMemSetMemPool) SINCE(13000, cuMemcpy3DBatchAsync_v2) \
	SINCE(13000, cuMemcpy3DBatchAsync_v2_ptsz) SINCE(13000, cuMemcpyBatchAsync_v2) \
	SINCE(13000, cuMemcpyBatchAsync_v2_ptsz)
/* clang-format on */
