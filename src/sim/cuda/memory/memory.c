#include "sim/cuda/memory/pool.h"

#define HEAP_BELOW SIM_UNIT /* smaller requests share blocks of this size */

CUresult sim_block_new(CUdevice dev, uint64_t bytes, enum sim_block_kind kind, uint32_t *ret_block)
{
	uint64_t val[5];

	CUresult r = sim_call((struct sim_request_msg){ .type = SIM_MEM_NEW,
							.card = sim.devices[dev].card,
							.arg = { bytes, kind } },
			      val);
	if (r == CUDA_SUCCESS)
		*ret_block = (uint32_t)val[0];
	return r;
}

void sim_block_free(uint32_t block)
{
	if (block)
		sim_call((struct sim_request_msg){ .type = SIM_MEM_FREE, .id = block }, NULL);
}

uint64_t sim_round(CUdevice dev, uint64_t bytes)
{
	uint64_t to = sim.devices[dev].info.block_bytes;

	return (bytes + to - 1) / to * to;
}

void sim_region_drop(struct sim_region *region)
{
	if (region->kind == REGION_HEAP)
		sim_heap_region_gone(region);
	if (region->kind == REGION_POOL)
		sim_pool_region_gone(region);
	if (region->kind == REGION_POOL_IPC)
		sim_pool_import_gone(region);
	if (region->kind == REGION_RESERVED)
		sim_vmm_region_gone(region);
	sim_block_free(region->block);
	sim_va_free(region);
}

/* Call with sim.lock held. */
static CUresult alloc_large(CUcontext ctx, uint64_t bytes, bool managed, CUdeviceptr *ret_ptr)
{
	uint32_t block = 0;

	CUresult r = sim_block_new(ctx->dev, sim_round(ctx->dev, bytes),
				   managed ? SIM_BLOCK_MANAGED : SIM_BLOCK_DATA, &block);
	/* Managed memory that does not fit the GPU stays in host memory. */
	if (r != CUDA_SUCCESS && !(managed && r == CUDA_ERROR_OUT_OF_MEMORY))
		return r;
	struct sim_region *region = sim_va_new(REGION_LINEAR, bytes, 0);
	if (!region) {
		sim_block_free(block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	region->bytes = bytes;
	region->block = block;
	region->ctx = ctx;
	region->dev = ctx->dev;
	region->managed = managed;
	sim_va_add_backing(region, managed);
	*ret_ptr = region->base;
	return CUDA_SUCCESS;
}

static CUresult sim_alloc(CUcontext ctx, uint64_t bytes, CUdeviceptr *ret_ptr)
{
	SIM_FAIL_IF(!bytes, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(sim_fault_oom() || bytes > 1ull << 44, CUDA_ERROR_OUT_OF_MEMORY);
	return bytes < HEAP_BELOW ? sim_heap_alloc(ctx, bytes, ret_ptr)
				  : alloc_large(ctx, bytes, false, ret_ptr);
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	CUcontext ctx;

	SIM_ENTER(cuMemAlloc_v2);
	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!ptr, CUDA_ERROR_INVALID_VALUE);
	SIM_UNSAFE();
	SIM_WITH_LOCK();
	return sim_alloc(ctx, bytes, ptr);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width_bytes, size_t height,
			    unsigned int element_bytes)
{
	CUcontext ctx;
	size_t row = (width_bytes + 511) / 512 * 512;

	SIM_ENTER(cuMemAllocPitch_v2);
	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!ptr || !pitch || !width_bytes || !height ||
			    (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) ||
			    row < width_bytes || height > (1ull << 44) / row,
		    CUDA_ERROR_INVALID_VALUE);
	SIM_UNSAFE();
	SIM_WITH_LOCK();
	SIM_TRY(sim_alloc(ctx, row * height, ptr));
	*pitch = row;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
	CUcontext ctx;

	SIM_ENTER(cuMemAllocManaged);
	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!ptr || !bytes || flags < 1 || flags > 2, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(sim_fault_oom() || bytes > 1ull << 44, CUDA_ERROR_OUT_OF_MEMORY);
	SIM_UNSAFE();
	SIM_WITH_LOCK();
	return alloc_large(ctx, bytes, true, ptr);
}

CUresult sim_free(uint64_t addr)
{
	struct sim_region *region = sim_va_find(addr);

	SIM_FAIL_IF(!region, CUDA_ERROR_INVALID_VALUE);
	switch (region->kind) {
	case REGION_HEAP:
		return sim_heap_free(region, addr) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case REGION_POOL: return sim_pool_free(region, addr);
	case REGION_POOL_IPC:
	case REGION_LINEAR:
		SIM_FAIL_IF(addr != region->base, CUDA_ERROR_INVALID_VALUE);
		sim_region_drop(region);
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	CUcontext ctx;

	SIM_ENTER(cuMemFree_v2);
	if (!ptr)
		return CUDA_SUCCESS;
	SIM_TRY(sim_need_context(&ctx));
	SIM_UNSAFE();
	SIM_WITH_LOCK();
	return sim_free(ptr);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	CUcontext ctx;
	uint64_t val[5];

	SIM_ENTER(cuMemGetInfo_v2);
	SIM_TRY(sim_need_context(&ctx));
	SIM_TRY(sim_call((struct sim_request_msg){ .type = SIM_MEM_INFO,
						   .card = sim_context_device(ctx)->card },
			 val));
	if (free_bytes)
		*free_bytes = val[0] - val[1];
	if (total_bytes)
		*total_bytes = val[0];
	return CUDA_SUCCESS;
}

bool sim_allocation_at(uint64_t addr, uint64_t *ret_base, uint64_t *ret_bytes,
		       struct sim_region **ret_region)
{
	struct sim_region *region = sim_va_find(addr);

	if (!region)
		return false;
	*ret_region = region;
	if (region->kind == REGION_HEAP)
		return sim_heap_find(region, addr, ret_base, ret_bytes);
	if (region->kind == REGION_POOL)
		return sim_pool_find(region, addr, ret_base, ret_bytes);
	/* A reserved address without a mapping is in no allocation. */
	if (region->kind == REGION_RESERVED)
		return sim_vmm_find(addr, ret_base, ret_bytes);
	*ret_base = region->base;
	*ret_bytes = region->bytes;
	return addr < region->base + region->bytes;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
	struct sim_region *region;
	uint64_t at = 0, n = 0;

	SIM_ENTER(cuMemGetAddressRange_v2);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!sim_allocation_at(ptr, &at, &n, &region) && !sim_host_find(ptr, &at, &n),
		    CUDA_ERROR_NOT_FOUND);
	if (base)
		*base = at;
	if (bytes)
		*bytes = n;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuMemAdvise, (CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice dev),
	     CUDA_SUCCESS)
SIM_FUNCTION(cuMemAdvise_v2,
	     (CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUmemLocation location),
	     CUDA_SUCCESS)

SIM_TWINS(cuMemPrefetchAsync, _ptsz, (CUdeviceptr ptr, size_t bytes, CUdevice dev, CUstream stream),
	  return sim_stream(stream, ptds, &stream);)
SIM_TWINS(cuMemPrefetchAsync_v2, _ptsz,
	  (CUdeviceptr ptr, size_t bytes, CUmemLocation location, unsigned int flags,
	   CUstream stream),
	  return sim_stream(stream, ptds, &stream);)
