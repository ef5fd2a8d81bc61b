/* The NVML backend. NVML is loaded at run time; functions that older drivers lack are optional (versions: abi/nvml_abi.h). */
#include "daemon/gpu/nvml/gpu_nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NVML_PROCESSES_MAX 4096
#define LACKS "the driver's libnvidia-ml.so.1 lacks "

static const char *nvml_strerror(nvmlReturn_t r)
{
	switch (r) {
	case NVML_ERROR_UNINITIALIZED: return "not initialized";
	case NVML_ERROR_NOT_SUPPORTED: return "not supported by this GPU or driver";
	case NVML_ERROR_NO_PERMISSION: return "no permission";
	case NVML_ERROR_NOT_FOUND: return "not found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "list too long";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "the NVIDIA driver is not loaded";
	case NVML_ERROR_TIMEOUT: return "timed out";
	case NVML_ERROR_GPU_IS_LOST: return "the GPU is lost";
	default: return "failed";
	}
}

static int nvml_errno(nvmlReturn_t r)
{
	switch (r) {
	case NVML_SUCCESS: return 0;
	case NVML_ERROR_NOT_SUPPORTED:
	case NVML_ERROR_FUNCTION_NOT_FOUND: return EOPNOTSUPP;
	case NVML_ERROR_NO_PERMISSION: return EPERM;
	case NVML_ERROR_DRIVER_NOT_LOADED:
	case NVML_ERROR_NOT_FOUND:
	case NVML_ERROR_GPU_IS_LOST: return ENODEV;
	case NVML_ERROR_TIMEOUT: return ETIMEDOUT;
	default: return EIO;
	}
}

int gpu_nvml_fail(struct error *err, const char *call, nvmlReturn_t r)
{
	return error_set(err, nvml_errno(r), "%s: %s (NVML code %d)", call, nvml_strerror(r),
			 (int)r);
}

static int load(struct gpu *gpu, const char *path, struct error *err)
{
	gpu->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!gpu->library)
		return error_set(
			err, ENODEV,
			"no NVIDIA driver found: %s: install NVIDIA's driver, or in a container use NVIDIA's runtime",
			dlerror());

#define X(field, symbol, required, parameters) \
	gpu->field = (__typeof__(gpu->field))dlsym(gpu->library, symbol); \
	if (required && !gpu->field) \
		return error_set(err, ENODEV, "%s lacks %s: the NVIDIA driver is too old", path, \
				 symbol);
	NVML_ENTRIES(X)
#undef X
	return 0;
}

static struct gpu *nvml_close(struct gpu *gpu)
{
	if (!gpu)
		return NULL;
	if (gpu->events)
		gpu->event_set_free(gpu->events);
	if (gpu->initialized)
		gpu->shutdown();
	if (gpu->library)
		dlclose(gpu->library);
	free(gpu->device);
	free(gpu);
	return NULL;
}

static void cleanup_gpu(struct gpu **gpu)
{
	nvml_close(*gpu);
}

static int nvml_open(const char *source, struct gpu **ret, struct error *err)
{
	cleanup(cleanup_gpu) struct gpu *gpu = calloc(1, sizeof(*gpu));
	if (!gpu)
		return error_set_errno(err, ENOMEM, "NVML");

	int r = load(gpu, source, err);
	if (r < 0)
		return r;
	nvmlReturn_t n = gpu->init();
	if (n != NVML_SUCCESS)
		return gpu_nvml_fail(err, "nvmlInit", n);
	gpu->initialized = true;
	r = gpu_nvml_find_devices(gpu, err);
	if (r < 0)
		return r;
	if (gpu->driver_version)
		gpu->driver_version(gpu->version, sizeof(gpu->version));
	gpu->version[sizeof(gpu->version) - 1] = '\0';
	*ret = steal_pointer(&gpu);
	return 0;
}

static unsigned nvml_count(struct gpu *gpu)
{
	return gpu->device_count;
}

static const char *nvml_driver_version(struct gpu *gpu)
{
	return gpu->version;
}

static unsigned nvml_cuda_version(struct gpu *gpu)
{
	int version = 0;

	return gpu->cuda_version && gpu->cuda_version(&version) == NVML_SUCCESS && version > 0
		       ? (unsigned)version
		       : 0;
}

static const char *nvml_left_out(struct gpu *gpu)
{
	return gpu->left_out;
}

