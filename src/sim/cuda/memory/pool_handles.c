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
	CUresult r = CUDA_SUCCESS;

	SIM_ENTER(cuDeviceGetMemPool);
	SIM_FAIL_IF(!pool, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	SIM_WITH_LOCK();
	if (device->pool)
		*pool = device->pool;
	else
		r = sim_pool_default(dev, pool);
	return r;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	struct sim_device *device = sim_device_of(dev);
	CUresult r = CUDA_SUCCESS;

	SIM_ENTER(cuDeviceSetMemPool);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	SIM_WITH_LOCK();
	if (!sim_pool_is(pool) || pool->dev != dev)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		device->pool = pool;
	return r;
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
	pthread_mutex_lock(&sim.lock);
	if (!sim_pool_is(pool) || pool->is_default) {
		pthread_mutex_unlock(&sim.lock);
		return CUDA_ERROR_INVALID_VALUE;
	}
	struct sim_device *device = &sim.devices[pool->dev];
	if (device->pool == pool)
		device->pool = NULL;
	sim_pool_end(pool);
	pthread_mutex_unlock(&sim.lock);
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
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	SIM_ENTER(cuMemPoolGetAttribute);
	SIM_WITH_LOCK();
	if (value && sim_pool_is(pool) && !pool->is_imported) {
		const uint64_t *size = size_attribute(pool, attr);

		r = CUDA_SUCCESS;
		if (size)
			*(cuuint64_t *)value = *size;
		else if (attr >= 1 && attr <= 3)
			*(int *)value = pool->reuse[attr - 1];
		else
			r = CUDA_ERROR_INVALID_VALUE;
	}
	return r;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	SIM_ENTER(cuMemPoolSetAttribute);
	SIM_WITH_LOCK();
	if (value && sim_pool_is(pool)) {
		r = CUDA_SUCCESS;
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
			r = CUDA_ERROR_INVALID_VALUE;
	}
	return r;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count)
{
	CUresult r = CUDA_SUCCESS;

	SIM_ENTER(cuMemPoolSetAccess);
	SIM_WITH_LOCK();
	if (!sim_pool_is(pool) || (count && !desc))
		r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
		if (!sim_device_of(desc[i].location.id))
			r = CUDA_ERROR_INVALID_DEVICE;
		else if (desc[i].flags)
			pool->access |= 1u << desc[i].location.id;
		else
			pool->access &= ~(1u << desc[i].location.id);
	}
	return r;
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
