/*
 * For policy "feedback" with `feedback_sensor = nvml`. A thread per card reads each process's use from NVML ten times a
 * second and passes it to the arbitration, whose own thread never calls NVML, which may be slow (and samples up to six
 * times a second). Without such reports the arbitration uses charged time; that is logged once.
 */
#pragma once

#include "base/error.h"
#include "daemon/arbitrate/arbitration.h"
#include "daemon/gpu/nvml/gpu.h"

struct sensor;

/* Starts the thread, which the arguments must outlive. */
int sensor_start(const struct gpu_backend *backend, struct gpu *gpu, unsigned index,
		 struct arbitration *arbitration, struct sensor **ret, struct error *err);
/* Returns how often NVML stopped reporting use, or did not from the start. Thread safe. NULL is allowed. */
uint64_t sensor_failures(const struct sensor *sensor);
/* Stops the thread after the NVML call in progress. NULL is allowed; returns NULL. */
struct sensor *sensor_stop(struct sensor *sensor);
