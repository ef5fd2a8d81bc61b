/*
 * Memory of graphs. An allocation node gets its addresses when it is made, and memory at the first launch. All graphs of a
 * device share the same memory, because simulated work does not use it. The memory is kept until cuDeviceGraphMemTrim() or the
 * end of the device's last context.
 */
#include "sim/cuda/sim.h"

#define STEP_BYTES (32ull << 20)

uint64_t sim_graph_addresses(CUcontext ctx, uint64_t bytes)
{
	SIM_WITH_LOCK();
	struct sim_region *region = sim_va_new(REGION_GRAPH, bytes, 0);
	if (region) {
		region->bytes = bytes;
		region->ctx = ctx;
		region->dev = ctx->dev;
	}
	return region ? region->base : 0;
}

CUresult sim_graph_map(CUdevice dev, uint64_t bytes)
{
	struct sim_device *device = &sim.devices[dev];

	SIM_WITH_LOCK();
	if (bytes <= device->graph_reserved)
		return CUDA_SUCCESS;
	uint64_t more = (bytes - device->graph_reserved + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
	SIM_FAIL_IF(device->graph_blocks == SIM_GRAPH_BLOCKS, CUDA_ERROR_OUT_OF_MEMORY);
	SIM_TRY(sim_block_new(dev, more, SIM_BLOCK_DATA, &device->graph_block[device->graph_blocks]));
	device->graph_blocks++;
	device->graph_reserved += more;
	device->graph_reserved_high = SIM_MAX(device->graph_reserved_high, device->graph_reserved);
	return CUDA_SUCCESS;
}

void sim_graph_memory_gone(struct sim_device *device)
{
	while (device->graph_blocks)
		sim_block_free(device->graph_block[--device->graph_blocks]);
	device->graph_reserved = 0;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attr, void *value)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_ENTER(cuDeviceGetGraphMemAttribute);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	SIM_FAIL_IF(!value, CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	*(cuuint64_t *)value = attr & 1 ? device->graph_reserved_high : device->graph_reserved;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_ENTER(cuDeviceGraphMemTrim);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	SIM_WITH_LOCK();
	sim_graph_memory_gone(device);
	return CUDA_SUCCESS;
}
