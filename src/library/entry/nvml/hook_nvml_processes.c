/* If the caller's array is too small, these hooks answer as NVML does: with the count that is needed and INSUFFICIENT_SIZE. */
#include <string.h>

#include "library/entry/nvml/nvml_card.h"
#include "library/entry/nvml/nvml_hooks.h"
#include "library/entry/nvml/nvml_time.h"

/* `infos` has *count entries of entry_bytes. All of NVML's structs for an entry are beginnings of nvmlProcessDetail_v1_t. */
static nvmlReturn_t list(int card, unsigned int *count, void *infos, size_t entry_bytes)
{
	struct nvml_process_iterator it = nvml_processes(card);
	struct nvml_process process;
	unsigned int room, n = 0, gpu_instance, compute_instance;

	if (!count || (*count && !infos))
		return NVML_ERROR_INVALID_ARGUMENT;
	room = *count;
	nvml_instance_ids(card, &gpu_instance, &compute_instance);
	for (; nvml_next_process(&it, &process); n++) {
		nvmlProcessDetail_v1_t info = { process.pid, process.used_bytes, gpu_instance,
						compute_instance, 0 };
		if (n < room)
			memcpy((char *)infos + n * entry_bytes, &info, entry_bytes);
	}
	*count = n;
	return n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

DEFINE_CARD_HOOK(nvml_compute_processes, get,
		 (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))
{
	return list(card, count, infos, sizeof(*infos));
}

DEFINE_CARD_HOOK(nvml_compute_processes_v1, get,
		 (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos))
{
	return list(card, count, infos, sizeof(*infos));
}

/* All processes of a tenant are compute processes, so it has no graphics processes and no MPS clients. */
static nvmlReturn_t list_none(unsigned int *count)
{
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

DEFINE_CARD_HOOK(nvml_other_processes, get,
		 (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))
{
	return list_none(count);
}

DEFINE_CARD_HOOK(nvml_other_processes_v1, get,
		 (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos))
{
	return list_none(count);
}

DEFINE_CARD_HOOK(nvml_process_details, get, (nvmlDevice_t device, nvmlProcessDetailList_t *details))
{
	if (!details)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (details->version != nvmlProcessDetailList_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (details->numProcArrayEntries && !details->procArray)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (details->mode == NVML_PROCESS_MODE_GRAPHICS || details->mode == NVML_PROCESS_MODE_MPS)
		return list_none(&details->numProcArrayEntries);
	if (details->mode != NVML_PROCESS_MODE_COMPUTE)
		return NVML_ERROR_INVALID_ARGUMENT;
	return list(card, &details->numProcArrayEntries, details->procArray,
		    sizeof(*details->procArray));
}

static bool next_busy(struct nvml_process_iterator *it, struct nvml_process *ret)
{
	while (nvml_next_process(it, ret))
		if (ret->busy_pct)
			return true;
	return false;
}

static unsigned int busy_count(int card)
{
	struct nvml_process_iterator it = nvml_processes(card);
	struct nvml_process process;
	unsigned int count = 0;

	while (next_busy(&it, &process))
		count++;
	return count;
}

/*
 * Lists the processes that were busy after since_us, in the array that is not NULL. If it lacks room, or both are NULL, sets
 * *count to all processes, busy or not, as NVML does.
 */
static nvmlReturn_t list_busy(int card, unsigned int *count, unsigned long long since_us,
			      nvmlProcessUtilizationSample_t *samples,
			      nvmlProcessUtilizationInfo_v1_t *infos)
{
	unsigned long long now_us = nvml_now_us();
	unsigned int n = 0, busy = now_us > since_us ? busy_count(card) : 0;
	struct nvml_process_iterator it = nvml_processes(card);
	struct nvml_process p;

	if ((!samples && !infos) || *count < busy) {
		*count = nvml_process_count(card);
		return *count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_ERROR_NOT_FOUND;
	}
	if (!busy)
		return NVML_ERROR_NOT_FOUND;
	for (; n < *count && next_busy(&it, &p); n++) {
		unsigned int memory_pct = nvml_card_memory_pct(card, p.used_bytes);
		if (samples)
			samples[n] = (nvmlProcessUtilizationSample_t){
				.pid = p.pid,
				.timeStamp = now_us,
				.smUtil = p.busy_pct,
				.memUtil = memory_pct,
			};
		else
			infos[n] = (nvmlProcessUtilizationInfo_v1_t){
				.pid = p.pid,
				.timeStamp = now_us,
				.smUtil = p.busy_pct,
				.memUtil = memory_pct,
			};
	}
	*count = n;
	return NVML_SUCCESS;
}

DEFINE_CARD_HOOK(nvml_process_utilization, get,
		 (nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, unsigned int *count,
		  unsigned long long since_us))
{
	return count ? list_busy(card, count, since_us, samples, NULL) : NVML_ERROR_INVALID_ARGUMENT;
}

DEFINE_CARD_HOOK(nvml_processes_utilization, get,
		 (nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info))
{
	if (!info)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (info->version != nvmlProcessesUtilizationInfo_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	return list_busy(card, &info->processSamplesCount, info->lastSeenTimeStamp, NULL,
			 info->procUtilArray);
}
