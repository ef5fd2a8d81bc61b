/* Reports faults from NVML's events. A fault of a GPU in MIG mode is reported for each instance that the fault concerns. */
#include <errno.h>

#include "daemon/gpu/nvml/gpu_nvml.h"

#define NO_INSTANCE ~0U

/* Some cards report only Xids, and old cards report nothing. Returns -EOPNOTSUPP if no card reports events. */
static int make_events(struct gpu *gpu, struct error *err)
{
	nvmlEventSet_t set;
	unsigned registered = 0;
	if (!gpu->event_set || !gpu->event_set_free || !gpu->event_types || !gpu->event_register ||
	    !gpu->event_wait)
		return error_set(
			err, EOPNOTSUPP,
			"the driver's NVML lacks the functions for events (nvmlEventSetCreate and others)");
	nvmlReturn_t r = gpu->event_set(&set);
	if (r != NVML_SUCCESS)
		return gpu_nvml_fail(err, "nvmlEventSetCreate", r);
	for (unsigned i = 0; i < gpu->device_count; i++) {
		unsigned long long types = 0;
		nvmlDevice_t card = gpu->device[i].card;
		/* Register a GPU only once: the MIG instances of a GPU are adjacent in the list. */
		if (i && gpu->device[i - 1].card == card)
			continue;
		r = gpu->event_types(card, &types);
		types &= nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError;
		if (r == NVML_SUCCESS && types)
			r = gpu->event_register(card, types, set);
		registered += r == NVML_SUCCESS && types;
	}
	if (!registered) {
		gpu->event_set_free(set);
		return error_set(err, EOPNOTSUPP, "NVML offers fault events for none of the GPUs");
	}
	gpu->events = set;
	gpu->event_next = gpu->device_count;
	return 0;
}

/* Returns true if the event is on the device's GPU and, for a MIG instance, names no other instance. */
static bool concerns(const struct gpu_nvml_device *device, const nvmlEventData_t *data)
{
	if (device->card != data->device)
		return false;
	return !device->is_instance || data->eventType != nvmlEventTypeXidCriticalError ||
	       data->gpuInstanceId == NO_INSTANCE || data->gpuInstanceId == device->gpu_instance;
}

/* Fills *ret for the next device that the last event concerns. Returns 0 if there is none left. */
static int next_told(struct gpu *gpu, struct gpu_fault *ret)
{
	const nvmlEventData_t *data = &gpu->event;

	while (gpu->event_next < gpu->device_count) {
		unsigned i = gpu->event_next++;
		if (!concerns(&gpu->device[i], data))
			continue;
		*ret = (struct gpu_fault){ .index = i,
					   .kind = data->eventType == nvmlEventTypeXidCriticalError
							   ? GPU_FAULT_XID
							   : GPU_FAULT_ECC,
					   .number = data->eventData };
		return 1;
	}
	return 0;
}

int gpu_nvml_wait_fault(struct gpu *gpu, unsigned timeout_ms, struct gpu_fault *ret,
			struct error *err)
{
	int e = gpu->events ? 0 : make_events(gpu, err);
	if (e < 0)
		return e;
	if (next_told(gpu, ret))
		return 1;
	nvmlReturn_t r = gpu->event_wait(gpu->events, &gpu->event, timeout_ms);
	if (r == NVML_ERROR_TIMEOUT)
		return 0;
	if (r != NVML_SUCCESS)
		return gpu_nvml_fail(err, "nvmlEventSetWait", r);
	gpu->event_next = 0;
	return next_told(gpu, ret);
}
