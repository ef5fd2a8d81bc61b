/*
 * A pretended libnvidia-ml.so.1 for test_gpu.c. FAKE_NVML says what is wrong with it: "driver" (not
 * loaded), "empty" (no card), "v1" (no nvmlDeviceGetMemoryInfo_v2: it answers not-supported). "mig": the first
 * card is in MIG mode, with a GPU instance 3 of one compute instance, and one 5 of two; "mig-many": with
 * a GPU instance 5 of seven compute instances; "mig-none": both are, and have none.
 */
#include "abi/nvml_abi.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define MIB (1ULL << 20)

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlShutdown(void);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned size);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *text, unsigned size);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
						     nvmlProcessInfo_t *list);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
						      nvmlProcessInfo_t *list);

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
					     nvmlProcessUtilizationSample_t *samples,
					     unsigned int *count, unsigned long long since_us);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor);
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count);
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
						 nvmlDevice_t *instance);
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id);
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id);

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set);
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set);
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types);
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
				      nvmlEventSet_t set);
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms);

static bool is_wrong(const char *what)
{
	const char *value = getenv("FAKE_NVML");
	return value && !strcmp(value, what);
}

/* Handles of cards are 1 and 2, of instances 64 more than their place in the list. */
#define FIRST_INSTANCE 64

API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
	*minor = (unsigned)(uintptr_t)device + 6;
	return (uintptr_t)device < FIRST_INSTANCE ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
	*current = is_wrong("mig-none") ||
		   ((is_wrong("mig") || is_wrong("mig-many")) && (uintptr_t)device == 1);
	*pending = 1;
	return is_wrong("v1") ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
	*count = 7;
	return NVML_SUCCESS;
}

/* Its list has holes. */
static const unsigned instances[7][2] = { [1] = { 3, 0 }, [2] = { 5, 0 }, [5] = { 5, 1 } };

API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
						     nvmlDevice_t *instance)
{
	if (is_wrong("mig-none") || (!is_wrong("mig-many") && !instances[index][0]))
		return NVML_ERROR_NOT_FOUND;
	*instance = (nvmlDevice_t)(uintptr_t)(FIRST_INSTANCE + index);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id)
{
	*id = is_wrong("mig-many") ? 5 : instances[(uintptr_t)device - FIRST_INSTANCE][0];
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id)
{
	unsigned index = (unsigned)((uintptr_t)device - FIRST_INSTANCE);
	*id = is_wrong("mig-many") ? index : instances[index][1];
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlInit_v2(void)
{
	return is_wrong("driver") ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_SUCCESS;
}

API nvmlReturn_t nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = is_wrong("empty") ? 0 : 2;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
	*device = (nvmlDevice_t)(uintptr_t)(index + 1);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned size)
{
	snprintf(text, size, "%s-0a0b0c0d-1111-2222-3333-%012u",
		 (uintptr_t)device >= FIRST_INSTANCE ? "MIG" : "GPU", (unsigned)(uintptr_t)device);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *text, unsigned size)
{
	snprintf(text, size, "Pretended H200");
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	*memory = (nvmlMemory_t){ .total = 1000 * MIB, .used = 150 * MIB, .free = 850 * MIB };
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	if (is_wrong("v1") || memory->version != nvmlMemory_v2)
		return NVML_ERROR_NOT_SUPPORTED;
	memory->total = 1000 * MIB;
	memory->reserved = 100 * MIB;
	memory->used = 50 * MIB;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
							 nvmlProcessInfo_t *list)
{
	list[0] = (nvmlProcessInfo_t){ .pid = 10, .usedGpuMemory = 30 * MIB };
	list[1] = (nvmlProcessInfo_t){ .pid = 11, .usedGpuMemory = NVML_VALUE_NOT_AVAILABLE_ULL };
	*count = 2;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
							  nvmlProcessInfo_t *list)
{
	list[0] = (nvmlProcessInfo_t){ .pid = 10, .usedGpuMemory = 30 * MIB };
	list[1] = (nvmlProcessInfo_t){ .pid = 12, .usedGpuMemory = 5 * MIB };
	*count = 2;
	return NVML_SUCCESS;
}

/* Two samples of one process, the later first; one that was never written. */
API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
						 nvmlProcessUtilizationSample_t *samples,
						 unsigned int *count, unsigned long long since_us)
{
	static const nvmlProcessUtilizationSample_t known[] = {
		{ .pid = 10, .timeStamp = 3000, .smUtil = 40 },
		{ .pid = 10, .timeStamp = 2000, .smUtil = 90 },
		{ .pid = 11, .timeStamp = 3000, .smUtil = 250 },
		{ .pid = 12 },
	};
	if (is_wrong("use"))
		return NVML_ERROR_NOT_SUPPORTED;
	if (since_us >= 3000)
		return NVML_ERROR_NOT_FOUND;
	if (*count < 4)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(samples, known, sizeof(known));
	*count = 4;
	return NVML_SUCCESS;
}

/* Sets are counted by their handles; the second card reports only Xids. */
static int sets;

API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	*set = (nvmlEventSet_t)(uintptr_t)0x10;
	sets++;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	sets--;
	return set == (nvmlEventSet_t)(uintptr_t)0x10 && sets == 0 ? NVML_SUCCESS
								   : NVML_ERROR_INVALID_ARGUMENT;
}

API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
	if (is_wrong("events"))
		return NVML_ERROR_NOT_SUPPORTED;
	/* More than asked for, on the first. */
	*types = device == (nvmlDevice_t)(uintptr_t)1 ? 0xffff : nvmlEventTypeXidCriticalError;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
					  nvmlEventSet_t set)
{
	unsigned long long wanted = device == (nvmlDevice_t)(uintptr_t)1
					    ? nvmlEventTypeXidCriticalError |
						      nvmlEventTypeDoubleBitEccError
					    : nvmlEventTypeXidCriticalError;
	return types == wanted ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

/* timeout_ms selects the answer. */
API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
	const struct event {
		unsigned device;
		unsigned long long type, number;
		unsigned instance;
	} events[] = { { 2, nvmlEventTypeXidCriticalError, 79, ~0U },
		       { 1, nvmlEventTypeDoubleBitEccError, 0, ~0U },
		       { 7, nvmlEventTypeXidCriticalError, 13, ~0U } },
	  instances_of_1[] = { { 1, nvmlEventTypeXidCriticalError, 43, 9 },
			       { 1, nvmlEventTypeXidCriticalError, 44, 3 },
			       { 1, nvmlEventTypeXidCriticalError, 79, ~0U } },
	  *e = is_wrong("mig") ? instances_of_1 : events;
	if (timeout_ms >= 4)
		return timeout_ms == 4 ? NVML_ERROR_GPU_IS_LOST : NVML_ERROR_UNKNOWN;
	if (timeout_ms == 3)
		return NVML_ERROR_TIMEOUT;
	*data = (nvmlEventData_t){ .device = (nvmlDevice_t)(uintptr_t)e[timeout_ms].device,
				   .eventType = e[timeout_ms].type,
				   .eventData = e[timeout_ms].number,
				   .gpuInstanceId = e[timeout_ms].instance };
	return NVML_SUCCESS;
}
