/*
 * A sensor measures by NVML how much each process uses a card, for policy "feedback" with `feedback_sensor = nvml`. One thread
 * per card reads ten times a second (NVML samples up to six times a second) and passes the result to the arbitration, whose
 * own thread must not wait for NVML. While NVML reports nothing, the arbitration uses charged time instead; that is logged
 * once.
 */
#pragma once

#include "base/error.h"
#include "daemon/arbitrate/arbitration.h"
#include "daemon/gpu/nvml/gpu.h"

struct sensor;

/* Starts the thread. `backend`, `gpu` and `arbitration` must outlive it. */
int sensor_start(const struct gpu_backend *backend, struct gpu *gpu, unsigned index,
		 struct arbitration *arbitration, struct sensor **ret, struct error *err);
/* Returns how often NVML stopped reporting use; 1 if it never reported use. Thread safe. NULL is allowed. */
uint64_t sensor_failures(const struct sensor *sensor);
/* Stops the thread after the NVML call in progress. NULL is allowed; returns NULL. */
struct sensor *sensor_stop(struct sensor *sensor);
