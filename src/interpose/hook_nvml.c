/* NVML: the memory of the tenant's virtual card. */
#include <string.h>

#include "interpose/guest.h"
#include "interpose/ledger.h"
#include "interpose/real.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "GPU-xxxxxxxx-xxxx-..." or "MIG-...": 32 hexadecimal digits after the prefix. */
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

/* The tenant's index of an NVML device; -1: tell the physical card's figures. */
static int nvml_index(nvmlDevice_t device)
{
	char text[NVML_DEVICE_UUID_BUFFER_SIZE] = "";
	uint8_t uuid[16];

	if (guest_join() != GUEST_ACTIVE || !real_nvml.nvmlDeviceGetUUID ||
	    real_nvml.nvmlDeviceGetUUID(device, text, sizeof(text)) != NVML_SUCCESS ||
	    !parse_uuid(text, uuid))
		return -1;
	return guest_uuid_index(uuid);
}

static void virtual_memory(int index, unsigned long long *total, unsigned long long *free_bytes,
			   unsigned long long *used_bytes)
{
	uint64_t quota = ledger_quota(index), used = ledger_used(index);

	if (quota >= *total)
		quota = *total;
	uint64_t left = used < quota ? quota - used : 0;
	*free_bytes = *free_bytes < left ? *free_bytes : left;
	*used_bytes = used < quota ? used : quota;
	*total = quota;
}

ALLOT_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
ALLOT_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	if (!real_find_nvml() || !real_nvml.nvmlDeviceGetMemoryInfo)
		return NVML_ERROR_UNINITIALIZED;
	nvmlReturn_t result = real_nvml.nvmlDeviceGetMemoryInfo(device, memory);
	int index = result == NVML_SUCCESS ? nvml_index(device) : -1;

	if (index >= 0)
		virtual_memory(index, &memory->total, &memory->free, &memory->used);
	return result;
}

ALLOT_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
ALLOT_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	if (!real_find_nvml())
		return NVML_ERROR_UNINITIALIZED;
	if (!real_nvml.nvmlDeviceGetMemoryInfo_v2)
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	nvmlReturn_t result = real_nvml.nvmlDeviceGetMemoryInfo_v2(device, memory);
	int index = result == NVML_SUCCESS ? nvml_index(device) : -1;

	if (index >= 0) {
		virtual_memory(index, &memory->total, &memory->free, &memory->used);
		memory->reserved = 0; /* the driver's own share is outside the quota */
	}
	return result;
}
