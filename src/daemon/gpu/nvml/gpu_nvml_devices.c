/* Finds NVML's devices: GPUs, or the instances of a GPU in MIG mode. Never creates or destroys instances. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/gpu/nvml/gpu_nvml.h"

__attribute__((format(printf, 2, 3))) static void leave_out(struct gpu *gpu, const char *format, ...)
{
	static const char more[] = "; and 4294967295 more";
	char entry[256], *end = gpu->left_out + gpu->left_out_length;
	const size_t room = sizeof(gpu->left_out) - gpu->left_out_length;
	const char *separator = gpu->left_out_length ? "; " : "";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(entry, sizeof(entry), format, arguments);
	va_end(arguments);
	if (gpu->left_out_more || strlen(separator) + strlen(entry) + sizeof(more) > room)
		snprintf(end, room, "%sand %u more", separator, ++gpu->left_out_more);
	else
		gpu->left_out_length += (size_t)snprintf(end, room, "%s%s", separator, entry);
}

static int add(struct gpu *gpu, const struct gpu_nvml_device *device, struct error *err)
{
	struct gpu_nvml_device *list = realloc(gpu->device, (gpu->device_count + 1) * sizeof(*list));

	if (!list)
		return error_set_errno(err, ENOMEM, "list of GPUs");
	gpu->device = list;
	list[gpu->device_count++] = *device;
	return 0;
}

static void read_uuid(struct gpu *gpu, nvmlDevice_t device, char ret[GPU_UUID_TEXT_MAX])
{
	if (gpu->uuid(device, ret, GPU_UUID_TEXT_MAX) != NVML_SUCCESS)
		strcpy(ret, "?");
	ret[GPU_UUID_TEXT_MAX - 1] = '\0';
}

static bool is_in_mig_mode(struct gpu *gpu, nvmlDevice_t card)
{
	unsigned current = 0, pending = 0;

	return gpu->mig_mode && gpu->mig_most && gpu->mig_device && gpu->mig_gpu_instance &&
	       gpu->mig_compute_instance &&
	       gpu->mig_mode(card, &current, &pending) == NVML_SUCCESS && current;
}

/* Reads the MIG instance at index `place` of a GPU (`card`). Returns 1, 0 if there is none, or -errno. */
static int read_instance(struct gpu *gpu, nvmlDevice_t card, unsigned place,
			 struct gpu_nvml_device *ret, struct error *err)
{
	struct gpu_nvml_device d = { .card = card, .is_instance = true };
	nvmlReturn_t r = gpu->mig_device(card, place, &d.handle);

	if (r == NVML_ERROR_NOT_FOUND || r == NVML_ERROR_INVALID_ARGUMENT)
		return 0;
	if (r != NVML_SUCCESS)
		return gpu_nvml_fail(err, "nvmlDeviceGetMigDeviceHandleByIndex", r);
	r = gpu->mig_gpu_instance(d.handle, &d.gpu_instance);
	if (r != NVML_SUCCESS)
		return gpu_nvml_fail(err, "nvmlDeviceGetGpuInstanceId", r);
	r = gpu->mig_compute_instance(d.handle, &d.compute_instance);
	if (r != NVML_SUCCESS)
		return gpu_nvml_fail(err, "nvmlDeviceGetComputeInstanceId", r);
	*ret = d;
	return 1;
}

/* Several compute instances of one GPU instance share memory, so no quota for one of them could be enforced. */
static bool is_alone(const struct gpu_nvml_device *list, unsigned count, unsigned self)
{
	for (unsigned i = 0; i < count; i++)
		if (i != self && list[i].gpu_instance == list[self].gpu_instance)
			return false;
	return true;
}

static int add_instances(struct gpu *gpu, nvmlDevice_t card, struct error *err)
{
	struct gpu_nvml_device found[GPU_NVML_INSTANCES_MAX];
	char uuid[GPU_UUID_TEXT_MAX];
	unsigned most = 0, count = 0;
	int e = 0;

	nvmlReturn_t r = gpu->mig_most(card, &most);
	if (r != NVML_SUCCESS)
		return gpu_nvml_fail(err, "nvmlDeviceGetMaxMigDeviceCount", r);
	for (unsigned i = 0; i < most && count < GPU_NVML_INSTANCES_MAX; i++) {
		e = read_instance(gpu, card, i, &found[count], err);
		if (e < 0)
			return e;
		count += e > 0;
	}
	if (!count) {
		read_uuid(gpu, card, uuid);
		leave_out(gpu,
			  "%s is in MIG mode and has no instance (create one, or turn MIG mode off)",
			  uuid);
	}
	for (unsigned i = 0; i < count; i++) {
		if (!is_alone(found, count, i)) {
			read_uuid(gpu, found[i].handle, uuid);
			leave_out(gpu,
				  "%s shares the memory of GPU instance %u with another compute instance, so "
				  "no quota could be enforced (leave one compute instance in it, "
				  "then restart allotd)",
				  uuid, found[i].gpu_instance);
			continue;
		}
		e = add(gpu, &found[i], err);
		if (e < 0)
			return e;
	}
	return 0;
}

int gpu_nvml_find_devices(struct gpu *gpu, struct error *err)
{
	unsigned count = 0;
	nvmlReturn_t r = gpu->count(&count);

	if (r != NVML_SUCCESS)
		return gpu_nvml_fail(err, "nvmlDeviceGetCount", r);
	if (count == 0)
		return error_set(err, ENODEV,
				 "the NVIDIA driver is installed, but finds no GPU: nvidia-smi -L must "
				 "list one here; a container must be given its GPUs");
	for (unsigned i = 0; i < count; i++) {
		struct gpu_nvml_device d = { 0 };
		r = gpu->handle(i, &d.handle);
		if (r != NVML_SUCCESS)
			return error_add(err, gpu_nvml_fail(err, "nvmlDeviceGetHandleByIndex", r),
					 "GPU %u", i);
		d.card = d.handle;
		int e = is_in_mig_mode(gpu, d.card) ? add_instances(gpu, d.card, err)
						    : add(gpu, &d, err);
		if (e < 0)
			return error_add(err, e, "GPU %u", i);
	}
	if (!gpu->device_count)
		return error_set(err, ENODEV, "no GPU to share: %s", gpu->left_out);
	return 0;
}
