/* Lists the processes on a device, with the defects of NVML that the GPU's description asks for (enum sim_defect). */
#include <string.h>
#include <time.h>

#include "sim/nvml/nvml.h"

#define NO_INSTANCE ~0u
#define RECENT_US 1000000 /* age of the oldest sample of use, if the caller gives no time */

/* `entry` is the size of an element of infos: other structs lack the last members of nvmlProcessDetail_v1_t. */
static nvmlReturn_t list(nvmlDevice_t device, unsigned int *count, void *infos, size_t entry)
{
	STATE_GETTER(count && (!*count || infos));
	unsigned int room = *count;
	*count = state->processes;
	NVML_FAIL_IF(state->processes > room, NVML_ERROR_INSUFFICIENT_SIZE);
	const struct sim_process_state *p = (const struct sim_process_state *)(state + 1);
	for (uint32_t i = 0; i < state->processes; i++) {
		nvmlProcessDetail_v1_t info = { p[i].pid, p[i].used_bytes, NO_INSTANCE, NO_INSTANCE,
						0 };

		if (device->info.mig == SIM_MIG_INSTANCE) {
			info.gpuInstanceId = device->info.gpu_instance;
			info.computeInstanceId = device->info.compute_instance;
		}
		if (device->info.defects & SIM_DEFECT_NO_PROCESS_MEMORY)
			info.usedGpuMemory = NVML_VALUE_NOT_AVAILABLE_ULL;
		memcpy((char *)infos + i * entry, &info, entry);
	}
	return NVML_SUCCESS;
}

NVML_FUNCTION(nvmlDeviceGetComputeRunningProcesses,
	      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos),
	      list(device, count, infos, sizeof(*infos)))
NVML_FUNCTION(nvmlDeviceGetComputeRunningProcesses_v2,
	      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos),
	      list(device, count, infos, sizeof(*infos)))
NVML_FUNCTION(nvmlDeviceGetComputeRunningProcesses_v3,
	      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos),
	      list(device, count, infos, sizeof(*infos)))

static nvmlReturn_t none(nvmlDevice_t device, unsigned int *count)
{
	GETTER_OF_ANY(count);
	*count = 0;
	return NVML_SUCCESS;
}

/* Neither graphics processes nor MPS processes are simulated. */
#define NO_PROCESSES(symbol, type) \
	nvmlReturn_t symbol(nvmlDevice_t device, unsigned int *count, type *infos) \
	{ \
		return none(device, count); \
	}

NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
						   nvmlProcessDetailList_t *details)
{
	GETTER_OF_ANY(details);
	NVML_FAIL_IF(details->version != nvmlProcessDetailList_v1,
		     NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	NVML_FAIL_IF(details->numProcArrayEntries && !details->procArray,
		     NVML_ERROR_INVALID_ARGUMENT);
	if (details->mode == NVML_PROCESS_MODE_GRAPHICS || details->mode == NVML_PROCESS_MODE_MPS)
		return none(device, &details->numProcArrayEntries);
	NVML_FAIL_IF(details->mode != NVML_PROCESS_MODE_COMPUTE, NVML_ERROR_INVALID_ARGUMENT);
	return list(device, &details->numProcArrayEntries, details->procArray,
		    sizeof(*details->procArray));
}

/* Returns the index of the busiest process, which SIM_DEFECT_LOSES_BUSY_PROCESS hides; state->processes if none. */
static uint32_t hidden_process(const struct nvmlDevice_st *device,
			       const struct sim_card_state *state)
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
	struct timespec t;
	unsigned int room, n = 0;

	/* NVML's time stamps are microseconds since 1970; the simulated GPU has a clock of its own. */
	clock_gettime(CLOCK_REALTIME, &t);
	uint64_t now_us = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
	__attribute__((cleanup(nvml_free_state))) struct sim_card_state *state = nvml_state_since(
		device,
		!since_us           ? RECENT_US
		: since_us < now_us ? now_us - since_us
				    : 0,
		&r);

	if (!state)
		return r;
	NVML_FAIL_IF(!count, NVML_ERROR_INVALID_ARGUMENT);
	NVML_FAIL_IF(device->info.mig || (device->info.defects & SIM_DEFECT_NO_PROCESS_UTILIZATION),
		     NVML_ERROR_NOT_SUPPORTED);
	room = samples ? *count : 0;
	uint32_t missing = hidden_process(device, state);
	const struct sim_process_state *p = (const struct sim_process_state *)(state + 1);
	for (uint32_t i = 0; i < state->processes; i++) {
		if (i == missing || !p[i].busy_pct || !p[i].stamp_us)
			continue;
		if (n < room)
			samples[n] = (nvmlProcessUtilizationSample_t){
				.pid = p[i].pid,
				.timeStamp = now_us - (state->now_ns / 1000 - p[i].stamp_us),
				.smUtil = p[i].busy_pct,
				.memUtil = p[i].busy_pct / 3,
			};
		n++;
	}
	/* Without enough room the driver returns a number that is always enough: all processes. */
	*count = samples && n <= room ? n : state->processes;
	NVML_FAIL_IF(!samples || n > room, NVML_ERROR_INSUFFICIENT_SIZE);
	return n ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
						   nvmlProcessesUtilizationInfo_t *info)
{
	nvmlProcessUtilizationSample_t samples[256];
	unsigned int n = 256;
	nvmlReturn_t r;

	GETTER_OF_ANY(info);
	NVML_FAIL_IF(info->version != nvmlProcessesUtilizationInfo_v1,
		     NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	if (!info->procUtilArray)
		return nvmlDeviceGetProcessUtilization(device, NULL, &info->processSamplesCount,
						       info->lastSeenTimeStamp);
	r = nvmlDeviceGetProcessUtilization(device, samples, &n, info->lastSeenTimeStamp);
	if (r != NVML_SUCCESS)
		return r;
	if (n > info->processSamplesCount) {
		info->processSamplesCount = n;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (unsigned int i = 0; i < n; i++)
		info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
			.timeStamp = samples[i].timeStamp,
			.pid = samples[i].pid,
			.smUtil = samples[i].smUtil,
			.memUtil = samples[i].memUtil,
		};
	info->processSamplesCount = n;
	return NVML_SUCCESS;
}
