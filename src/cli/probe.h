/* Is there a real GPU that could be shared? */
#ifndef ALLOT_CLI_PROBE_H
#define ALLOT_CLI_PROBE_H

#include "base/error.h"

/*
 * 0 when NVML loads and counts a GPU; -ENODEV with a line that says how to get one, real or
 * simulated. Takes some 10 ms where a driver is installed. Call it from one thread.
 */
int probe_gpu(struct error *err);

#endif