static int nvml_memory(struct gpu *gpu, unsigned index, struct gpu_memory *ret, struct error *err)
{
	if (gpu->memory_v2) {
		nvmlMemory_v2_t m = { .version = nvmlMemory_v2 };
		if (gpu->memory_v2(gpu->device[index].handle, &m) == NVML_SUCCESS) {
			*ret = (struct gpu_memory){ .used_bytes = m.used,
						    .total_bytes = m.total,
						    .reserved_bytes = m.reserved };
			return 0;
		}
	}
	nvmlMemory_t m = { 0 };
	nvmlReturn_t r = gpu->memory(gpu->device[index].handle, &m);
	if (r != NVML_SUCCESS)
		return error_add(err, gpu_nvml_fail(err, "nvmlDeviceGetMemoryInfo", r), "GPU %u",
				 index);
	*ret = (struct gpu_memory){ .used_bytes = m.used, .total_bytes = m.total };
	return 0;
}

/* Reads the compute capability; for a MIG instance, that of its GPU (device->card). */
static void read_capability(struct gpu *gpu, const struct gpu_nvml_device *device,
			    struct gpu_info *info)
{
	int major, minor;

	if (!gpu->capability || gpu->capability(device->card, &major, &minor) != NVML_SUCCESS ||
	    major <= 0 || minor < 0)
		return;
	info->capability_major = (unsigned)major;
	info->capability_minor = (unsigned)minor;
}

/* NVML reports the SMs of a MIG instance, but only the cores of a GPU: divides these by the cores per SM. 0: unknown. */
static unsigned count_sms(struct gpu *gpu, const struct gpu_nvml_device *device,
			  const struct gpu_info *info)
{
	nvmlDeviceAttributes_t attributes;
	unsigned cores = 0, major = info->capability_major, minor = info->capability_minor;

	if (device->is_instance)
		return gpu->attributes && gpu->attributes(device->handle, &attributes) == NVML_SUCCESS
			       ? attributes.multiprocessorCount
			       : 0;
	if (!major || !gpu->cores || gpu->cores(device->handle, &cores) != NVML_SUCCESS)
		return 0;
	/* FP32 cores per SM: CUDA C++ Programming Guide, table of arithmetic instructions. */
	return cores /
	       (major == 7 || (major == 8 && minor == 0) || (major == 6 && minor == 0) ? 64 : 128);
}

static int nvml_info(struct gpu *gpu, unsigned index, struct gpu_info *ret, struct error *err)
{
	struct gpu_info info = { 0 };
	struct gpu_memory memory;

	nvmlReturn_t r = gpu->uuid(gpu->device[index].handle, info.uuid_text,
				   sizeof(info.uuid_text));
	if (r != NVML_SUCCESS)
		return error_add(err, gpu_nvml_fail(err, "nvmlDeviceGetUUID", r), "GPU %u", index);
	info.uuid_text[sizeof(info.uuid_text) - 1] = '\0';
	if (gpu_uuid_parse(info.uuid_text, info.uuid) < 0)
		return error_set(err, EPROTO, "GPU %u: '%s' is not a UUID", index, info.uuid_text);
	r = gpu->name(gpu->device[index].handle, info.name, sizeof(info.name));
	if (r != NVML_SUCCESS)
		return error_add(err, gpu_nvml_fail(err, "nvmlDeviceGetName", r), "GPU %u", index);
	info.name[sizeof(info.name) - 1] = '\0';
	int e = nvml_memory(gpu, index, &memory, err);
	if (e < 0)
		return e;
	if (memory.reserved_bytes >= memory.total_bytes)
		return error_set(err, EPROTO, "GPU %u: NVML reports no usable memory", index);
	info.memory_bytes = memory.total_bytes - memory.reserved_bytes;
	const struct gpu_nvml_device *device = &gpu->device[index];
	info.minor_known = gpu->minor && gpu->minor(device->card, &info.minor) == NVML_SUCCESS;
	info.is_instance = device->is_instance;
	if (info.is_instance && gpu->uuid(device->card, info.card_uuid_text,
					  sizeof(info.card_uuid_text)) != NVML_SUCCESS)
		info.card_uuid_text[0] = '\0';
	read_capability(gpu, device, &info);
	info.sms = count_sms(gpu, device, &info);
	if (info.is_instance && info.minor_known)
		info.caps = mig_caps_read(MIG_CAPS_DIR, info.minor, device->gpu_instance,
					  device->compute_instance);
	*ret = info;
	return 0;
}

/* A process may be in both of NVML's lists (compute and graphics), but is added once. Returns the new count. */
static size_t add_process(struct gpu_process *list, size_t max, size_t count,
			  const nvmlProcessInfo_t *p)
{
	for (size_t i = 0; i < count && i < max; i++)
		if (list[i].pid == (int)p->pid)
			return count;
	if (count < max) {
		bool known = p->usedGpuMemory != NVML_VALUE_NOT_AVAILABLE_ULL;
		list[count] = (struct gpu_process){ .pid = (int)p->pid,
						    .used_known = known,
						    .used_bytes = known ? p->usedGpuMemory : 0 };
	}
	return count + 1;
}

