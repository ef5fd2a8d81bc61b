#include "interpose/hook_pool.h"

#include "interpose/charge.h"
#include "interpose/guest.h"
#include "interpose/hooks.h"
#include "interpose/ledger.h"
#include "interpose/real.h"

#define POOL_STEP (32 * MIB) /* measured: what a pool grows by */
#define REFRESH_EVERY_NS (20 * NS_PER_MS)
#define MAX_POOLS 64

/* One at a time: a pool's figure before and after a call must not mix with another call's. */
static struct sys_lock pool_lock;

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which)
{
	cuuint64_t value = 0;

	if (!real.cuMemPoolGetAttribute ||
	    real.cuMemPoolGetAttribute(pool, which, &value) != CUDA_SUCCESS)
		return 0;
	return value;
}

/* Brings the charge of a pool to what it reserves now. Holds pool_lock. */
static void settle(CUmemoryPool pool)
{
	struct holding h;

	if (!ptrmap_find(HOLDING_POOL, (uint64_t)(uintptr_t)pool, &h))
		return;
	uint64_t reserved = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
	if (reserved == h.bytes)
		return;
	ledger_adjust(h.device, (int64_t)(reserved - h.bytes));
	h.bytes = reserved;
	ptrmap_update(&h);
}

struct pool_list {
	int index; /* -1: all devices */
	unsigned count;
	CUmemoryPool pools[MAX_POOLS];
};

static void collect(const struct holding *h, void *context)
{
	struct pool_list *list = context;

	if ((list->index < 0 || h->device == list->index) && list->count < MAX_POOLS)
		list->pools[list->count++] = (CUmemoryPool)(uintptr_t)h->key;
}

/* Holds pool_lock. */
static void trim_locked(int index)
{
	struct pool_list list = { .index = index };

	ptrmap_each(HOLDING_POOL, collect, &list);
	for (unsigned i = 0; i < list.count; i++) {
		if (real.cuMemPoolTrimTo)
			real.cuMemPoolTrimTo(list.pools[i], 0);
		settle(list.pools[i]);
	}
}

void hook_pool_trim(int index)
{
	WITH_LOCK(&pool_lock);
	trim_locked(index);
}

void hook_pool_refresh(uint64_t now_ns)
{
	static uint64_t last_ns;
	struct pool_list list = { .index = -1 };

	if (now_ns - last_ns < REFRESH_EVERY_NS || !sys_trylock(&pool_lock))
		return;
	last_ns = now_ns;
	ptrmap_each(HOLDING_POOL, collect, &list);
	for (unsigned i = 0; i < list.count; i++)
		settle(list.pools[i]);
	sys_unlock(&pool_lock);
}

/* The pool's growth that this request may cause: none where free reserved bytes suffice. */
static uint64_t expected_growth(CUmemoryPool pool, size_t bytes)
{
	uint64_t reserved = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
	uint64_t used = attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);

	if (reserved >= used && reserved - used >= bytes)
		return 0;
	return bytes > UINT64_MAX - POOL_STEP ? UINT64_MAX
					      : (bytes + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
}

/* Holds pool_lock. Makes sure that the pool has a note, charged with what it reserves already. */
static bool know(CUmemoryPool pool, int index)
{
	struct holding h = {
		.kind = HOLDING_POOL,
		.key = (uint64_t)(uintptr_t)pool,
		.device = index,
	};

	if (ptrmap_find(HOLDING_POOL, h.key, &h))
		return true;
	if (!ptrmap_insert(&h))
		return false;
	settle(pool);
	return true;
}

static int reserve_growth(int index, uint64_t growth)
{
	if (!growth || ledger_reserve(index, growth, false) == 0)
		return 0;
	trim_locked(index);
	return ledger_reserve(index, growth, true);
}

/* After the call: trade the reservation for what the pool has really grown by. Holds pool_lock. */
static void settle_growth(CUmemoryPool pool, int index, uint64_t growth)
{
	settle(pool);
	if (growth)
		ledger_release(index, growth);
}

struct async_request {
	CUmemoryPool pool;
	CUstream stream;
	int index;
	CUresult (*alloc)(CUdeviceptr *, size_t, CUstream); /* one of the two */
	CUresult (*alloc_from)(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
};

static CUresult call(const struct async_request *r, CUdeviceptr *ptr, size_t bytes)
{
	return r->alloc ? r->alloc(ptr, bytes, r->stream)
			: r->alloc_from(ptr, bytes, r->pool, r->stream);
}

static CUresult alloc_async(const struct async_request *r, CUdeviceptr *ptr, size_t bytes)
{
	WITH_LOCK(&pool_lock);
	if (!know(r->pool, r->index))
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t growth = expected_growth(r->pool, bytes);
	if (reserve_growth(r->index, growth))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = call(r, ptr, bytes);
	settle_growth(r->pool, r->index, growth);
	if (result != CUDA_SUCCESS || ledger_used(r->index) <= ledger_quota(r->index))
		return result;
	/* Fragments made the pool grow by more than was expected, past the quota: undo. */
	real.cuMemFreeAsync(*ptr, r->stream);
	real.cuStreamSynchronize(r->stream);
	trim_locked(r->index);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hook_mem_alloc_async(CUresult (*alloc)(CUdeviceptr *, size_t, CUstream), CUdeviceptr *ptr,
			      size_t bytes, CUstream stream)
{
	struct async_request r = { .stream = stream, .alloc = alloc };
	CUdevice device;

	/* A captured allocation makes a node of a graph and no memory. */
	if (!guest_is_active() || atomic_load(&guest.captures) ||
	    real.cuCtxGetDevice(&device) != CUDA_SUCCESS ||
	    (r.index = guest_device_index(device)) < 0 || !real.cuDeviceGetMemPool ||
	    real.cuDeviceGetMemPool(&r.pool, device) != CUDA_SUCCESS)
		return alloc(ptr, bytes, stream);
	return alloc_async(&r, ptr, bytes);
}

CUresult hook_mem_alloc_from_pool_async(CUresult (*alloc)(CUdeviceptr *, size_t, CUmemoryPool,
							  CUstream),
					CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool,
					CUstream stream)
{
	struct async_request r = { .pool = pool, .stream = stream, .alloc_from = alloc };

	if (!guest_is_active() || atomic_load(&guest.captures) ||
	    (r.index = guest_current_index()) < 0)
		return alloc(ptr, bytes, pool, stream);
	return alloc_async(&r, ptr, bytes);
}

CUresult hook_mem_pool_trim_to(CUresult (*trim)(CUmemoryPool, size_t), CUmemoryPool pool,
			       size_t keep_bytes)
{
	CUresult result = trim(pool, keep_bytes);

	if (guest_is_active()) {
		WITH_LOCK(&pool_lock);
		settle(pool);
	}
	return result;
}

CUresult hook_mem_pool_destroy(CUresult (*destroy)(CUmemoryPool), CUmemoryPool pool)
{
	struct holding h;

	if (!guest_is_active())
		return destroy(pool);
	WITH_LOCK(&pool_lock);
	bool is_known = ptrmap_remove(HOLDING_POOL, (uint64_t)(uintptr_t)pool, &h);
	CUresult result = destroy(pool);
	if (is_known && result == CUDA_SUCCESS)
		ledger_release(h.device, h.bytes);
	else if (is_known)
		ptrmap_insert(&h);
	return result;
}
