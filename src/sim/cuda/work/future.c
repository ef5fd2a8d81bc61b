/*
 * A driver that is newer than this source: where ALLOT_SIM_FUTURE is set, this one says that it is,
 * and cuGetProcAddress hands out an entry that no table of the library's has (procaddr.c). dlsym
 * always finds it.
 */
#include <stdlib.h>

#include "sim/cuda/sim.h"

int sim_driver_version(void)
{
	return getenv("ALLOT_SIM_FUTURE") ? SIM_FUTURE_VERSION : SIM_DRIVER_VERSION;
}

SIM_FUNCTION(cuMemAlloc_v9, (CUdeviceptr * ptr, size_t bytes), cuMemAlloc_v2(ptr, bytes))
