/* A pool's descriptor only gives the right to import its allocations. An exported pointer names the memory it is in. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/cuda/memory/pool.h"

struct pointer {
	uint64_t name, offset, bytes;
	unsigned char rest[40];
};

CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool,
					  CUmemAllocationHandleType type, unsigned long long flags)
{
	SIM_ENTER(cuMemPoolExportToShareableHandle);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
			    !sim_pool_is(pool) || !(pool->handle_types & type),
		    CUDA_ERROR_INVALID_VALUE);
	*(int *)out = memfd_create("pool", MFD_CLOEXEC);
	return *(int *)out < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *os_handle,
					    CUmemAllocationHandleType type, unsigned long long flags)
{
	SIM_ENTER(cuMemPoolImportFromShareableHandle);
	SIM_FAIL_IF(!pool || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
			    fcntl((int)(intptr_t)os_handle, F_GETFD) < 0,
		    CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	*pool = sim_pool_new(0, false);
	if (*pool)
		(*pool)->is_imported = true;
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr)
{
	struct sim_region *region;
	uint64_t base, bytes, val[5];

	SIM_ENTER(cuMemPoolExportPointer);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!data || !sim_allocation_at(ptr, &base, &bytes, &region) ||
			    region->kind != REGION_POOL || !region->block ||
			    !sim_pool_of(region)->handle_types,
		    CUDA_ERROR_INVALID_VALUE);
	SIM_TRY(sim_call((struct sim_request_msg){ .type = SIM_MEM_NAME, .id = region->block }, val));
	struct pointer pointer = { val[0], base - region->base, bytes, { 0 } };
	memcpy(data, &pointer, sizeof(pointer));
	return CUDA_SUCCESS;
}

/*
 * The first call for `name` opens that memory. As in driver 580, NVML never counts it for the importing process, and the pool
 * keeps it until its end. Call keep() and open_pointer() with sim.lock held.
 */
static CUresult keep(CUmemoryPool pool, uint64_t name, struct kept **ret_kept)
{
	struct kept *kept = pool->kept;
	uint64_t val[5];

	while (kept && kept->name != name)
		kept = kept->next;
	*ret_kept = kept;
	if (kept)
		return CUDA_SUCCESS;
	kept = calloc(1, sizeof(*kept));
	SIM_FAIL_IF(!kept, CUDA_ERROR_OUT_OF_MEMORY);
	CUresult r = sim_call((struct sim_request_msg){ .type = SIM_MEM_OPEN, .arg = { name, 1 } },
			      val);
	if (r != CUDA_SUCCESS) {
		free(kept);
		return r;
	}
	*kept = (struct kept){ pool->kept, name, (uint32_t)val[0], sim_device_with_card(val[2]) };
	if (kept->dev < 0) {
		sim_block_free(kept->block);
		free(kept);
		return CUDA_ERROR_INVALID_DEVICE;
	}
	pool->kept = kept;
	*ret_kept = kept;
	return CUDA_SUCCESS;
}

static CUresult open_pointer(CUmemoryPool pool, const struct pointer *pointer, CUdeviceptr *ret_ptr)
{
	struct kept *kept;

	SIM_TRY(keep(pool, pointer->name, &kept));
	CUmemoryPool *detail = malloc(sizeof(CUmemoryPool));
	struct sim_region *region = detail ? sim_va_new(REGION_POOL_IPC, pointer->bytes, 0) : NULL;
	if (!region) {
		free(detail);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*detail = pool;
	pool->pointers_n++;
	region->detail = detail;
	region->bytes = pointer->bytes;
	region->dev = kept->dev;
	*ret_ptr = region->base;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	struct pointer pointer;

	SIM_ENTER(cuMemPoolImportPointer);
	SIM_FAIL_IF(!ptr || !data, CUDA_ERROR_INVALID_VALUE);
	memcpy(&pointer, data, sizeof(pointer));
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!sim_pool_is(pool) || !pool->is_imported || !pointer.bytes,
		    CUDA_ERROR_INVALID_VALUE);
	return open_pointer(pool, &pointer, ptr);
}
