/*
 * Under policy feedback with `feedback_sensor = nvml`: a thread a card that asks NVML for each
 * process's use of the card, ten times a second (NVML itself samples up to six times a second, and may
 * be slow: never from the arbiter's thread), and tells arbitration. Where NVML tells no process's use
 * it says so once, and the charge goes on being the measure.
 */
#pragma once

#include "base/error.h"
#include "daemon/arbitrate/arbitration.h"
#include "daemon/gpu/nvml/gpu.h"

struct sensor;

/* Starts the thread. All that is given must outlive it. */
int sensor_start(const struct gpu_backend *backend, struct gpu *gpu, unsigned index,
		 struct arbitration *arbitration, struct sensor **ret, struct error *err);
/* Times that NVML began to tell no process's use; thread safe. NULL is fine. */
uint64_t sensor_failures(const struct sensor *sensor);
/* Stops it: waits for the NVML call under way. NULL is fine; returns NULL. */
struct sensor *sensor_stop(struct sensor *sensor);
