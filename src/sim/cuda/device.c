#include <stdio.h>
#include <string.h>

#include "sim/cuda/sim.h"

CUresult cuDriverGetVersion(int *version)
{
	SIM_TRY(sim_enter_slow("cuDriverGetVersion", false));
	SIM_FAIL_IF(!version, CUDA_ERROR_INVALID_VALUE);
	*version = sim_driver_version();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	SIM_ENTER(cuDeviceGet);
	SIM_FAIL_IF(!dev, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!sim_device_of(ordinal), CUDA_ERROR_INVALID_DEVICE);
	*dev = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	SIM_ENTER(cuDeviceGetCount);
	SIM_FAIL_IF(!count, CUDA_ERROR_INVALID_VALUE);
	*count = sim.devices_n;
	return CUDA_SUCCESS;
}

/* For a MIG instance, the older call cuDeviceGetUuid (is_old) writes the UUID of its GPU. */
static CUresult get_uuid(CUuuid *uuid, CUdevice dev, bool is_old)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_FAIL_IF(!uuid, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	memcpy(uuid->bytes, is_old ? device->card_uuid : device->info.uuid_bytes, 16);
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuDeviceGetUuid, (CUuuid * uuid, CUdevice dev), get_uuid(uuid, dev, true))
SIM_FUNCTION(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice dev), get_uuid(uuid, dev, false))

