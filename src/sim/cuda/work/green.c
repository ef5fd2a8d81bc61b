/* A green context holds a reference to the primary context, where its work runs. Its number of SMs has no effect here. */
#include <stdlib.h>

#include "sim/cuda/sim.h"

#define DEFAULT_STREAM 1 /* CU_GREEN_CTX_DEFAULT_STREAM, which is required */

struct CUgreenCtx_st {
	uint32_t magic;
	CUdevice dev;
	CUcontext primary;
};

static bool is_green(CUgreenCtx green)
{
	return green && green->magic == MAGIC_GREEN;
}

CUresult cuGreenCtxCreate(CUgreenCtx *ret_green, CUdevResourceDesc desc, CUdevice dev,
			  unsigned int flags)
{
	CUgreenCtx green;

	SIM_ENTER(cuGreenCtxCreate);
	SIM_FAIL_IF(!ret_green || flags != DEFAULT_STREAM, CUDA_ERROR_INVALID_VALUE);
	green = calloc(1, sizeof(*green));
	SIM_FAIL_IF(!green, CUDA_ERROR_OUT_OF_MEMORY);
	green->magic = MAGIC_GREEN;
	green->dev = dev;
	CUresult r = cuDevicePrimaryCtxRetain(&green->primary, dev);
	if (r != CUDA_SUCCESS) {
		free(green);
		return r;
	}
	*ret_green = green;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	SIM_ENTER(cuGreenCtxDestroy);
	SIM_FAIL_IF(!is_green(green), CUDA_ERROR_INVALID_CONTEXT);
	SIM_TRY(cuDevicePrimaryCtxRelease_v2(green->dev));
	sim_free_handle(green);
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags, int priority)
{
	CUcontext before = sim_current();

	SIM_ENTER(cuGreenCtxStreamCreate);
	SIM_FAIL_IF(!stream || !is_green(green) || flags != CU_STREAM_NON_BLOCKING,
		    CUDA_ERROR_INVALID_VALUE);
	CUresult r = cuCtxSetCurrent(green->primary);
	if (r == CUDA_SUCCESS)
		r = cuStreamCreateWithPriority(stream, flags, priority);
	cuCtxSetCurrent(before);
	return r;
}

CUresult cuCtxFromGreenCtx(CUcontext *ctx, CUgreenCtx green)
{
	SIM_ENTER(cuCtxFromGreenCtx);
	SIM_FAIL_IF(!ctx || !is_green(green), CUDA_ERROR_INVALID_VALUE);
	*ctx = green->primary;
	return CUDA_SUCCESS;
}
