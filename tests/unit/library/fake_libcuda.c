/* libcuda.so.1 for the tests of how symbols are found: a driver without a GPU, in one process. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cuda_abi.h"
#include "fake_libcuda.h"

#define API __attribute__((visibility("default")))

static int is_started;
static CUcontext current; /* one for all threads: enough here */
static unsigned long long used;

#define ENTRY(name, ...) \
	API CUresult name(__VA_ARGS__); \
	API CUresult name(__VA_ARGS__)

ENTRY(cuInit, unsigned int flags)
{
	is_started = 1;
	return CUDA_SUCCESS;
}

ENTRY(cuDriverGetVersion, int *version)
{
	*version = 14000;
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetCount, int *count)
{
	*count = 1;
	return is_started ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

ENTRY(cuDeviceGet, CUdevice *device, int ordinal)
{
	*device = ordinal;
	return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

ENTRY(cuDeviceGetUuid_v2, CUuuid *uuid, CUdevice device)
{
	memcpy(uuid, FAKE_UUID, sizeof(*uuid));
	return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetUuid, CUuuid *uuid, CUdevice device)
{
	return cuDeviceGetUuid_v2(uuid, device);
}

ENTRY(cuDeviceTotalMem_v2, size_t *bytes, CUdevice device)
{
	*bytes = FAKE_MEMORY_BYTES;
	return CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxRetain, CUcontext *context, CUdevice device)
{
	*context = (CUcontext)0xc0;
	return is_started ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

ENTRY(cuDevicePrimaryCtxRelease_v2, CUdevice device)
{
	return CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxGetState, CUdevice device, unsigned int *flags, int *active)
{
	*active = 0;
	return CUDA_SUCCESS;
}

ENTRY(cuCtxSetCurrent, CUcontext context)
{
	current = context;
	return CUDA_SUCCESS;
}

ENTRY(cuCtxGetCurrent, CUcontext *context)
{
	*context = current;
	return CUDA_SUCCESS;
}

ENTRY(cuCtxGetDevice, CUdevice *device)
{
	*device = 0;
	return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

ENTRY(cuMemAlloc_v2, CUdeviceptr *ptr, size_t bytes)
{
	static unsigned long long next = 0x7f0000000000;

	next += 0x200000;
	*ptr = next;
	used += bytes;
	return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

ENTRY(cuMemFree_v2, CUdeviceptr ptr)
{
	return CUDA_SUCCESS;
}

/* Of a driver that is newer than allot. */
ENTRY(cuMemFree_v9, CUdeviceptr ptr)
{
	return CUDA_SUCCESS;
}

ENTRY(cuMemGetInfo_v2, size_t *free_bytes, size_t *total_bytes)
{
	*total_bytes = FAKE_MEMORY_BYTES;
	*free_bytes = FAKE_MEMORY_BYTES - used;
	return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

ENTRY(cuLaunchKernel, CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
      unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared_bytes, CUstream stream,
      void **params, void **extra)
{
	return CUDA_SUCCESS;
}

ENTRY(cuEventCreate, CUevent *event, unsigned int flags)
{
	*event = (CUevent)0xe0;
	return CUDA_SUCCESS;
}

ENTRY(cuEventRecord, CUevent event, CUstream stream)
{
	return CUDA_SUCCESS;
}

ENTRY(cuEventQuery, CUevent event)
{
	return CUDA_SUCCESS;
}

ENTRY(cuEventElapsedTime, float *ms, CUevent start, CUevent end)
{
	*ms = 0.01F;
	return CUDA_SUCCESS;
}

ENTRY(cuEventDestroy_v2, CUevent event)
{
	return CUDA_SUCCESS;
}

/* A few names, as a driver newer than any known answers them: the newest symbol of a version. */
ENTRY(cuGetProcAddress_v2, const char *symbol, void **pfn, int version, cuuint64_t flags,
      CUdriverProcAddressQueryResult *status);

static void *chosen(const char *symbol, int version)
{
	if (!strcmp(symbol, "cuMemAlloc"))
		return (void *)cuMemAlloc_v2;
	if (!strcmp(symbol, "cuMemFree"))
		return version < 14000 ? (void *)cuMemFree_v2 : (void *)cuMemFree_v9;
	if (!strcmp(symbol, "cuDeviceGetCount"))
		return (void *)cuDeviceGetCount;
	if (!strcmp(symbol, "cuGetProcAddress"))
		return (void *)cuGetProcAddress_v2;
	return NULL;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	*pfn = chosen(symbol, version);
	if (status)
		*status = *pfn ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return CUDA_SUCCESS;
}
