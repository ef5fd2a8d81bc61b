/* The just-in-time linker accepts any input, and makes an image that loads. */
#include <stdlib.h>

#include "sim/cuda/sim.h"

struct CUlinkState_st {
	char image[64];
};

CUresult cuLinkCreate_v2(unsigned int n, CUjit_option *options, void **values, CUlinkState *state)
{
	CUcontext ctx;

	SIM_ENTER(cuLinkCreate_v2);
	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!state || !(*state = calloc(1, sizeof(**state))), CUDA_ERROR_INVALID_VALUE);
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuLinkAddData_v2,
	     (CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
	      unsigned int n, CUjit_option *options, void **values),
	     state &&data ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)
SIM_FUNCTION(cuLinkAddFile_v2,
	     (CUlinkState state, CUjitInputType type, const char *path, unsigned int n,
	      CUjit_option *options, void **values),
	     state &&path ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)

CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size)
{
	SIM_ENTER(cuLinkComplete);
	SIM_FAIL_IF(!state || !image, CUDA_ERROR_INVALID_VALUE);
	*image = state->image;
	if (size)
		*size = sizeof(state->image);
	return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	SIM_ENTER(cuLinkDestroy);
	free(state);
	return CUDA_SUCCESS;
}
