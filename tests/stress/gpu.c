#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void gpu_check(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "process %d: %s: %d\n", (int)getpid(), what, result);
	_exit(3);
}

CUcontext gpu_start(void)
{
	CUcontext context;

	GPU_DO(cuInit(0));
	GPU_DO(cuDevicePrimaryCtxRetain(&context, 0));
	GPU_DO(cuCtxSetCurrent(context));
	return context;
}

static CUfunction function(const char *name)
{
	static CUmodule module;
	CUfunction f;

	if (!module)
		GPU_DO(cuModuleLoadData(&module, ".version 6.0"));
	GPU_DO(cuModuleGetFunction(&f, module, name));
	return f;
}

CUfunction gpu_kernel(unsigned us)
{
	char name[64];

	snprintf(name, sizeof(name), "allot_sim_%uus_132b", us);
	return function(name);
}

CUfunction gpu_spin_kernel(void)
{
	return function("allot_sim_spin_1b");
}

void gpu_launch(CUfunction kernel, CUstream stream)
{
	GPU_DO(cuLaunchKernel(kernel, 132, 1, 1, 256, 1, 1, 0, stream, NULL, NULL));
}

CUstream gpu_stream(void)
{
	CUstream stream;

	GPU_DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

volatile uint32_t *gpu_host_word(CUdeviceptr *ret_ptr)
{
	void *host;

	GPU_DO(cuMemHostAlloc(&host, 4096, 0));
	GPU_DO(cuMemHostGetDevicePointer_v2(ret_ptr, host, 0));
	*(volatile uint32_t *)host = 0;
	return host;
}
