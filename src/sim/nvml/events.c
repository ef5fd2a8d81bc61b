/* Event sets deliver the Xids and memory errors of the GPUs that are registered with them. */
#include <stdlib.h>

#include "sim/nvml/nvml.h"

#define EVENTS (nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError)

struct nvmlEventSet_st {
	uint32_t cards; /* bit i: card i is registered */
};

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	NVML_FAIL_IF(!nvml_is_up(), NVML_ERROR_UNINITIALIZED);
	NVML_FAIL_IF(!set, NVML_ERROR_INVALID_ARGUMENT);
	*set = calloc(1, sizeof(**set));
	return *set ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	NVML_FAIL_IF(!nvml_is_up(), NVML_ERROR_UNINITIALIZED);
	free(set);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
	GETTER(types);
	*types = EVENTS;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
				      nvmlEventSet_t set)
{
	GETTER(set);
	NVML_FAIL_IF(types & ~EVENTS, NVML_ERROR_NOT_SUPPORTED);
	set->cards |= 1u << d->card;
	return link_call(&nvml_link, (struct sim_request_msg){ .type = SIM_LISTEN, .arg = { 1 } },
			 NULL, NULL, NULL)
		       ? NVML_ERROR_UNKNOWN
		       : NVML_SUCCESS;
}

/* For a MIG instance, the event's device is its GPU, and the ids name the instance. */
static void fill(nvmlEventData_t *data, const struct nvmlDevice_st *device,
		 const struct sim_reply_msg *note)
{
	bool is_instance = device->info.mig == SIM_MIG_INSTANCE;

	*data = (nvmlEventData_t){
		.device = nvml_device_at(is_instance ? device->info.parent : device->card),
		.eventType = note->type == SIM_NOTE_ECC ? nvmlEventTypeDoubleBitEccError
							: nvmlEventTypeXidCriticalError,
		.eventData = note->val[1],
		.gpuInstanceId = is_instance ? device->info.gpu_instance : ~0u,
		.computeInstanceId = is_instance ? device->info.compute_instance : ~0u,
	};
}

/* Each event goes to only one waiting thread, and is lost if that thread's set lacks the GPU. */
static nvmlReturn_t set_wait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
	uint64_t until = sim_clock_ns() + timeout_ms * 1000000ull;
	struct sim_reply_msg note;

	NVML_FAIL_IF(!nvml_is_up(), NVML_ERROR_UNINITIALIZED);
	NVML_FAIL_IF(!set || !data, NVML_ERROR_INVALID_ARGUMENT);
	for (;;) {
		uint64_t now = sim_clock_ns();
		int r = link_wait_note(&nvml_link, &note, until > now ? until - now : 0);

		NVML_FAIL_IF(r < 0, NVML_ERROR_UNKNOWN);
		NVML_FAIL_IF(r == 0, NVML_ERROR_TIMEOUT);
		if ((note.type != SIM_NOTE_XID && note.type != SIM_NOTE_ECC) ||
		    note.val[0] >= nvml_devices())
			continue;
		fill(data, nvml_device_at((uint32_t)note.val[0]), &note);
		if (set->cards >> data->device->card & 1)
			return NVML_SUCCESS;
	}
}

NVML_FUNCTION(nvmlEventSetWait, (nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms),
	      set_wait(set, data, timeout_ms))
NVML_FUNCTION(nvmlEventSetWait_v2,
	      (nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms),
	      set_wait(set, data, timeout_ms))
