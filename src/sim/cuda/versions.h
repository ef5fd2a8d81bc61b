/*
 * Since which CUDA version a symbol is there, for cuGetProcAddress: facts taken from the names in
 * cudaTypedefs.h of CUDA 12.8 and 13.5 (PFN_<base>_v<version>). Symbols that are as old as the
 * oldest version anyone asks for (CUDA 4.0 and before) have no row.
 */
#ifndef ALLOT_SIM_CUDA_VERSIONS_H
#define ALLOT_SIM_CUDA_VERSIONS_H

/* clang-format off */
#define SIM_VERSIONS(V) \
	V(cuCtxFromGreenCtx, 12040) V(cuGreenCtxCreate, 12040) V(cuGreenCtxDestroy, 12040) \
	V(cuDestroyExternalMemory, 10000) V(cuExternalMemoryGetMappedBuffer, 10000) \
	V(cuImportExternalMemory, 10000) V(cuMemHostRegister, 4000) \
	V(cuMemPoolExportPointer, 11020) V(cuMemPoolExportToShareableHandle, 11020) \
	V(cuMemPoolImportFromShareableHandle, 11020) V(cuMemPoolImportPointer, 11020) \
	V(cuMulticastAddDevice, 12010) V(cuMulticastBindAddr, 12010) \
	V(cuMulticastBindAddr_v2, 13010) V(cuMulticastBindMem, 12010) \
	V(cuMulticastBindMem_v2, 13010) V(cuMulticastCreate, 12010) \
	V(cuMulticastGetGranularity, 12010) V(cuMulticastUnbind, 12010) \
	V(cuMemMapArrayAsync, 11010) V(cuMemMapArrayAsync_ptsz, 11010) \
	V(cuArrayGetMemoryRequirements, 11060) V(cuCtxCreate_v3, 11040) \
	V(cuCtxCreate_v4, 12050) V(cuCtxGetDevice_v2, 13000) V(cuCtxGetFlags, 7000) \
	V(cuCtxGetId, 12000) V(cuCtxGetSharedMemConfig, 4020) \
	V(cuCtxGetStreamPriorityRange, 5050) V(cuCtxResetPersistingL2Cache, 11000) \
	V(cuCtxSetFlags, 12010) V(cuCtxSetSharedMemConfig, 4020) V(cuCtxSynchronize_v2, 13000) \
	V(cuDeviceGetByPCIBusId, 4010) V(cuDeviceGetDefaultMemPool, 11020) \
	V(cuDeviceGetExecAffinitySupport, 11040) V(cuDeviceGetGraphMemAttribute, 11040) \
	V(cuDeviceGetMemPool, 11020) V(cuDeviceGetP2PAttribute, 8000) \
	V(cuDeviceGetPCIBusId, 4010) V(cuDeviceGetUuid, 9020) V(cuDeviceGetUuid_v2, 11040) \
	V(cuDeviceGraphMemTrim, 11040) V(cuDevicePrimaryCtxGetState, 7000) \
	V(cuDevicePrimaryCtxRelease, 7000) V(cuDevicePrimaryCtxRelease_v2, 11000) \
	V(cuDevicePrimaryCtxReset, 7000) V(cuDevicePrimaryCtxReset_v2, 11000) \
	V(cuDevicePrimaryCtxRetain, 7000) V(cuDevicePrimaryCtxSetFlags_v2, 11000) \
	V(cuDeviceSetMemPool, 11020) V(cuEventElapsedTime_v2, 12080) \
	V(cuEventRecordWithFlags, 11010) V(cuEventRecordWithFlags_ptsz, 11010) \
	V(cuEventRecord_ptsz, 7000) V(cuFuncGetModule, 11000) V(cuFuncGetName, 12030) \
	V(cuFuncIsLoaded, 12040) V(cuFuncLoad, 12040) V(cuFuncSetAttribute, 9000) \
	V(cuFuncSetSharedMemConfig, 4020) V(cuGetErrorName, 6000) V(cuGetErrorString, 6000) \
	V(cuGetProcAddress, 11030) V(cuGetProcAddress_v2, 12000) \
	V(cuGraphAddDependencies, 10000) V(cuGraphAddDependencies_v2, 12030) \
	V(cuGraphAddEmptyNode, 10000) V(cuGraphAddHostNode, 10000) \
	V(cuGraphAddKernelNode_v2, 12000) V(cuGraphAddMemcpyNode, 10000) \
	V(cuGraphAddMemsetNode, 10000) V(cuGraphClone, 10000) V(cuGraphCreate, 10000) \
	V(cuGraphDestroy, 10000) V(cuGraphExecDestroy, 10000) V(cuGraphExecGetFlags, 12000) \
	V(cuGraphExecUpdate_v2, 12000) V(cuGraphGetNodes, 10000) V(cuGraphGetRootNodes, 10000) \
	V(cuGraphInstantiateWithFlags, 11040) V(cuGraphInstantiateWithParams, 12000) \
	V(cuGraphInstantiateWithParams_ptsz, 12000) V(cuGraphInstantiate, 10000) V(cuGraphInstantiate_v2, 11000) \
	V(cuGraphAddMemAllocNode, 11040) V(cuGraphAddMemFreeNode, 11040) \
	V(cuGraphMemAllocNodeGetParams, 11040) \
	V(cuGraphKernelNodeGetParams_v2, 12000) V(cuGraphLaunch, 10000) \
	V(cuGraphLaunch_ptsz, 10000) V(cuGraphNodeGetType, 10000) V(cuGraphUpload, 11010) \
	V(cuGraphUpload_ptsz, 11010) V(cuIpcCloseMemHandle, 4010) V(cuIpcGetEventHandle, 4010) \
	V(cuIpcGetMemHandle, 4010) V(cuIpcOpenEventHandle, 4010) \
	V(cuIpcOpenMemHandle, 4010) V(cuIpcOpenMemHandle_v2, 11000) V(cuKernelGetAttribute, 12000) \
	V(cuKernelGetFunction, 12000) V(cuKernelGetLibrary, 12050) V(cuKernelGetName, 12030) \
	V(cuKernelSetAttribute, 12000) V(cuLaunchCooperativeKernel, 9000) \
	V(cuLaunchCooperativeKernel_ptsz, 9000) V(cuLaunchHostFunc, 10000) \
	V(cuLaunchHostFunc_ptsz, 10000) V(cuLaunchKernelEx, 11060) \
	V(cuLaunchKernelEx_ptsz, 11060) V(cuLaunchKernel_ptsz, 7000) \
	V(cuLibraryGetGlobal, 12000) V(cuLibraryGetKernel, 12000) V(cuLibraryGetModule, 12000) \
	V(cuLibraryLoadData, 12000) V(cuLibraryUnload, 12000) V(cuLinkAddData_v2, 6050) \
	V(cuLinkAddFile_v2, 6050) V(cuLinkComplete, 5050) V(cuLinkCreate_v2, 6050) \
	V(cuLinkDestroy, 5050) V(cuMemAddressFree, 10020) V(cuMemAddressReserve, 10020) \
	V(cuMemAdvise, 8000) V(cuMemAdvise_v2, 12020) V(cuMemAllocAsync, 11020) \
	V(cuMemAllocAsync_ptsz, 11020) V(cuMemAllocFromPoolAsync, 11020) \
	V(cuMemAllocFromPoolAsync_ptsz, 11020) V(cuMemAllocManaged, 6000) \
	V(cuMemCreate, 10020) V(cuMemExportToShareableHandle, 10020) V(cuMemFreeAsync, 11020) \
	V(cuMemFreeAsync_ptsz, 11020) V(cuMemGetAccess, 10020) \
	V(cuMemGetAllocationGranularity, 10020) \
	V(cuMemGetAllocationPropertiesFromHandle, 10020) \
	V(cuMemGetHandleForAddressRange, 11070) V(cuMemHostRegister_v2, 6050) \
	V(cuMemImportFromShareableHandle, 10020) V(cuMemMap, 10020) V(cuMemPoolCreate, 11020) \
	V(cuMemPoolDestroy, 11020) V(cuMemPoolGetAccess, 11020) \
	V(cuMemPoolGetAttribute, 11020) V(cuMemPoolSetAccess, 11020) \
	V(cuMemPoolSetAttribute, 11020) V(cuMemPoolTrimTo, 11020) V(cuMemPrefetchAsync, 8000) \
	V(cuMemPrefetchAsync_ptsz, 8000) V(cuMemPrefetchAsync_v2, 12020) \
	V(cuMemPrefetchAsync_v2_ptsz, 12020) V(cuMemRelease, 10020) \
	V(cuMemRetainAllocationHandle, 11000) V(cuMemSetAccess, 10020) V(cuMemUnmap, 10020) \
	V(cuMemcpy2DAsync_v2_ptsz, 7000) V(cuMemcpy2DUnaligned_v2_ptds, 7000) \
	V(cuMemcpy2D_v2_ptds, 7000) V(cuMemcpy3DAsync_v2_ptsz, 7000) \
	V(cuMemcpy3DPeerAsync_ptsz, 7000) V(cuMemcpy3DPeer_ptds, 7000) \
	V(cuMemcpy3D_v2_ptds, 7000) V(cuMemcpyAsync_ptsz, 7000) V(cuMemcpyAtoA_v2_ptds, 7000) \
	V(cuMemcpyAtoD_v2_ptds, 7000) V(cuMemcpyAtoHAsync_v2_ptsz, 7000) \
	V(cuMemcpyAtoH_v2_ptds, 7000) V(cuMemcpyDtoA_v2_ptds, 7000) \
	V(cuMemcpyDtoDAsync_v2_ptsz, 7000) V(cuMemcpyDtoD_v2_ptds, 7000) \
	V(cuMemcpyDtoHAsync_v2_ptsz, 7000) V(cuMemcpyDtoH_v2_ptds, 7000) \
	V(cuMemcpyHtoAAsync_v2_ptsz, 7000) V(cuMemcpyHtoA_v2_ptds, 7000) \
	V(cuMemcpyHtoDAsync_v2_ptsz, 7000) V(cuMemcpyHtoD_v2_ptds, 7000) \
	V(cuMemcpyPeerAsync_ptsz, 7000) V(cuMemcpyPeer_ptds, 7000) V(cuMemcpy_ptds, 7000) \
	V(cuMemsetD16Async_ptsz, 7000) V(cuMemsetD16_v2_ptds, 7000) \
	V(cuMemsetD2D16Async_ptsz, 7000) V(cuMemsetD2D16_v2_ptds, 7000) \
	V(cuMemsetD2D32Async_ptsz, 7000) V(cuMemsetD2D32_v2_ptds, 7000) \
	V(cuMemsetD2D8Async_ptsz, 7000) V(cuMemsetD2D8_v2_ptds, 7000) \
	V(cuMemsetD32Async_ptsz, 7000) V(cuMemsetD32_v2_ptds, 7000) \
	V(cuMemsetD8Async_ptsz, 7000) V(cuMemsetD8_v2_ptds, 7000) \
	V(cuMipmappedArrayCreate, 5000) V(cuMipmappedArrayDestroy, 5000) \
	V(cuMipmappedArrayGetLevel, 5000) V(cuMipmappedArrayGetMemoryRequirements, 11060) \
	V(cuModuleGetLoadingMode, 11070) V(cuOccupancyAvailableDynamicSMemPerBlock, 10020) \
	V(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
	V(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000) \
	V(cuOccupancyMaxPotentialBlockSize, 6050) \
	V(cuOccupancyMaxPotentialBlockSizeWithFlags, 7000) V(cuPointerGetAttributes, 7000) \
	V(cuPointerSetAttribute, 6000) V(cuStreamAddCallback, 5000) \
	V(cuStreamAddCallback_ptsz, 7000) V(cuStreamAttachMemAsync, 6000) \
	V(cuStreamAttachMemAsync_ptsz, 7000) V(cuStreamBatchMemOp_v2, 11070) \
	V(cuStreamBatchMemOp_v2_ptsz, 11070) V(cuStreamBeginCaptureToGraph, 12030) \
	V(cuStreamBeginCaptureToGraph_ptsz, 12030) V(cuStreamBeginCapture_v2, 10010) \
	V(cuStreamBeginCapture_v2_ptsz, 10010) V(cuStreamCopyAttributes, 11000) \
	V(cuStreamCopyAttributes_ptsz, 11000) V(cuStreamCreateWithPriority, 5050) \
	V(cuStreamEndCapture, 10000) V(cuStreamEndCapture_ptsz, 10000) \
	V(cuStreamGetAttribute, 11000) V(cuStreamGetAttribute_ptsz, 11000) \
	V(cuStreamGetCaptureInfo_v2, 11030) V(cuStreamGetCaptureInfo_v2_ptsz, 11030) \
	V(cuStreamGetCaptureInfo_v3, 12030) V(cuStreamGetCaptureInfo_v3_ptsz, 12030) \
	V(cuStreamGetCtx, 9020) V(cuStreamGetCtx_ptsz, 9020) V(cuStreamGetCtx_v2, 12050) \
	V(cuStreamGetCtx_v2_ptsz, 12050) V(cuStreamGetDevice, 12080) \
	V(cuStreamGetDevice_ptsz, 12080) V(cuStreamGetFlags, 5050) \
	V(cuStreamGetFlags_ptsz, 7000) V(cuStreamGetId, 12000) V(cuStreamGetId_ptsz, 12000) \
	V(cuStreamGetPriority, 5050) V(cuStreamGetPriority_ptsz, 7000) \
	V(cuStreamIsCapturing, 10000) V(cuStreamIsCapturing_ptsz, 10000) \
	V(cuStreamQuery_ptsz, 7000) V(cuStreamSetAttribute, 11000) \
	V(cuStreamSetAttribute_ptsz, 11000) V(cuStreamSynchronize_ptsz, 7000) \
	V(cuStreamWaitEvent_ptsz, 7000) V(cuStreamWaitValue32_v2, 11070) \
	V(cuStreamWaitValue32_v2_ptsz, 11070) V(cuStreamWaitValue64_v2, 11070) \
	V(cuStreamWaitValue64_v2_ptsz, 11070) V(cuStreamWriteValue32_v2, 11070) \
	V(cuStreamWriteValue32_v2_ptsz, 11070) V(cuStreamWriteValue64_v2, 11070) \
	V(cuStreamWriteValue64_v2_ptsz, 11070) V(cuThreadExchangeStreamCaptureMode, 10010) \
	V(cuFabricCpyBatchAsync, 13050) V(cuFabricCpyBatchAsync_ptsz, 13050) \
	V(cuMemBatchDecompressAsync, 12060) V(cuMemBatchDecompressAsync_ptsz, 12060) \
	V(cuMemDiscardAndPrefetchBatchAsync, 13000) \
	V(cuMemDiscardAndPrefetchBatchAsync_ptsz, 13000) V(cuMemDiscardBatchAsync, 13000) \
	V(cuMemDiscardBatchAsync_ptsz, 13000) V(cuMemPrefetchBatchAsync, 13000) \
	V(cuMemPrefetchBatchAsync_ptsz, 13000) V(cuMemcpy3DBatchAsync, 12080) \
	V(cuMemcpy3DBatchAsync_ptsz, 12080) V(cuMemcpy3DBatchAsync_v2, 13000) \
	V(cuMemcpy3DBatchAsync_v2_ptsz, 13000) V(cuMemcpy3DWithAttributesAsync, 13020) \
	V(cuMemcpy3DWithAttributesAsync_ptsz, 13020) V(cuMemcpyBatchAsync, 12080) \
	V(cuMemcpyBatchAsync_ptsz, 12080) V(cuMemcpyBatchAsync_v2, 13000) \
	V(cuMemcpyBatchAsync_v2_ptsz, 13000) V(cuMemcpyWithAttributesAsync, 13020) \
	V(cuMemcpyWithAttributesAsync_ptsz, 13020) V(cuStreamBeginCaptureToCig, 13010) \
	V(cuStreamBeginCaptureToCig_ptsz, 13010) V(cuStreamBeginRecaptureToGraph, 13030) \
	V(cuStreamBeginRecaptureToGraph_ptsz, 13030) V(cuStreamBeginCapture, 10000) \
	V(cuStreamBeginCapture_ptsz, 10000) V(cuLaunchCooperativeKernelMultiDevice, 9000) \
	V(cuLogicalEndpointCreate, 13030) V(cuLogicalEndpointImport, 13030)
/* clang-format on */

#endif
