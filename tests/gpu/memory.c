/*
 * gpu-memory --quota BYTES: memory calls of the driver under a quota.
 *
 * Prints "ok NAME" or "not ok NAME: why" for what it can judge itself. Where the tenant's ledger is to
 * be compared with what NVML says from outside, it prints "probe NAME BYTES" (what it holds beside its
 * context) and waits for a line of input; "pid N" comes first. tests/gpu/run is at the other end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda.h"

#define MIB ((size_t)1 << 20)
#define HELD_MAX 256

static size_t quota_bytes;
static int failures;

static void verdict(bool is_good, const char *name, const char *detail)
{
	if (is_good)
		printf("ok %s\n", name);
	else
		printf("not ok %s: %s\n", name, detail);
	failures += !is_good;
	fflush(stdout);
}

static void probe(const char *name, size_t bytes)
{
	char line[16];

	printf("probe %s %zu\n", name, bytes);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

static size_t distance(size_t a, size_t b)
{
	return a > b ? a - b : b - a;
}

/* ---- what the tenant is told ---- */

struct nvml_memory {
	unsigned long long total, free, used;
};

/* -1 when NVML can't be asked; ENOSYS and such are its numbers. */
static int ask_nvml(struct nvml_memory *ret)
{
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*init)(void), (*by_pci)(const char *, void **), (*memory)(void *, struct nvml_memory *);
	char pci[64];
	void *device;

	if (!lib)
		return -1;
	*(void **)&init = dlsym(lib, "nvmlInit_v2");
	*(void **)&by_pci = dlsym(lib, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&memory = dlsym(lib, "nvmlDeviceGetMemoryInfo");
	if (!init || !by_pci || !memory || init() != 0)
		return -1;
	GPU_DO(device_pci, pci, sizeof(pci), gpu.dev);
	if (by_pci(pci, &device) != 0)
		return -1;
	return memory(device, ret);
}

static void check_totals(void)
{
	struct nvml_memory nvml = { 0 };
	size_t device_total, total, free_bytes;
	char detail[256];

	GPU_DO(device_total, &device_total, gpu.dev);
	GPU_DO(mem_info, &free_bytes, &total);
	snprintf(detail, sizeof(detail), "%zu, quota %zu", device_total, quota_bytes);
	verdict(device_total == quota_bytes, "cuDeviceTotalMem is the quota", detail);
	snprintf(detail, sizeof(detail), "total %zu, free %zu, quota %zu", total, free_bytes,
		 quota_bytes);
	verdict(total == quota_bytes && free_bytes < total, "cuMemGetInfo's total is the quota",
		detail);
	if (ask_nvml(&nvml) != 0) {
		verdict(false, "NVML's memory in the tenant", "it can't be asked");
		return;
	}
	snprintf(detail, sizeof(detail), "NVML total %llu, used %llu, free %llu; driver free %zu",
		 nvml.total, nvml.used, nvml.free, free_bytes);
	verdict(nvml.total == quota_bytes && nvml.used + nvml.free == nvml.total &&
			distance(nvml.free, free_bytes) <= 2 * MIB,
		"NVML's memory in the tenant agrees with the driver's", detail);
}

static void check_refusal(void)
{
	size_t total, free_bytes;
	CUresult whole, over, within;
	CUdeviceptr p = 0;
	char detail[256];

	GPU_DO(mem_info, &free_bytes, &total);
	whole = gpu.mem_alloc(&p, quota_bytes);
	over = gpu.mem_alloc(&p, free_bytes + 64 * MIB);
	snprintf(detail, sizeof(detail), "the whole quota: %s; 64 MiB more than is free: %s",
		 gpu_error_name(whole), gpu_error_name(over));
	verdict(whole == CUDA_ERROR_OUT_OF_MEMORY && over == CUDA_ERROR_OUT_OF_MEMORY,
		"an allocation over the quota is CUDA_ERROR_OUT_OF_MEMORY", detail);
	within = gpu.mem_alloc(&p, free_bytes - 64 * MIB);
	verdict(within == CUDA_SUCCESS, "what is left of the quota can be had afterwards",
		gpu_error_name(within));
	if (within == CUDA_SUCCESS)
		GPU_DO(mem_free, p);
}

/* ---- allocations of each kind, held while they are looked at ---- */

static CUdeviceptr held[HELD_MAX];
static unsigned int held_count;

static void hold(size_t bytes, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		GPU_DO(mem_alloc, &held[held_count++], bytes);
}

static void free_held(void)
{
	while (held_count > 0)
		GPU_DO(mem_free, held[--held_count]);
}

