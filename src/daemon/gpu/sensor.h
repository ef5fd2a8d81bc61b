/*
 * For policy "feedback" with `feedback_sensor = nvml`. One thread per card reads each process's use
 * of the card from NVML ten times a second and passes it to the arbitration. NVML itself samples up
 * to six times a second and may be slow, so the arbitration's thread never calls it. If NVML does
 * not report the use of processes, the arbitration uses the charged time instead, and this is
 * logged once.
 */
#pragma once

#include "base/error.h"
#include "daemon/arbitrate/arbitration.h"
#include "daemon/gpu/nvml/gpu.h"

struct sensor;

/* Starts the thread. All arguments must outlive it. */
int sensor_start(const struct gpu_backend *backend, struct gpu *gpu, unsigned index,
		 struct arbitration *arbitration, struct sensor **ret, struct error *err);
/*
 * Returns how many times NVML stopped reporting the use of processes; the first time counts if NVML did not report it from the
 * start. Thread safe. NULL is allowed.
 */
uint64_t sensor_failures(const struct sensor *sensor);
/* Stops the thread, after the NVML call in progress. NULL is allowed; returns NULL. */
struct sensor *sensor_stop(struct sensor *sensor);
