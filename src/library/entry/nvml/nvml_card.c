#include "library/entry/nvml/nvml_card.h"

#include <stdio.h>
#include <string.h>

#include "library/loader/real.h"
#include "library/memory/ledger.h"
#include "library/process.h"
#include "library/state/process_state.h"

#define WHOLE_PCT_X100 10000U

/* The handle that a call last used, by index of the tenant's GPU. */
static _Atomic(nvmlDevice_t) last_seen[REGION_MAX_DEVICES];

bool nvml_is_governed(void)
{
	enum process_mode mode = process_join();

	return mode == PROCESS_ACTIVE || mode == PROCESS_REFUSED;
}

bool nvml_is_started(void)
{
	unsigned int count;

	return !real_nvml.nvmlDeviceGetCount_v2 ||
	       real_nvml.nvmlDeviceGetCount_v2(&count) != NVML_ERROR_UNINITIALIZED;
}

int nvml_card_count(void)
{
	const struct region_control *control = atomic_load(&process_state.control);

	return process_is_active() && control ? (int)control->device_count : 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Parses "GPU-" or "MIG-" and 32 hexadecimal digits. Skips hyphens and other characters between the digits. */
static bool parse_uuid(const char *text, uint8_t uuid[16])
{
	unsigned digits = 0;

	if (strlen(text) < 4)
		return false;
	memset(uuid, 0, 16);
	for (const char *c = text + 4; *c && digits < 32; c++) {
		int value = hex_digit(*c);
		if (value < 0)
			continue;
		uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | value);
		digits++;
	}
	return digits == 32;
}

