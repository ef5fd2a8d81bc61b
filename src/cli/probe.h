/* Checks whether a real GPU can be shared, or whether a simulated GPU's description is valid. */
#pragma once

#include "base/error.h"

/*
 * Returns 0 if NVML loads and counts a GPU, else -ENODEV with a line that says how to get a real or
 * simulated GPU. Takes about 10 ms if a driver is installed. Call from one thread only.
 */
int probe_gpu(struct error *err);

/*
 * Runs `allot-sim --check` to check that `spec` (--sim) is a known machine or a readable description file.
 * Returns 0, -EINVAL with the reason from allot-sim, or -errno if allot-sim can't be run.
 */
int probe_sim(const char *spec, struct error *err);
