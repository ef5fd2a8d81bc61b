/*
 * An entry of a driver that is newer than this source. dlsym always finds it; cuGetProcAddress hands it
 * out where ALLOT_SIM_FUTURE is set (procaddr.c).
 */
#include "sim/cuda/sim.h"

CUresult cuMemAlloc_v9(CUdeviceptr *ptr, size_t bytes)
{
	SIM_ENTER(cuMemAlloc_v9);
	return cuMemAlloc_v2(ptr, bytes);
}
