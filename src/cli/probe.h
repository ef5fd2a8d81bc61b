/* Is there a real GPU that could be shared, or a simulated one of that description? */
#pragma once

#include "base/error.h"

/*
 * 0 when NVML loads and counts a GPU; -ENODEV with a line that says how to get one, real or
 * simulated. Takes some 10 ms where a driver is installed. Call it from one thread.
 */
int probe_gpu(struct error *err);

/*
 * Whether `spec` (--sim) is a machine that allot-sim knows or a description file that it can read: asks
 * `allot-sim --check`. 0, or -EINVAL with that program's reason; -errno where it can't be run.
 */
int probe_sim(const char *spec, struct error *err);
