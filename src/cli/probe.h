/* Checks whether a real GPU can be shared, or whether a simulated GPU's description is valid. */
#pragma once

#include "base/error.h"

/*
 * Returns 0 if NVML loads and counts a GPU, else -ENODEV; the error says how to get a real or simulated GPU. Takes about 10 ms.
 * Call from one thread only.
 */
int probe_gpu(struct error *err);

/*
 * Runs `allot-sim --check SPEC`. Returns 0 if SPEC is a known machine or a valid file, -EINVAL with allot-sim's reason, or
 * -errno if allot-sim can't be run.
 */
int probe_sim(const char *spec, struct error *err);