static nvmlReturn_t read_uuid(nvmlDevice_t device, uint8_t uuid[16])
{
	char text[NVML_DEVICE_UUID_BUFFER_SIZE] = "";

	if (!real_nvml.nvmlDeviceGetUUID)
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	nvmlReturn_t result = real_nvml.nvmlDeviceGetUUID(device, text, sizeof(text));
	if (result != NVML_SUCCESS)
		return result;
	return parse_uuid(text, uuid) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static int instance_on(const uint8_t uuid[16])
{
	for (int i = 0; i < nvml_card_count(); i++) {
		nvmlDevice_t gpu;
		uint8_t its[16];
		if (nvml_is_instance(i) && nvml_gpu_of(i, &gpu) == NVML_SUCCESS &&
		    read_uuid(gpu, its) == NVML_SUCCESS && memcmp(its, uuid, 16) == 0)
			return i;
	}
	return -1;
}

/* NVML (580, H200) no longer tells the UUID of a handle from before its last start, but some functions accept the handle. */
static nvmlReturn_t remembered(nvmlDevice_t device, nvmlReturn_t why, int *ret_card)
{
	if (why == NVML_ERROR_UNINITIALIZED)
		return why;
	for (int i = 0; device && i < nvml_card_count(); i++)
		if (atomic_load_explicit(&last_seen[i], memory_order_relaxed) == device) {
			*ret_card = i;
			return NVML_SUCCESS;
		}
	return why;
}

nvmlReturn_t nvml_card_of(nvmlDevice_t device, int *ret_card)
{
	uint8_t uuid[16];
	nvmlReturn_t result = read_uuid(device, uuid);

	if (result != NVML_SUCCESS)
		return remembered(device, result, ret_card);
	int card = nvml_card_count() ? process_uuid_index(uuid) : -1;
	if (card < 0)
		card = instance_on(uuid);
	if (card < 0)
		return NVML_ERROR_NOT_FOUND;
	if (!nvml_is_instance(card))
		atomic_store_explicit(&last_seen[card], device, memory_order_relaxed);
	*ret_card = card;
	return NVML_SUCCESS;
}

bool nvml_is_instance(int card)
{
	const struct region_control *control = atomic_load(&process_state.control);

	return control && control->instances >> card & 1;
}

const char *nvml_uuid_prefix(int card)
{
	return nvml_is_instance(card) ? "MIG-" : "GPU-";
}

void nvml_format_uuid(char text[NVML_DEVICE_UUID_BUFFER_SIZE], const char *prefix,
		      const uint8_t uuid[16])
{
	size_t at = (size_t)snprintf(text, NVML_DEVICE_UUID_BUFFER_SIZE, "%s", prefix);

	for (int i = 0; i < 16; i++)
		at += (size_t)snprintf(text + at, NVML_DEVICE_UUID_BUFFER_SIZE - at, "%s%02x",
				       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

nvmlReturn_t nvml_device_of(int card, nvmlDevice_t *ret_device)
{
	const uint8_t *uuid = process_control_device(card)->uuid;
	char text[NVML_DEVICE_UUID_BUFFER_SIZE];

	if (!real_nvml.nvmlDeviceGetHandleByUUID)
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	nvml_format_uuid(text, nvml_uuid_prefix(card), uuid);
	return real_nvml.nvmlDeviceGetHandleByUUID(text, ret_device);
}

nvmlReturn_t nvml_gpu_of(int card, nvmlDevice_t *ret_device)
{
	nvmlDevice_t device;
	nvmlReturn_t result = nvml_device_of(card, &device);

	if (result != NVML_SUCCESS)
		return result;
	if (nvml_is_instance(card)) {
		if (!real_nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle)
			return NVML_ERROR_FUNCTION_NOT_FOUND;
		return real_nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device, ret_device);
	}
	*ret_device = device;
	return NVML_SUCCESS;
}

void nvml_instance_ids(int card, unsigned int *ret_gpu_instance, unsigned int *ret_compute_instance)
{
	nvmlDevice_t device;

	*ret_gpu_instance = *ret_compute_instance = NVML_NO_INSTANCE;
	if (!nvml_is_instance(card) || nvml_device_of(card, &device) != NVML_SUCCESS)
		return;
	if (real_nvml.nvmlDeviceGetGpuInstanceId)
		real_nvml.nvmlDeviceGetGpuInstanceId(device, ret_gpu_instance);
	if (real_nvml.nvmlDeviceGetComputeInstanceId)
		real_nvml.nvmlDeviceGetComputeInstanceId(device, ret_compute_instance);
}

unsigned int nvml_card_busy_pct(int card)
{
	const struct region_control_device *d = process_control_device(card);
	uint64_t got = atomic_load_explicit(&d->got_1s_pct_x100, memory_order_relaxed);
	uint64_t limit = atomic_load_explicit(&d->limit_pct_x100, memory_order_relaxed);

	if (!limit)
		limit = WHOLE_PCT_X100;
	uint64_t pct = (got * 100 + limit / 2) / limit;
	return pct < 100 ? (unsigned int)pct : 100;
}

unsigned int nvml_card_memory_pct(int card, uint64_t bytes)
{
	uint64_t quota = ledger_quota(card);

	return bytes < quota ? (unsigned int)((double)bytes * 100 / (double)quota) : 100;
}

/* The weight by which a process gets a part of the GPU's busy time: its recent use, plus 1 while work is in flight. */
static uint64_t weight_of(const struct region_slot_device *d)
{
	return (uint64_t)atomic_load_explicit(&d->recent_us, memory_order_relaxed) +
	       (atomic_load_explicit(&d->busy, memory_order_relaxed) != 0);
}

static uint64_t held_bytes(const struct region_slot_device *d)
{
	return atomic_load(&d->used_bytes) +
	       atomic_load_explicit(&d->unnamed_bytes, memory_order_relaxed);
}

/* Skips processes without a context on the GPU, because NVML does not show them. */
static const struct region_slot *next_slot(int card, uint32_t *at)
{
	const struct region_control *control = atomic_load(&process_state.control);
	const struct region_report *report = atomic_load(&process_state.report);
	uint32_t limit = atomic_load_explicit(&control->slot_limit, memory_order_acquire);

	while (*at < limit && *at < REGION_MAX_SLOTS) {
		const struct region_slot *slot = &report->slot[(*at)++];
		if (atomic_load_explicit(&slot->state, memory_order_acquire) == SLOT_LIVE &&
		    atomic_load(&slot->device[card].context_used_bytes))
			return slot;
	}
	return NULL;
}

struct nvml_process_iterator nvml_processes(int card)
{
	struct nvml_process_iterator it = { .card = card, .busy_pct = nvml_card_busy_pct(card) };
	const struct region_slot *slot;

	for (uint32_t at = 0; (slot = next_slot(card, &at));)
		it.weights += weight_of(&slot->device[card]);
	return it;
}

bool nvml_next_process(struct nvml_process_iterator *it, struct nvml_process *ret_process)
{
	const struct region_slot *slot = next_slot(it->card, &it->next_slot);

	if (!slot)
		return false;
	const struct region_slot_device *d = &slot->device[it->card];
	uint64_t weight = weight_of(d);
	/* The weight may have grown since the sum was made. The result must not exceed busy_pct. */
	uint64_t weights = it->weights > weight ? it->weights : weight;
	int32_t own_pid = atomic_load_explicit(&slot->own_pid, memory_order_relaxed);
	int32_t pid = atomic_load_explicit(&slot->pid, memory_order_relaxed);
	*ret_process = (struct nvml_process){
		.pid = (unsigned int)(own_pid ? own_pid : pid),
		.used_bytes = held_bytes(d),
		.busy_pct = weights ? (unsigned int)(it->busy_pct * weight / weights) : 0,
	};
	return true;
}

unsigned int nvml_process_count(int card)
{
	unsigned int count = 0;

	for (uint32_t at = 0; next_slot(card, &at);)
		count++;
	return count;
}
