/* Shared by the files of the NVML backend. */
#pragma once

#include "abi/nvml_abi.h"
#include "daemon/gpu/nvml/gpu.h"

/* The functions loaded from NVML. A row: field of struct gpu, symbol, whether the symbol is required, parameters. */
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
	X(mig_mode, "nvmlDeviceGetMigMode", false, (nvmlDevice_t, unsigned *, unsigned *)) \
	X(mig_most, "nvmlDeviceGetMaxMigDeviceCount", false, (nvmlDevice_t, unsigned *)) \
	X(mig_device, "nvmlDeviceGetMigDeviceHandleByIndex", false, \
	  (nvmlDevice_t, unsigned, nvmlDevice_t *)) \
	X(mig_gpu_instance, "nvmlDeviceGetGpuInstanceId", false, (nvmlDevice_t, unsigned *)) \
	X(mig_compute_instance, "nvmlDeviceGetComputeInstanceId", false, \
	  (nvmlDevice_t, unsigned *)) \
	X(attributes, "nvmlDeviceGetAttributes_v2", false, \
	  (nvmlDevice_t, nvmlDeviceAttributes_t *)) \
	X(cores, "nvmlDeviceGetNumGpuCores", false, (nvmlDevice_t, unsigned *)) \
	X(capability, "nvmlDeviceGetCudaComputeCapability", false, (nvmlDevice_t, int *, int *)) \
	X(event_set, "nvmlEventSetCreate", false, (nvmlEventSet_t *)) \
	X(event_set_free, "nvmlEventSetFree", false, (nvmlEventSet_t)) \
	X(event_types, "nvmlDeviceGetSupportedEventTypes", false, \
	  (nvmlDevice_t, unsigned long long *)) \
	X(event_register, "nvmlDeviceRegisterEvents", false, \
	  (nvmlDevice_t, unsigned long long, nvmlEventSet_t)) \
	X(event_wait, "nvmlEventSetWait_v2", false, (nvmlEventSet_t, nvmlEventData_t *, unsigned)) \
	X(driver_version, "nvmlSystemGetDriverVersion", false, (char *, unsigned)) \
	X(cuda_version, "nvmlSystemGetCudaDriverVersion", false, (int *)) \
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

#define GPU_NVML_INSTANCES_MAX 64 /* MIG instances of a GPU; more are not used */

/* A GPU or a MIG instance. NVML reports location, links, device file and faults only for GPUs. */
struct gpu_nvml_device {
	nvmlDevice_t handle;
	nvmlDevice_t card; /* for an instance, its GPU; else equal to `handle` */
	bool is_instance;
	unsigned gpu_instance, compute_instance;
};

struct gpu {
	void *library;
	bool initialized;
	unsigned device_count;
	struct gpu_nvml_device *device;     /* instances of one GPU are adjacent */
	char left_out[ERROR_TEXT_MAX - 32]; /* devices not shared, and why: "A; B; and 2 more" */
	size_t left_out_length;             /* length of left_out without "; and 2 more" */
	unsigned left_out_more;             /* number of devices that did not fit */
	char version[GPU_VERSION_MAX];
	nvmlEventSet_t events; /* for wait_fault; NULL: not made yet */
	nvmlEventData_t event; /* the last event of `events` */
	/* index of the next device to check: does `event` concern it? An event may concern several devices. */
	unsigned event_next;
#define X(field, symbol, required, parameters) nvmlReturn_t(*field) parameters;
	NVML_ENTRIES(X)
#undef X
};

/* Returns the -errno of a failed NVML call, and sets the error. */
int gpu_nvml_fail(struct error *err, const char *call, nvmlReturn_t r);

/* Fills device, device_count and left_out. Returns -ENODEV if nothing can be shared. */
int gpu_nvml_find_devices(struct gpu *gpu, struct error *err);

/* methods of struct gpu_backend: */
int gpu_nvml_wait_fault(struct gpu *gpu, unsigned timeout_ms, struct gpu_fault *ret,
			struct error *err);
struct gpu_locality gpu_nvml_locality(struct gpu *gpu, unsigned index);
int gpu_nvml_links(struct gpu *gpu, struct gpu_link *ret, struct error *err);
