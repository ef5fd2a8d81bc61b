/* The MIG instances of a GPU exist from the start and never change. */
#include "sim/nvml/nvml.h"

#define ARCHITECTURE_WITH_MIG 8 /* compute capability of Ampere */

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
	GETTER(current && pending);
	NVML_FAIL_IF(d->info.cc_major < ARCHITECTURE_WITH_MIG, NVML_ERROR_NOT_SUPPORTED);
	*current = *pending = d->info.mig == SIM_MIG_ON;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
	GETTER(count);
	*count = d->info.mig == SIM_MIG_ON ? SIM_MIG_INSTANCES : 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
						 nvmlDevice_t *instance)
{
	GETTER(instance && index < SIM_MIG_INSTANCES);
	NVML_FAIL_IF(d->info.mig != SIM_MIG_ON, NVML_ERROR_NOT_SUPPORTED);
	for (uint32_t i = 0; i < nvml_devices(); i++) {
		struct nvmlDevice_st *found = nvml_device_at(i);

		if (found->info.mig != SIM_MIG_INSTANCE || found->info.parent != d->card ||
		    found->index != index)
			continue;
		*instance = found;
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

/* Begins a function about an instance: `d` is the instance, and the answer goes to `out`. */
#define OF_INSTANCE(out) GETTER_OF_ANY((out) && d->info.mig == SIM_MIG_INSTANCE)

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t *card)
{
	OF_INSTANCE(card);
	*card = nvml_device_at(d->info.parent);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
	OF_INSTANCE(id);
	*id = d->info.gpu_instance;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
	OF_INSTANCE(id);
	*id = d->info.compute_instance;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
	OF_INSTANCE(attributes);
	*attributes = (nvmlDeviceAttributes_t){
		.multiprocessorCount = (unsigned int)d->info.sms,
		.sharedCopyEngineCount = 1,
		.gpuInstanceSliceCount = d->info.slices,
		.computeInstanceSliceCount = d->info.slices,
		.memorySizeMB = d->info.memory_bytes >> 20,
	};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is)
{
	GETTER_OF_ANY(is);
	*is = d->info.mig == SIM_MIG_INSTANCE;
	return NVML_SUCCESS;
}