static CUresult put_text(char *to, int size, const char *text, CUdevice dev)
{
	SIM_FAIL_IF(!to || size <= 0, CUDA_ERROR_INVALID_VALUE);
	snprintf(to, (size_t)size, "%s", text);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice dev)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_ENTER(cuDeviceGetName);
	return device ? put_text(name, size, device->info.name, dev) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetPCIBusId(char *text, int size, CUdevice dev)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_ENTER(cuDeviceGetPCIBusId);
	/* CUDA writes four digits of the PCI domain, NVML eight. */
	return device ? put_text(text, size, device->info.pci + 4, dev) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *text)
{
	unsigned int domain = 0, bus, device;

	SIM_ENTER(cuDeviceGetByPCIBusId);
	SIM_FAIL_IF(!dev || !text ||
			    (sscanf(text, "%8x:%2x:%2x", &domain, &bus, &device) != 3 &&
			     (domain = 0, sscanf(text, "%2x:%2x", &bus, &device) != 2)),
		    CUDA_ERROR_INVALID_VALUE);
	for (int i = 0; i < sim.devices_n; i++) {
		const struct sim_card_info *info = &sim.devices[i].info;

		if (info->pci_domain == domain && info->pci_bus == bus &&
		    info->pci_device == device) {
			*dev = i;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_ENTER(cuDeviceTotalMem_v2);
	SIM_FAIL_IF(!bytes, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	*bytes = device->info.memory_bytes;
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_ENTER(cuDeviceComputeCapability);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	*major = device->info.cc_major;
	*minor = device->info.cc_minor;
	return CUDA_SUCCESS;
}

/* Values of an H200 by CUdevice_attribute, for attributes that are the same on all simulated GPUs. */
static const struct {
	short attr;
	int value;
} attributes[] = {
	{ 1, 1024 },                                    /* MAX_THREADS_PER_BLOCK */
	{ 2, 1024 },        { 3, 1024 },  { 4, 64 },    /* MAX_BLOCK_DIM_X.. */
	{ 5, 2147483647 },  { 6, 65535 }, { 7, 65535 }, /* MAX_GRID_DIM_X.. */
	{ 8, 49152 },                                   /* MAX_SHARED_MEMORY_PER_BLOCK */
	{ 9, 65536 },                                   /* TOTAL_CONSTANT_MEMORY */
	{ 10, 32 },                                     /* WARP_SIZE */
	{ 11, 2147483647 },                             /* MAX_PITCH */
	{ 12, 65536 },                                  /* MAX_REGISTERS_PER_BLOCK */
	{ 13, 1980000 },                                /* CLOCK_RATE, kHz */
	{ 14, 512 },                                    /* TEXTURE_ALIGNMENT */
	{ 15, 1 },                                      /* GPU_OVERLAP */
	{ 17, 0 },                                      /* KERNEL_EXEC_TIMEOUT */
	{ 18, 0 },                                      /* INTEGRATED */
	{ 19, 1 },                                      /* CAN_MAP_HOST_MEMORY */
	{ 20, 0 },                                      /* COMPUTE_MODE */
	{ 31, 1 },                                      /* CONCURRENT_KERNELS */
	{ 32, 1 },                                      /* ECC_ENABLED */
	{ 35, 0 },                                      /* TCC_DRIVER */
	{ 36, 3201000 },                                /* MEMORY_CLOCK_RATE, kHz */
	{ 37, 6144 },                                   /* GLOBAL_MEMORY_BUS_WIDTH */
	{ 38, 62914560 },                               /* L2_CACHE_SIZE */
	{ 39, 2048 },                                   /* MAX_THREADS_PER_MULTIPROCESSOR */
	{ 40, 3 },                                      /* ASYNC_ENGINE_COUNT */
	{ 41, 1 },                                      /* UNIFIED_ADDRESSING */
	{ 78, 1 },                                      /* STREAM_PRIORITIES_SUPPORTED */
	{ 79, 1 },                                      /* GLOBAL_L1_CACHE_SUPPORTED */
	{ 80, 1 },                                      /* LOCAL_L1_CACHE_SUPPORTED */
	{ 81, 233472 },                                 /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
	{ 82, 65536 },                                  /* MAX_REGISTERS_PER_MULTIPROCESSOR */
	{ 83, 1 },                                      /* MANAGED_MEMORY */
	{ 84, 0 },                                      /* MULTI_GPU_BOARD */
	{ 86, 1 }, /* HOST_NATIVE_ATOMIC_SUPPORTED: the simulated link has it */
	{ 87, 2 }, /* SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO */
	{ 88, 0 }, /* PAGEABLE_MEMORY_ACCESS */
	{ 89, 1 }, /* CONCURRENT_MANAGED_ACCESS */
	{ 90, 1 }, /* COMPUTE_PREEMPTION_SUPPORTED */
	{ 91, 1 }, /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
	{ 92, 1 },          { 93, 1 },    { 94, 1 }, /* CAN_USE_STREAM_MEM_OPS and related */
	{ 95, 1 },                                   /* COOPERATIVE_LAUNCH */
	{ 97, 232448 },                              /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
	{ 99, 1 },                                   /* HOST_REGISTER_SUPPORTED */
	{ 102, 1 },                                  /* VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
	{ 103, 1 },         /* HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED */
	{ 106, 32 },        /* MAX_BLOCKS_PER_MULTIPROCESSOR */
	{ 107, 0 },         /* GENERIC_COMPRESSION_SUPPORTED */
	{ 108, 41287680 },  /* MAX_PERSISTING_L2_CACHE_SIZE */
	{ 109, 134213632 }, /* MAX_ACCESS_POLICY_WINDOW_SIZE */
	{ 111, 1024 },      /* RESERVED_SHARED_MEMORY_PER_BLOCK */
	{ 112, 0 },         /* SPARSE_CUDA_ARRAY_SUPPORTED */
	{ 113, 1 },         /* READ_ONLY_HOST_REGISTER_SUPPORTED */
	{ 114, 1 },         /* TIMELINE_SEMAPHORE_INTEROP_SUPPORTED */
	{ 115, 1 },         /* MEMORY_POOLS_SUPPORTED */
	{ 120, 1 },         /* CLUSTER_LAUNCH */
	{ 121, 1 },         /* DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED */
	{ 125, 1 },         /* IPC_EVENT_SUPPORTED */
	{ 126, 4 },         /* MEM_SYNC_DOMAIN_COUNT */
	{ 129, 1 },         /* UNIFIED_FUNCTION_POINTERS */
	{ 132, 0 },         /* MULTICAST_SUPPORTED */
};

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attr, CUdevice dev)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_ENTER(cuDeviceGetAttribute);
	SIM_FAIL_IF(!value || attr < 1 || attr > 160, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	switch (attr) {
	case 16: *value = (int)sim_space_sms(device); return CUDA_SUCCESS;
	case 33: *value = (int)device->info.pci_bus; return CUDA_SUCCESS;
	case 34: *value = (int)device->info.pci_device; return CUDA_SUCCESS;
	case 50: *value = (int)device->info.pci_domain; return CUDA_SUCCESS;
	case 75: *value = device->info.cc_major; return CUDA_SUCCESS;
	case 76: *value = device->info.cc_minor; return CUDA_SUCCESS;
	case 85: *value = dev; return CUDA_SUCCESS;                /* MULTI_GPU_BOARD_GROUP_ID */
	case 134: *value = device->info.numa; return CUDA_SUCCESS; /* HOST_NUMA_ID */
	}
	*value = 0;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
		if (attributes[i].attr == attr)
			*value = attributes[i].value;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	SIM_ENTER(cuDeviceGetProperties);
	SIM_FAIL_IF(!prop, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!sim_device_of(dev), CUDA_ERROR_INVALID_DEVICE);
	*prop = (CUdevprop){ 1024,
			     { 1024, 1024, 64 },
			     { 2147483647, 65535, 65535 },
			     49152,
			     65536,
			     32,
			     2147483647,
			     65536,
			     1980000,
			     512 };
	return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	SIM_ENTER(cuDeviceCanAccessPeer);
	SIM_FAIL_IF(!can, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!sim_device_of(dev) || !sim_device_of(peer), CUDA_ERROR_INVALID_DEVICE);
	*can = sim.devices[dev].info.peers >> sim.devices[peer].card & 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attr, CUdevice src, CUdevice dst)
{
	SIM_ENTER(cuDeviceGetP2PAttribute);
	SIM_FAIL_IF(!value || attr < 1 || attr > 5, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!sim_device_of(src) || !sim_device_of(dst) || src == dst,
		    CUDA_ERROR_INVALID_DEVICE);
	/* attr is 1 for the rank (0 is best), 2 for access, 3 for atomics, 4 for array access */
	*value = attr == 1 ? 0 : sim.devices[src].info.peers >> sim.devices[dst].card & 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int *value, CUexecAffinityType type, CUdevice dev)
{
	SIM_ENTER(cuDeviceGetExecAffinitySupport);
	SIM_FAIL_IF(!value, CUDA_ERROR_INVALID_VALUE);
	*value = 0;
	return CUDA_SUCCESS;
}

static CUresult peer_access(CUcontext peer, bool on)
{
	CUcontext ctx;

	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!peer || peer->magic != MAGIC_CONTEXT || peer->dev == ctx->dev,
		    CUDA_ERROR_INVALID_CONTEXT);
	SIM_FAIL_IF(!(sim_context_device(ctx)->info.peers >> sim_context_device(peer)->card & 1),
		    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	uint32_t bit = 1u << peer->dev;
	SIM_WITH_LOCK();
	SIM_FAIL_IF(on == !!(ctx->peers & bit), on ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
						   : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	ctx->peers ^= bit;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags),
	     flags ? CUDA_ERROR_INVALID_VALUE : peer_access(peer, true))
SIM_FUNCTION(cuCtxDisablePeerAccess, (CUcontext peer), peer_access(peer, false))

/*
 * The runtime's private tables are not simulated. Through one of them, libcudart 12 and 13 demand a keyed digest as a proof
 * that the driver is NVIDIA's. So programs linked with libcudart need a real GPU.
 */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	if (table)
		*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

/* CUDA 11 removed the profiler that this call sets up. */
SIM_FUNCTION(cuProfilerInitialize, (const char *settings, const char *output, int mode),
	     CUDA_ERROR_NOT_SUPPORTED)
SIM_FUNCTION(cuProfilerStart, (void), CUDA_SUCCESS)
SIM_FUNCTION(cuProfilerStop, (void), CUDA_SUCCESS)

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	SIM_ENTER(cuCtxGetCacheConfig);
	*config = 0;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuCtxSetCacheConfig, (CUfunc_cache config), CUDA_SUCCESS)

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	SIM_ENTER(cuCtxGetSharedMemConfig);
	*config = 1;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuCtxSetSharedMemConfig, (CUsharedconfig config), CUDA_SUCCESS)

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	SIM_ENTER(cuCtxGetStreamPriorityRange);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuCtxResetPersistingL2Cache, (void), CUDA_SUCCESS)
