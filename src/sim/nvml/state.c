/* A device's memory and utilization, with the defects of NVML that the GPU's description asks for (enum sim_defect). */
#include "sim/nvml/nvml.h"

#define MIB (1ull << 20)

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	STATE_GETTER(memory);
	*memory = (nvmlMemory_t){ device->info.memory_bytes,
				  device->info.memory_bytes - state->used_bytes, state->used_bytes };
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	STATE_GETTER(memory);
	NVML_FAIL_IF(memory->version != nvmlMemory_v2, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	*memory = (nvmlMemory_v2_t){ nvmlMemory_v2, device->info.memory_bytes, 0,
				     device->info.memory_bytes - state->used_bytes,
				     state->used_bytes };
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
	GETTER_OF_ANY(memory);
	*memory = (nvmlBAR1Memory_t){ 262144 * MIB, 262143 * MIB, MIB };
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
	STATE_GETTER(rates);
	NVML_FAIL_IF(device->info.mig || (device->info.defects & SIM_DEFECT_NO_UTILIZATION),
		     NVML_ERROR_NOT_SUPPORTED);
	*rates = (nvmlUtilization_t){ state->busy_pct, state->busy_pct / 3 };
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
				  unsigned long long since_us, nvmlValueType_t *value_type,
				  unsigned int *count, nvmlSample_t *samples)
{
	struct sim_request_msg m = { .type = SIM_SAMPLES, .arg = { since_us * 1000 } };
	void *payload = NULL;
	size_t bytes = 0;
	nvmlReturn_t r = NVML_SUCCESS;

	GETTER_OF_ANY(value_type && count);
	/* 1: utilization of the GPU; 2: of its memory */
	NVML_FAIL_IF(type < 1 || type > 2 || device->info.mig ||
			     (device->info.defects & SIM_DEFECT_NO_SAMPLES),
		     NVML_ERROR_NOT_SUPPORTED);
	m.card = device->card;
	if (link_call(&nvml_link, m, NULL, &payload, &bytes)) {
		free(payload);
		return NVML_ERROR_UNKNOWN;
	}
	struct sim_sample *got = payload;
	unsigned int n = (unsigned int)(bytes / sizeof(*got));
	*value_type = 1; /* unsigned int */
	if (!samples) {
		*count = 128;
	} else {
		n = n < *count ? n : *count;
		for (unsigned int i = 0; i < n; i++) {
			samples[i].timeStamp = got[i].end_us;
			samples[i].sampleValue.ullVal = 0;
			samples[i].sampleValue.uiVal = type == 1 ? got[i].busy_pct
								 : got[i].busy_pct / 3;
		}
		*count = n;
		r = n ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
	}
	free(payload);
	return r;
}

static nvmlReturn_t by_load(nvmlDevice_t device, unsigned int *out, unsigned int idle,
			    unsigned int busy)
{
	nvmlReturn_t r;

	if (!nvml_whole_card(device, &r))
		return r;
	STATE_GETTER(out);
	*out = idle + (busy - idle) * state->busy_pct / 100;
	return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetTemperature, (nvmlDevice_t device, int sensor, unsigned int *degrees),
	      sensor ? NVML_ERROR_INVALID_ARGUMENT : by_load(device, degrees, 29, 64))
NVML_FUNCTION(nvmlDeviceGetPowerUsage, (nvmlDevice_t device, unsigned int *mw),
	      by_load(device, mw, 76000, 610000))

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, int *state)
{
	GETTER_OF_ANY(state);
	*state = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *mhz)
{
	NVML_FAIL_IF(type < 0 || type > 3, NVML_ERROR_INVALID_ARGUMENT);
	return type == 2 ? by_load(device, mhz, 3201, 3201) : by_load(device, mhz, 345, 1980);
}

NVML_FUNCTION(nvmlDeviceGetPcieThroughput,
	      (nvmlDevice_t device, int counter, unsigned int *kib_per_s),
	      counter<0 || counter> 1 ? NVML_ERROR_INVALID_ARGUMENT
				      : by_load(device, kib_per_s, 0, 512000))

static nvmlReturn_t engine(nvmlDevice_t device, unsigned int *pct, unsigned int *period_us)
{
	nvmlReturn_t r = by_load(device, pct, 0, 0);

	NVML_FAIL_IF(r == NVML_SUCCESS && !period_us, NVML_ERROR_INVALID_ARGUMENT);
	if (r == NVML_SUCCESS)
		*period_us = 200000;
	return r;
}

NVML_FUNCTION(nvmlDeviceGetEncoderUtilization,
	      (nvmlDevice_t device, unsigned int *pct, unsigned int *period_us),
	      engine(device, pct, period_us))
NVML_FUNCTION(nvmlDeviceGetDecoderUtilization,
	      (nvmlDevice_t device, unsigned int *pct, unsigned int *period_us),
	      engine(device, pct, period_us))
NVML_FUNCTION(nvmlDeviceGetJpgUtilization,
	      (nvmlDevice_t device, unsigned int *pct, unsigned int *period_us),
	      engine(device, pct, period_us))
NVML_FUNCTION(nvmlDeviceGetOfaUtilization,
	      (nvmlDevice_t device, unsigned int *pct, unsigned int *period_us),
	      engine(device, pct, period_us))
