/*
 * Simulates a driver newer than this source. If ALLOT_SIM_FUTURE is set, the simulated driver has a newer version, and
 * cuGetProcAddress returns a function that no table of allot lists (procaddr.c). dlsym always finds that function.
 */
#include <stdlib.h>

#include "sim/cuda/sim.h"

int sim_driver_version(void)
{
	return getenv("ALLOT_SIM_FUTURE") ? SIM_FUTURE_VERSION : SIM_DRIVER_VERSION;
}

SIM_FUNCTION(cuMemAlloc_v9, (CUdeviceptr * ptr, size_t bytes), cuMemAlloc_v2(ptr, bytes))
