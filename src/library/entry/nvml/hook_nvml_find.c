#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "library/entry/nvml/nvml_card.h"
#include "library/entry/nvml/nvml_hooks.h"
#include "library/loader/real.h"

#define MAX_DEVICES 64 /* NVML supports no more per machine */

/* Counts the tenant's devices. If NVML's own count is 0, as after a start with NVML_INIT_FLAG_NO_ATTACH, keeps the 0. */
DEFINE_LOOK_HOOK(nvml_count, get, (unsigned int *count))
{
	nvmlReturn_t result = get(count);

	if (result == NVML_SUCCESS && *count)
		*count = (unsigned int)nvml_card_count();
	return result;
}

static bool has_devices(void)
{
	unsigned int count;

	return !real_nvml.nvmlDeviceGetCount_v2 ||
	       real_nvml.nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS || count;
}

DEFINE_LOOK_HOOK(nvml_by_index, get, (unsigned int index, nvmlDevice_t *device))
{
	return device && index < (unsigned int)nvml_card_count() && has_devices()
		       ? nvml_gpu_of((int)index, device)
		       : NVML_ERROR_INVALID_ARGUMENT;
}

/* For an index without a device, NVML's old function sets *device to the last device (NVML 580, seen on an H200). */
DEFINE_LOOK_HOOK(nvml_by_index_v1, get, (unsigned int index, nvmlDevice_t *device))
{
	int count = nvml_card_count();

	if (device && count && index >= (unsigned int)count && has_devices())
		nvml_gpu_of(count - 1, device);
	return nvml_by_index(get, index, device);
}

static nvmlReturn_t only_own(nvmlReturn_t result, nvmlDevice_t *device)
{
	nvmlDevice_t found = result == NVML_SUCCESS ? *device : NULL;
	int card;

	if (result != NVML_SUCCESS || nvml_card_of(found, &card) == NVML_SUCCESS)
		return result;
	*device = NULL;
	return NVML_ERROR_NOT_FOUND;
}

DEFINE_LOOK_HOOK(nvml_by_text, get, (const char *text, nvmlDevice_t *device))
{
	return only_own(get(text, device), device);
}

DEFINE_LOOK_HOOK(nvml_by_uuid, get, (const nvmlUUID_t *uuid, nvmlDevice_t *device))
{
	return only_own(get(uuid, device), device);
}

/* On a GPU in MIG mode the tenant's only instance has index 0. */
DEFINE_LOOK_HOOK(nvml_mig_device, get,
		 (nvmlDevice_t device, unsigned int index, nvmlDevice_t *instance))
{
	int card;
	nvmlReturn_t result = nvml_card_of(device, &card);

	if (result != NVML_SUCCESS)
		return NVML_REFUSED(result, get(device, index, instance));
	if (!nvml_is_instance(card))
		return get(device, index, instance);
	result = get(device, index, instance); /* only checks the arguments */
	if (result != NVML_SUCCESS && result != NVML_ERROR_NOT_FOUND)
		return result;
	return index ? NVML_ERROR_NOT_FOUND : nvml_device_of(card, instance);
}

static unsigned int keep_own(nvmlDevice_t *found, unsigned int count)
{
	unsigned int kept = 0;
	int card;

	for (unsigned int i = 0; i < count; i++)
		if (nvml_card_of(found[i], &card) == NVML_SUCCESS)
			found[kept++] = found[i];
	return kept;
}

/*
 * Answers a topology query as NVML 580 does (seen on an H200). With *count 0 and no array: sets *count to the number of
 * devices. With *count above 0 and an array: fills the array and, unless keeps_count, sets *count. Anything else is invalid.
 */
static nvmlReturn_t fill_devices(nvmlReturn_t result, nvmlDevice_t *found, unsigned int found_count,
				 bool keeps_count, unsigned int *count, nvmlDevice_t *devices)
{
	if (result != NVML_SUCCESS)
		return result;
	if ((*count == 0) != (devices == NULL))
		return NVML_ERROR_INVALID_ARGUMENT;
	unsigned int kept = keep_own(found, found_count);
	if (devices && kept > *count)
		kept = *count;
	if (devices)
		memcpy(devices, found, kept * sizeof(*devices));
	if (!devices || !keeps_count)
		*count = kept;
	return NVML_SUCCESS;
}

DEFINE_LOOK_HOOK(nvml_unit_devices, get,
		 (nvmlUnit_t unit, unsigned int *count, nvmlDevice_t *devices))
{
	nvmlReturn_t result = get(unit, count, devices);

	if (result == NVML_SUCCESS && devices)
		*count = keep_own(devices, *count);
	return result;
}

DEFINE_LOOK_HOOK(nvml_gpus_of_cpu, get,
		 (unsigned int cpu, unsigned int *count, nvmlDevice_t *devices))
{
	nvmlDevice_t found[MAX_DEVICES];
	unsigned int found_count = 0;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	nvmlReturn_t result = get(cpu, &found_count, NULL);
	if (result == NVML_SUCCESS && found_count > MAX_DEVICES)
		found_count = MAX_DEVICES;
	if (result == NVML_SUCCESS && found_count)
		result = get(cpu, &found_count, found);
	return fill_devices(result, found, found_count, true, count, devices);
}

DEFINE_CARD_HOOK(nvml_nearest_gpus, get,
		 (nvmlDevice_t device, nvmlGpuTopologyLevel_t level, unsigned int *count,
		  nvmlDevice_t *devices))
{
	nvmlDevice_t found[MAX_DEVICES];
	unsigned int found_count = 0;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	nvmlReturn_t result = get(device, level, &found_count, NULL);
	if (result == NVML_SUCCESS && found_count > MAX_DEVICES)
		found_count = MAX_DEVICES;
	if (result == NVML_SUCCESS && found_count)
		result = get(device, level, &found_count, found);
	return fill_devices(result, found, found_count, false, count, devices);
}

/* `pid` belongs to this process's pid namespace. The driver may not know that namespace, so read /proc instead. */
DEFINE_LOOK_HOOK(nvml_process_name, get, (unsigned int pid, char *name, unsigned int length))
{
	char path[32], line[4096];
	int saved = errno;

	if (!name || !length)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int error = errno;
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (fd >= 0)
		close(fd);
	errno = saved;
	if (fd < 0 && error == EACCES)
		return NVML_ERROR_NO_PERMISSION;
	if (n < 0)
		return NVML_ERROR_NOT_FOUND;
	if (!n)
		/* A kernel thread, or a process that has ended, has no command line. */
		return NVML_ERROR_NO_DATA;
	line[n] = '\0'; /* snprintf() copies up to the first NUL, which ends the program's path */
	snprintf(name, length, "%s", line);
	return NVML_SUCCESS;
}
