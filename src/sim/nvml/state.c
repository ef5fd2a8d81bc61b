/* What a device is doing: memory, processes, utilization, with the defects asked for. */
#include <stdlib.h>
#include <string.h>

#include "sim/nvml/nvml.h"

#define MIB (1ull << 20)

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	nvmlReturn_t r;
	struct sim_card_state *state = nvml_state(device, &r);

	if (state && !memory)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS)
		*memory = (nvmlMemory_t){ device->info.memory_bytes,
					  device->info.memory_bytes - state->used_bytes,
					  state->used_bytes };
	free(state);
	return r;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	nvmlReturn_t r;
	struct sim_card_state *state = nvml_state(device, &r);

	if (state && !memory)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS && memory->version != nvmlMemory_v2)
		r = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (r == NVML_SUCCESS)
		*memory = (nvmlMemory_v2_t){ nvmlMemory_v2, device->info.memory_bytes, 0,
					     device->info.memory_bytes - state->used_bytes,
					     state->used_bytes };
	free(state);
	return r;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
	nvmlReturn_t r;

	if (!nvml_device(device, &r))
		return r;
	if (!memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	*memory = (nvmlBAR1Memory_t){ 262144 * MIB, 262143 * MIB, MIB };
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
	nvmlReturn_t r;
	struct sim_card_state *state = nvml_state(device, &r);

	if (state && !rates)
		r = NVML_ERROR_INVALID_ARGUMENT;
	else if (state && (device->info.defects & SIM_DEFECT_NO_UTILIZATION))
		r = NVML_ERROR_NOT_SUPPORTED;
	if (r == NVML_SUCCESS)
		*rates = (nvmlUtilization_t){ state->busy_pct, state->busy_pct / 3 };
	free(state);
	return r;
}

/* One entry of any version's array: they begin alike. */
static nvmlReturn_t list(nvmlDevice_t device, unsigned int *count, void *infos, size_t entry)
{
	nvmlReturn_t r;
	struct sim_card_state *state = nvml_state(device, &r);
	const struct sim_process_state *p;
	unsigned int room;

	if (!state)
		return r;
	if (!count || (*count && !infos)) {
		free(state);
		return NVML_ERROR_INVALID_ARGUMENT;
	}
	room = *count;
	*count = state->processes;
	if (state->processes > room)
		r = NVML_ERROR_INSUFFICIENT_SIZE;
	p = (const struct sim_process_state *)(state + 1);
	for (uint32_t i = 0; r == NVML_SUCCESS && i < state->processes; i++) {
		nvmlProcessInfo_t info = { p[i].pid, p[i].used_bytes, ~0u, ~0u };

		if (device->info.defects & SIM_DEFECT_NO_PROCESS_MEMORY)
			info.usedGpuMemory = NVML_VALUE_NOT_AVAILABLE_ULL;
		memcpy((char *)infos + i * entry, &info, entry);
	}
	free(state);
	return r;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
						  nvmlProcessInfo_v1_t *infos)
{
	return list(device, count, infos, sizeof(*infos));
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
						     nvmlProcessInfo_t *infos)
{
	return list(device, count, infos, sizeof(*infos));
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
						     nvmlProcessInfo_t *infos)
{
	return list(device, count, infos, sizeof(*infos));
}

static nvmlReturn_t none(nvmlDevice_t device, unsigned int *count)
{
	nvmlReturn_t r;

	if (!nvml_device(device, &r))
		return r;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
						      nvmlProcessInfo_t *infos)
{
	return none(device, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
						      nvmlProcessInfo_t *infos)
{
	return none(device, count);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
							nvmlProcessInfo_t *infos)
{
	return none(device, count);
}

/* The place of the busiest process, which a defect leaves out; `processes` for none. */
static uint32_t left_out(const struct nvmlDevice_st *device, const struct sim_card_state *state)
{
	const struct sim_process_state *p = (const struct sim_process_state *)(state + 1);
	uint32_t best = state->processes;

	if (!(device->info.defects & SIM_DEFECT_LOSES_BUSY_PROCESS))
		return best;
	for (uint32_t i = 0; i < state->processes; i++)
		if (p[i].busy_pct && (best == state->processes || p[i].busy_pct > p[best].busy_pct))
			best = i;
	return best;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
					     nvmlProcessUtilizationSample_t *samples,
					     unsigned int *count, unsigned long long since_us)
{
	nvmlReturn_t r;
	struct sim_card_state *state = nvml_state(device, &r);
	const struct sim_process_state *p;
	unsigned int room, n = 0;
	uint32_t missing;

	if (!state)
		return r;
	if (!count || (device->info.defects & SIM_DEFECT_NO_PROCESS_UTILIZATION)) {
		free(state);
		return count ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
	}
	room = samples ? *count : 0;
	missing = left_out(device, state);
	p = (const struct sim_process_state *)(state + 1);
	for (uint32_t i = 0; i < state->processes; i++) {
		if (i == missing || !p[i].busy_pct || p[i].stamp_us <= since_us)
			continue;
		if (n < room)
			samples[n] = (nvmlProcessUtilizationSample_t){
				.pid = p[i].pid,
				.timeStamp = p[i].stamp_us,
				.smUtil = p[i].busy_pct,
				.memUtil = p[i].busy_pct / 3,
			};
		n++;
	}
	/* Asked without room it says how much would do, as the driver: for every process. */
	*count = samples && n <= room ? n : state->processes;
	r = samples && n <= room ? n ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND
				 : NVML_ERROR_INSUFFICIENT_SIZE;
	free(state);
	return r;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, int type, unsigned long long since_us,
				  int *value_type, unsigned int *count, nvmlSample_t *samples)
{
	struct sim_request_msg m = { .type = SIM_SAMPLES, .arg = { since_us * 1000 } };
	struct sim_sample *got;
	void *payload = NULL;
	size_t bytes = 0;
	unsigned int n;
	nvmlReturn_t r;

	if (!nvml_device(device, &r))
		return r;
	if (!value_type || !count)
		return NVML_ERROR_INVALID_ARGUMENT;
	/* 1: utilization of the GPU, 2: of its memory */
	if (type < 1 || type > 2 || (device->info.defects & SIM_DEFECT_NO_SAMPLES))
		return NVML_ERROR_NOT_SUPPORTED;
	m.card = device->card;
	if (link_call(&nvml_link, m, NULL, &payload, &bytes)) {
		free(payload);
		return NVML_ERROR_UNKNOWN;
	}
	got = payload;
	n = (unsigned int)(bytes / sizeof(*got));
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

/* A value that goes from idle to busy with the card's load. */
static nvmlReturn_t by_load(nvmlDevice_t device, unsigned int *out, unsigned int idle,
			    unsigned int busy)
{
	nvmlReturn_t r;
	struct sim_card_state *state = nvml_state(device, &r);

	if (state && !out)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS)
		*out = idle + (busy - idle) * state->busy_pct / 100;
	free(state);
	return r;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *degrees)
{
	return sensor ? NVML_ERROR_INVALID_ARGUMENT : by_load(device, degrees, 29, 64);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *mw)
{
	return by_load(device, mw, 76000, 610000);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, int *state)
{
	nvmlReturn_t r;

	if (!nvml_device(device, &r))
		return r;
	if (!state)
		return NVML_ERROR_INVALID_ARGUMENT;
	*state = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *mhz)
{
	if (type < 0 || type > 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	return type == 2 ? by_load(device, mhz, 3201, 3201) : by_load(device, mhz, 345, 1980);
}
