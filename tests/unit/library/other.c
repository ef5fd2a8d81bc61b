/* Another interposer for test_library: wraps an allocation function and looks up the next definition of it. */
#include <dlfcn.h>

#include "abi/cuda_abi.h"

#define API __attribute__((visibility("default")))

API CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes);
API void *other_next_alloc(void);

static CUresult (*next_alloc)(CUdeviceptr *, size_t);

void *other_next_alloc(void)
{
	next_alloc = (CUresult(*)(CUdeviceptr *, size_t))dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	return (void *)next_alloc;
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	return other_next_alloc() ? next_alloc(ptr, bytes) : CUDA_ERROR_NOT_FOUND;
}
