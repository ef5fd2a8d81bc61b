/* Parts of the CUDA ABI that src/abi/cuda_abi.h lacks, because allot does not control these calls. Names are NVIDIA's. */
#pragma once

#include "abi/cuda_abi.h"

#define CUDA_ERROR_DEVICE_UNAVAILABLE ((CUresult)46)
#define CUDA_ERROR_NOT_MAPPED_AS_POINTER ((CUresult)213)
#define CUDA_ERROR_INVALID_SOURCE ((CUresult)300)
#define CUDA_ERROR_ALREADY_ACQUIRED ((CUresult)210)
#define CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED ((CUresult)713)

#define CU_CTX_FLAGS_MASK 0xff
#define CU_STREAM_NON_BLOCKING 0x1
#define CU_MEM_ATTACH_GLOBAL 0x1

/* The simulation only passes these on, or compares them by number. */
typedef int CUdevice_P2PAttribute;
typedef int CUfunc_cache;
typedef int CUsharedconfig;
typedef int CUmem_advise;
typedef int CUmem_range_attribute;
typedef int CUmemAllocationGranularity_flags;
typedef int CUexecAffinityType;
typedef int CUmoduleLoadingMode;
typedef int CUstreamAttrID;
typedef int CUmulticastGranularity_flags;
typedef int CUjitInputType;

typedef struct CUlinkState_st *CUlinkState;

typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);
typedef size_t (*CUoccupancyB2DSize)(int block_size);

typedef struct CUipcEventHandle_st {
	char reserved[CU_IPC_HANDLE_SIZE];
} CUipcEventHandle;

struct CUmulticastObjectProp_st {
	unsigned int numDevices;
	size_t size;
	unsigned long long handleTypes;
	unsigned long long flags;
};

typedef struct CUextMemory_st *CUexternalMemory;

typedef struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st {
	int type;
	union {
		int fd;
		void *pointers[2];
	} handle;
	unsigned long long size;
	unsigned int flags;
	unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

typedef struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC_st {
	unsigned long long offset;
	unsigned long long size;
	unsigned int flags;
	unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

typedef struct CUdevprop_st {
	int maxThreadsPerBlock;
	int maxThreadsDim[3];
	int maxGridSize[3];
	int sharedMemPerBlock;
	int totalConstantMemory;
	int SIMDWidth;
	int memPitch;
	int regsPerBlock;
	int clockRate;
	int textureAlign;
} CUdevprop;

typedef struct CUDA_KERNEL_NODE_PARAMS_v2_st {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
	CUkernel kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

struct CUDA_MEMSET_NODE_PARAMS_st {
	CUdeviceptr dst;
	size_t pitch;
	unsigned int value;
	unsigned int elementSize;
	size_t width;
	size_t height;
};

typedef struct CUDA_HOST_NODE_PARAMS_st {
	CUhostFn fn;
	void *userData;
} CUDA_HOST_NODE_PARAMS;

/* Parameters of cuGraphAddNode. `type` says which member of the union is set. */
typedef struct CUgraphNodeParams_st {
	int type;
	int reserved[3];
	union {
		CUDA_KERNEL_NODE_PARAMS kernel;
		struct {
			int flags, reserved;
			CUcontext ctx;
			CUDA_MEMCPY3D copy;
		} copy;
		struct {
			CUDA_MEMSET_NODE_PARAMS params;
			CUcontext ctx;
		} set;
		CUDA_HOST_NODE_PARAMS host;
		CUDA_MEM_ALLOC_NODE_PARAMS alloc;
		CUdeviceptr free;
		long long whole[29];
	};
	long long reserved_too;
} CUgraphNodeParams;

typedef struct CUgraphExecUpdateResultInfo_st {
	int result;
	CUgraphNode errorNode;
	CUgraphNode errorFromNode;
} CUgraphExecUpdateResultInfo;

/* One end of an operation of cuMemcpy3DBatchAsync. The simulation takes only linear memory. */
struct sim_copy_end {
	int type; /* 1: linear memory, 2: an array */
	CUdeviceptr ptr;
	size_t row_length, layer_height;
	CUmemLocation location;
};

struct CUDA_MEMCPY3D_BATCH_OP_st {
	struct sim_copy_end src, dst;
	size_t width, height, depth;
	int order;
	unsigned int flags;
};

/* One operation of cuStreamBatchMemOp: 48 bytes. The first word gives the kind. */
union CUstreamBatchMemOpParams_union {
	int operation; /* 1: wait 32, 2: write 32, 3: flush, 4: wait 64, 5: write 64, 6: barrier */
	struct {
		int operation;
		CUdeviceptr address;
		cuuint64_t value;
		unsigned int flags;
		CUdeviceptr alias;
	} value;
	cuuint64_t pad[6];
};
