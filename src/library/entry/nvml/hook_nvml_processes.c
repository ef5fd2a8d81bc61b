/* If the caller's array is too small, these hooks answer as NVML does: with the count that is needed and INSUFFICIENT_SIZE. */
#include <string.h>

#include "library/entry/nvml/nvml_card.h"
#include "library/entry/nvml/nvml_hooks.h"
#include "library/entry/nvml/nvml_time.h"

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
		nvmlProcessInfo_t info = { process.pid, process.used_bytes, gpu_instance,
					   compute_instance };
		if (n < room) /* the older layout is the beginning of the newer one */
			memcpy((char *)infos + n * entry_bytes, &info, entry_bytes);
	}
	*count = n;
	return n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvml_compute_processes(
	int card, nvmlReturn_t (*get)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *),
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
	return list(card, count, infos, sizeof(*infos));
}

nvmlReturn_t nvml_compute_processes_v1(
	int card, nvmlReturn_t (*get)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_v1_t *),
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)
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

nvmlReturn_t nvml_other_processes_v1(
	int card, nvmlReturn_t (*get)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_v1_t *),
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)
{
	return list_none(count);
}

DEFINE_CARD_HOOK(nvml_process_details, get, (nvmlDevice_t device, nvmlProcessDetailList_t *details))
{
	struct nvml_process_iterator it = nvml_processes(card);
	struct nvml_process process;
	unsigned int room, n = 0, gpu_instance, compute_instance;

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
	room = details->numProcArrayEntries;
	nvml_instance_ids(card, &gpu_instance, &compute_instance);
	for (; nvml_next_process(&it, &process); n++)
		if (n < room)
			details->procArray[n] = (nvmlProcessDetail_v1_t){
				process.pid, process.used_bytes, gpu_instance, compute_instance, 0
			};
	details->numProcArrayEntries = n;
	return n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
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

/* If the array lacks room for the processes busy after since_us, sets *count to all processes, busy or not, as NVML does. */
static nvmlReturn_t measure(int card, bool is_array, unsigned int *count,
			    unsigned long long since_us, unsigned long long now_us)
{
	unsigned int busy = now_us > since_us ? busy_count(card) : 0;

	if (!is_array || *count < busy) {
		*count = nvml_process_count(card);
		return *count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_ERROR_NOT_FOUND;
	}
	return busy ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

DEFINE_CARD_HOOK(nvml_process_utilization, get,
		 (nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, unsigned int *count,
		  unsigned long long since_us))
{
	unsigned long long now_us = nvml_now_us();
	struct nvml_process_iterator it = nvml_processes(card);
	struct nvml_process process;
	unsigned int n = 0;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	nvmlReturn_t result = measure(card, samples, count, since_us, now_us);
	if (result != NVML_SUCCESS)
		return result;
	for (; n < *count && next_busy(&it, &process); n++)
		samples[n] = (nvmlProcessUtilizationSample_t){
			.pid = process.pid,
			.timeStamp = now_us,
			.smUtil = process.busy_pct,
			.memUtil = nvml_card_memory_pct(card, process.used_bytes),
		};
	*count = n;
	return NVML_SUCCESS;
}

DEFINE_CARD_HOOK(nvml_processes_utilization, get,
		 (nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info))
{
	unsigned long long now_us = nvml_now_us();
	struct nvml_process_iterator it = nvml_processes(card);
	struct nvml_process process;
	unsigned int n = 0;

	if (!info)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (info->version != nvmlProcessesUtilizationInfo_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	nvmlReturn_t result = measure(card, info->procUtilArray, &info->processSamplesCount,
				      info->lastSeenTimeStamp, now_us);
	if (result != NVML_SUCCESS)
		return result;
	for (; n < info->processSamplesCount && next_busy(&it, &process); n++)
		info->procUtilArray[n] = (nvmlProcessUtilizationInfo_v1_t){
			.timeStamp = now_us,
			.pid = process.pid,
			.smUtil = process.busy_pct,
			.memUtil = nvml_card_memory_pct(card, process.used_bytes),
		};
	info->processSamplesCount = n;
	return NVML_SUCCESS;
}
