/* Checks whether the machine has a real GPU, or whether a simulated GPU's description is valid. */
#pragma once

#include "base/error.h"

/*
 * Returns 0 if NVML can be loaded and finds at least one GPU. Returns -ENODEV if not: the error says how to get a real or
 * simulated GPU. Returns another -errno if no child process can be started. Takes about 10 ms. Call only while the process has
 * one thread, because this function forks and the child loads NVML.
 */
int probe_gpu(struct error *err);

/*
 * Runs `allot-sim --check SPEC`. Returns 0 if SPEC is the name of a simulated machine or a valid file, else -EINVAL with
 * allot-sim's reason. Returns another -errno if allot-sim is not found or no child process can be started.
 */
int probe_sim(const char *spec, struct error *err);
