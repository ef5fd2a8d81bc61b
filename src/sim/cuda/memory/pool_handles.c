#include "sim/cuda/memory/pool.h"

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
	SIM_ENTER(cuDeviceGetDefaultMemPool);
	SIM_FAIL_IF(!pool, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!sim_device_of(dev), CUDA_ERROR_INVALID_DEVICE);
	SIM_WITH_LOCK();
	return sim_pool_default(dev, pool);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_ENTER(cuDeviceGetMemPool);
	SIM_FAIL_IF(!pool, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	SIM_WITH_LOCK();
	*pool = device->pool;
	return *pool ? CUDA_SUCCESS : sim_pool_default(dev, pool);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_ENTER(cuDeviceSetMemPool);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!sim_pool_is(pool) || pool->dev != dev, CUDA_ERROR_INVALID_VALUE);
	device->pool = pool;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	SIM_ENTER(cuMemPoolCreate);
	SIM_FAIL_IF(!pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
			    props->location.type < CU_MEM_LOCATION_TYPE_DEVICE ||
			    props->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
		    CUDA_ERROR_INVALID_VALUE);
	bool on_host = props->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
	SIM_FAIL_IF(!on_host && !sim_device_of(props->location.id), CUDA_ERROR_INVALID_DEVICE);
	SIM_WITH_LOCK();
	*pool = sim_pool_new(on_host ? 0 : props->location.id, false);
	if (*pool) {
		(*pool)->on_host = on_host;
		(*pool)->max_bytes = props->maxSize;
		(*pool)->handle_types = props->handleTypes;
	}
	return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	SIM_ENTER(cuMemPoolDestroy);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!sim_pool_is(pool) || pool->is_default, CUDA_ERROR_INVALID_VALUE);
	struct sim_device *device = &sim.devices[pool->dev];
	if (device->pool == pool)
		device->pool = NULL;
	sim_pool_end(pool);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
	SIM_ENTER(cuMemPoolTrimTo);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!sim_pool_is(pool), CUDA_ERROR_INVALID_VALUE);
	sim_pool_trim(pool, keep_bytes);
	return CUDA_SUCCESS;
}

static uint64_t *size_attribute(CUmemoryPool pool, CUmemPool_attribute attr)
{
	switch (attr) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return &pool->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return &pool->reserved;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return &pool->reserved_high;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return &pool->used;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return &pool->used_high;
	default: return NULL;
	}
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	SIM_ENTER(cuMemPoolGetAttribute);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!value || !sim_pool_is(pool) || pool->is_imported, CUDA_ERROR_INVALID_VALUE);
	const uint64_t *size = size_attribute(pool, attr);
	if (size)
		*(cuuint64_t *)value = *size;
	else if (attr >= 1 && attr <= 3)
		*(int *)value = pool->reuse[attr - 1];
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	SIM_ENTER(cuMemPoolSetAttribute);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!value || !sim_pool_is(pool), CUDA_ERROR_INVALID_VALUE);
	if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		pool->threshold = *(cuuint64_t *)value;
	else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && !*(cuuint64_t *)value)
		/* Only 0 may be written; it resets the mark to the present value. */
		pool->reserved_high = pool->reserved;
	else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH && !*(cuuint64_t *)value)
		pool->used_high = pool->used;
	else if (attr >= 1 && attr <= 3)
		pool->reuse[attr - 1] = *(int *)value;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count)
{
	SIM_ENTER(cuMemPoolSetAccess);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!sim_pool_is(pool) || (count && !desc), CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < count; i++) {
		SIM_FAIL_IF(!sim_device_of(desc[i].location.id), CUDA_ERROR_INVALID_DEVICE);
		sim_set_access(&pool->access, &desc[i]);
	}
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location)
{
	SIM_ENTER(cuMemPoolGetAccess);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!flags || !location || !sim_pool_is(pool) || !sim_device_of(location->id),
		    CUDA_ERROR_INVALID_VALUE);
	*flags = pool->access >> location->id & 1 ? 3 : 0;
	return CUDA_SUCCESS;
}
