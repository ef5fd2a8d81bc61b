/* A driver newer than this source: if ALLOT_SIM_FUTURE is set, cuGetProcAddress finds a function that allot does not know. */
#include <stdlib.h>

#include "sim/cuda/sim.h"

int sim_driver_version(void)
{
	return getenv("ALLOT_SIM_FUTURE") ? SIM_FUTURE_VERSION : SIM_DRIVER_VERSION;
}

SIM_FUNCTION(cuMemAlloc_v9, (CUdeviceptr * ptr, size_t bytes), cuMemAlloc_v2(ptr, bytes))