static int nvml_processes(struct gpu *gpu, unsigned index, struct gpu_process *list, size_t max,
			  size_t *ret_count, struct error *err)
{
	if (!gpu->compute)
		return error_set(err, EOPNOTSUPP,
				 "GPU %u: its processes are not known: " LACKS
				 "nvmlDeviceGetComputeRunningProcesses_v3",
				 index);
	cleanup_free nvmlProcessInfo_t *raw = calloc(NVML_PROCESSES_MAX, sizeof(*raw));
	if (!raw)
		return error_set_errno(err, ENOMEM, "list of GPU processes");

	size_t count = 0;
	unsigned n = NVML_PROCESSES_MAX;
	nvmlReturn_t r = gpu->compute(gpu->device[index].handle, &n, raw);
	if (r != NVML_SUCCESS)
		return error_add(err, gpu_nvml_fail(err, "nvmlDeviceGetComputeRunningProcesses", r),
				 "GPU %u", index);
	for (unsigned i = 0; i < n && i < NVML_PROCESSES_MAX; i++)
		count = add_process(list, max, count, &raw[i]);

	n = NVML_PROCESSES_MAX;
	if (gpu->graphics && gpu->graphics(gpu->device[index].handle, &n, raw) == NVML_SUCCESS)
		for (unsigned i = 0; i < n && i < NVML_PROCESSES_MAX; i++)
			count = add_process(list, max, count, &raw[i]);
	*ret_count = count;
	return 0;
}

/* Keeps only the latest sample of each process. Returns the new count. */
static size_t add_use(struct gpu_use *list, size_t max, size_t count,
		      const nvmlProcessUtilizationSample_t *s)
{
	size_t i = 0;
	while (i < count && list[i].pid != (int)s->pid)
		i++;
	if (i == max || (i < count && list[i].stamp_us >= s->timeStamp))
		return count;
	list[i] = (struct gpu_use){ .pid = (int)s->pid,
				    .share = s->smUtil < 100 ? s->smUtil / 100.0 : 1,
				    .stamp_us = s->timeStamp };
	return i == count ? count + 1 : count;
}

static int nvml_use(struct gpu *gpu, unsigned index, uint64_t since_us, struct gpu_use *list,
		    size_t max, size_t *ret_count, struct error *err)
{
	if (!gpu->process_use)
		return error_set(err, EOPNOTSUPP,
				 "GPU %u: the GPU time of each process is not known: " LACKS
				 "nvmlDeviceGetProcessUtilization",
				 index);
	cleanup_free nvmlProcessUtilizationSample_t *raw = calloc(NVML_PROCESSES_MAX, sizeof(*raw));
	if (!raw)
		return error_set_errno(err, ENOMEM, "samples of GPU use");
	unsigned n = NVML_PROCESSES_MAX;
	nvmlReturn_t r = gpu->process_use(gpu->device[index].handle, raw, &n, since_us);
	/* NOT_FOUND means that no process worked since since_us. */
	if (r == NVML_ERROR_NOT_FOUND)
		n = 0;
	else if (r != NVML_SUCCESS)
		return error_add(err, gpu_nvml_fail(err, "nvmlDeviceGetProcessUtilization", r),
				 "GPU %u", index);
	size_t count = 0;
	for (unsigned i = 0; i < n && i < NVML_PROCESSES_MAX; i++)
		/* Entries that NVML did not write have no time stamp. */
		if (raw[i].timeStamp > since_us)
			count = add_use(list, max, count, &raw[i]);
	*ret_count = count;
	return 0;
}

static int nvml_busy(struct gpu *gpu, unsigned index, double *ret_share, struct error *err)
{
	nvmlUtilization_t rates = { 0 };
	if (!gpu->rates)
		return error_set(err, EOPNOTSUPP,
				 "GPU %u: its utilization is not known: " LACKS
				 "nvmlDeviceGetUtilizationRates",
				 index);
	nvmlReturn_t r = gpu->rates(gpu->device[index].handle, &rates);
	if (r != NVML_SUCCESS)
		return error_add(err, gpu_nvml_fail(err, "nvmlDeviceGetUtilizationRates", r),
				 "GPU %u", index);
	*ret_share = rates.gpu < 100 ? rates.gpu / 100.0 : 1;
	return 0;
}

const struct gpu_backend gpu_nvml = {
	.name = "nvml",
	.open = nvml_open,
	.close = nvml_close,
	.count = nvml_count,
	.driver_version = nvml_driver_version,
	.cuda_version = nvml_cuda_version,
	.left_out = nvml_left_out,
	.info = nvml_info,
	.memory = nvml_memory,
	.processes = nvml_processes,
	.use = nvml_use,
	.busy = nvml_busy,
	.locality = gpu_nvml_locality,
	.links = gpu_nvml_links,
	.wait_fault = gpu_nvml_wait_fault,
};