static void probe_plain(void)
{
	hold(1, 100);
	hold(1 * MIB, 64);
	hold(3 * MIB, 16);
	hold(64 * MIB + 4096, 8);
	probe("plain", 100 + 64 * MIB + 48 * MIB + 8 * (64 * MIB + 4096));
	free_held();
}

static void probe_pitched(void)
{
	size_t pitch = 0;

	for (int i = 0; i < 32; i++)
		GPU_DO(mem_alloc_pitch, &held[held_count++], &pitch, 4000, 4000, 4);
	probe("pitched", 32 * pitch * 4000);
	free_held();
}

static void probe_array(void)
{
	CUDA_ARRAY_DESCRIPTOR desc = { 3000, 1500, CU_AD_FORMAT_FLOAT, 1 };
	CUarray array[16];

	for (int i = 0; i < 16; i++)
		GPU_DO(array_create, &array[i], &desc);
	probe("array", (size_t)16 * 3000 * 1500 * 4);
	for (int i = 0; i < 16; i++)
		GPU_DO(array_destroy, array[i]);
}

static void probe_pool(void)
{
	CUmemoryPool pool;
	CUstream stream;

	GPU_DO(stream_create, &stream, CU_STREAM_NON_BLOCKING);
	for (int i = 0; i < 8; i++)
		GPU_DO(mem_alloc_async, &held[held_count++], 50 * MIB, stream);
	GPU_DO(stream_sync, stream);
	probe("pool", 400 * MIB);
	while (held_count > 0)
		GPU_DO(mem_free_async, held[--held_count], stream);
	GPU_DO(stream_sync, stream);
	GPU_DO(default_pool, &pool, gpu.dev);
	GPU_DO(pool_trim, pool, 0);
	GPU_DO(stream_destroy, stream);
}

/* Nearly full: less is left than a pool grows by, and the request still fits. */
static void check_pool_near_quota(void)
{
	CUdeviceptr most, last = 0;
	size_t total, free_bytes;
	CUresult got, freed;
	CUstream stream;
	char detail[128];

	GPU_DO(stream_create, &stream, CU_STREAM_NON_BLOCKING);
	GPU_DO(mem_info, &free_bytes, &total);
	GPU_DO(mem_alloc, &most, (free_bytes - 20 * MIB) / (2 * MIB) * (2 * MIB));
	got = gpu.mem_alloc_async(&last, 4 * MIB, stream);
	freed = got == CUDA_SUCCESS ? gpu.mem_free_async(last, stream) : got;
	GPU_DO(stream_sync, stream);
	GPU_DO(mem_free, most);
	GPU_DO(stream_destroy, stream);
	snprintf(detail, sizeof(detail), "cuMemAllocAsync %s, cuMemFreeAsync %s",
		 gpu_error_name(got), gpu_error_name(freed));
	verdict(got == CUDA_SUCCESS && freed == CUDA_SUCCESS,
		"a pool's request that fits the quota, but not the pool's step", detail);
}

static void probe_vmm(void)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, gpu.dev },
	};
	CUmemGenericAllocationHandle handle[8];
	size_t grain;

	GPU_DO(vmm_granularity, &grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	for (int i = 0; i < 8; i++)
		GPU_DO(vmm_create, &handle[i], 16 * grain, &prop, 0);
	probe("VMM", 8 * 16 * grain);
	for (int i = 0; i < 8; i++)
		GPU_DO(vmm_release, handle[i]);
}

int main(int argc, char **argv)
{
	size_t begin_free, end_free, total;
	char detail[128];

	if (argc != 3 || strcmp(argv[1], "--quota") != 0) {
		fprintf(stderr, "usage: gpu-memory --quota BYTES\n");
		return 2;
	}
	quota_bytes = strtoull(argv[2], NULL, 10);
	printf("pid %d\n", (int)getpid());
	gpu_open(1);
	check_totals();
	check_refusal();
	GPU_DO(mem_info, &begin_free, &total);
	probe("context", 0);
	probe_plain();
	probe("after-plain", 0);
	probe_pitched();
	probe_array();
	probe_pool();
	check_pool_near_quota();
	probe_vmm();
	probe("after-all", 0);
	GPU_DO(mem_info, &end_free, &total);
	snprintf(detail, sizeof(detail), "%zu bytes free at first, %zu at the end", begin_free,
		 end_free);
	verdict(distance(begin_free, end_free) <= 8 * MIB, "everything is back after the frees",
		detail);
	GPU_DO(primary_release, gpu.dev);
	return failures != 0;
}
