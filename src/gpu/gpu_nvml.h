/* Between the files of the NVML backend. */
#ifndef ALLOT_GPU_GPU_NVML_H
#define ALLOT_GPU_GPU_NVML_H

#include "driver/nvml_abi.h"
#include "gpu/gpu.h"

/* One row an entry point: its name, whether the backend can do without it, its parameters. */
#define NVML_ENTRIES(X) \
	X(init, "nvmlInit_v2", true, (void)) \
	X(shutdown, "nvmlShutdown", true, (void)) \
	X(count, "nvmlDeviceGetCount_v2", true, (unsigned *)) \
	X(handle, "nvmlDeviceGetHandleByIndex_v2", true, (unsigned, nvmlDevice_t *)) \
	X(uuid, "nvmlDeviceGetUUID", true, (nvmlDevice_t, char *, unsigned)) \
	X(name, "nvmlDeviceGetName", true, (nvmlDevice_t, char *, unsigned)) \
	X(memory, "nvmlDeviceGetMemoryInfo", true, (nvmlDevice_t, nvmlMemory_t *)) \
	X(memory_v2, "nvmlDeviceGetMemoryInfo_v2", false, (nvmlDevice_t, nvmlMemory_v2_t *)) \
	X(compute, "nvmlDeviceGetComputeRunningProcesses_v3", false, \
	  (nvmlDevice_t, unsigned *, nvmlProcessInfo_t *)) \
	X(graphics, "nvmlDeviceGetGraphicsRunningProcesses_v3", false, \
	  (nvmlDevice_t, unsigned *, nvmlProcessInfo_t *)) \
	X(process_use, "nvmlDeviceGetProcessUtilization", false, \
	  (nvmlDevice_t, nvmlProcessUtilizationSample_t *, unsigned *, unsigned long long)) \
	X(rates, "nvmlDeviceGetUtilizationRates", false, (nvmlDevice_t, nvmlUtilization_t *)) \
	X(minor, "nvmlDeviceGetMinorNumber", false, (nvmlDevice_t, unsigned *)) \
	X(event_set, "nvmlEventSetCreate", false, (nvmlEventSet_t *)) \
	X(event_set_free, "nvmlEventSetFree", false, (nvmlEventSet_t)) \
	X(event_types, "nvmlDeviceGetSupportedEventTypes", false, \
	  (nvmlDevice_t, unsigned long long *)) \
	X(event_register, "nvmlDeviceRegisterEvents", false, \
	  (nvmlDevice_t, unsigned long long, nvmlEventSet_t)) \
	X(event_wait, "nvmlEventSetWait_v2", false, (nvmlEventSet_t, nvmlEventData_t *, unsigned)) \
	X(driver_version, "nvmlSystemGetDriverVersion", false, (char *, unsigned)) \
	X(pci, "nvmlDeviceGetPciInfo_v3", false, (nvmlDevice_t, nvmlPciInfo_t *)) \
	X(numa_nodes, "nvmlDeviceGetMemoryAffinity", false, \
	  (nvmlDevice_t, unsigned, unsigned long *, unsigned)) \
	X(ancestor, "nvmlDeviceGetTopologyCommonAncestor", false, \
	  (nvmlDevice_t, nvmlDevice_t, nvmlGpuTopologyLevel_t *)) \
	X(link_state, "nvmlDeviceGetNvLinkState", false, (nvmlDevice_t, unsigned, unsigned *)) \
	X(link_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2", false, \
	  (nvmlDevice_t, unsigned, nvmlPciInfo_t *)) \
	X(link_type, "nvmlDeviceGetNvLinkRemoteDeviceType", false, \
	  (nvmlDevice_t, unsigned, unsigned *))

struct gpu {
	void *library;
	bool initialized;
	unsigned device_count;
	nvmlDevice_t *device;
	char version[GPU_VERSION_MAX];
	nvmlEventSet_t events; /* of wait_fault; NULL: not made yet */
#define X(field, symbol, required, parameters) nvmlReturn_t(*field) parameters;
	NVML_ENTRIES(X)
#undef X
};

/* See struct gpu_backend. */
struct gpu_seat gpu_nvml_seat(struct gpu *gpu, unsigned index);
int gpu_nvml_links(struct gpu *gpu, struct gpu_link *ret, struct error *err);

#endif
