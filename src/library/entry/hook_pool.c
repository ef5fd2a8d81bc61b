#include "library/entry/hook_pool.h"

#include "library/entry/hooks.h"
#include "library/launch/inflight/inflight.h"
#include "library/loader/real.h"
#include "library/memory/reserve_wait.h"
#include "library/memory/holding.h"
#include "library/memory/fd_tag.h"
#include "library/memory/ledger.h"
#include "library/memory/reserved.h"
#include "library/memory/shared.h"
#include "library/memory/swap_hold.h"
#include "library/memory/swap_room.h"
#include "library/state/process_state.h"
#include "library/sys/locks.h"
#include "library/trace/trace_record.h"

#define MAX_POOLS 1024

/*
 * The pools that the program made, imported or used. They are not in ptrmap.h, because this list is read 50 times a second, and
 * ptrmap.h may have 100,000 other entries.
 */
struct known_pool {
	CUmemoryPool handle;
	int index;
	CUdevice device;
	uint64_t bytes;   /* charged: the reserved bytes when last read */
	uint64_t key;     /* identifies the pool in other processes; 0 if not shared */
	uint64_t imports; /* bytes that this process has imported from the pool */
	bool is_made;     /* the program created the pool, and may destroy it */
	/* imported from another process, which is charged for the pool; the driver does not state an imported pool's sizes */
	bool is_imported;
	/* destroyed by the program, but kept until everything allocated from the pool is freed */
	bool is_destroy_deferred;
};
static struct known_pool pools[MAX_POOLS];
static unsigned pool_count;

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which)
{
	cuuint64_t value = 0;

	if (!real.cuMemPoolGetAttribute ||
	    real.cuMemPoolGetAttribute(pool, which, &value) != CUDA_SUCCESS)
		return 0;
	return value;
}

/*
 * Charges the bytes that the driver now reserves for the pool, instead of reserved_for_it, the quota that was reserved for a
 * call. The caller holds locks.pool, also during the driver call: the growth of the reserved bytes shows what that call took.
 * Callers of the functions down to trim_locked(), and of reserve_growth(), hold locks.pool too.
 */
static void update_charge(struct known_pool *p, uint64_t reserved_for_it)
{
	reserved_update_charge(p->index, &p->bytes,
			       attribute(p->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
			       reserved_for_it);
}

static struct known_pool *find(CUmemoryPool handle)
{
	for (unsigned i = 0; i < pool_count; i++)
		if (pools[i].handle == handle)
			return &pools[i];
	return NULL;
}

static struct known_pool *add(const struct known_pool *pool)
{
	if (pool_count == MAX_POOLS)
		return NULL;
	pools[pool_count] = *pool;
	ledger_mark_unsure(pool->index);
	return &pools[pool_count++];
}

static struct known_pool *find_or_add(CUmemoryPool handle, int index)
{
	struct known_pool *p = find(handle);

	if (!p && (p = add(&(struct known_pool){ .handle = handle, .index = index })))
		update_charge(p, 0);
	return p;
}

static void shrink(struct known_pool *p)
{
	if (p->is_imported)
		return;
	if (real.cuMemPoolTrimTo)
		real.cuMemPoolTrimTo(p->handle, 0);
	update_charge(p, 0);
}

/* Call after the driver has destroyed the pool. From then on, processes that imported the pool's memory are charged. */
static void forget(struct known_pool *p)
{
	shared_drop(SHARED_EXPORTED_POOL, (uint64_t)(uintptr_t)p->handle);
	shared_drop(SHARED_IMPORTED_POOL, (uint64_t)(uintptr_t)p->handle);
	ledger_release(p->index, p->bytes);
	*p = pools[--pool_count];
}

/*
 * Postpones the destruction until all memory of the pool is freed. If the pool were destroyed now, the driver would keep that
 * memory, but no longer state its size.
 */
static void defer_destroy(struct known_pool *p)
{
	CUmemoryPool current, standard;
	cuuint64_t nothing = 0;

	p->is_destroy_deferred = true;
	if (real.cuMemPoolSetAttribute)
		real.cuMemPoolSetAttribute(p->handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &nothing);
	if (p->index != REGION_HOST && real.cuDeviceSetMemPool && real.cuDeviceGetDefaultMemPool &&
	    real.cuDeviceGetMemPool(&current, p->device) == CUDA_SUCCESS && current == p->handle &&
	    real.cuDeviceGetDefaultMemPool(&standard, p->device) == CUDA_SUCCESS)
		real.cuDeviceSetMemPool(p->device, standard);
	shrink(p);
}

/* If this destroys the pool, the last entry of `pools` moves to the place of *p. */
static void try_deferred_destroy(struct known_pool *p)
{
	if (!attribute(p->handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) &&
	    real.cuMemPoolDestroy(p->handle) == CUDA_SUCCESS)
		forget(p);
}

static void trim_locked(int index)
{
	for (unsigned i = 0; i < pool_count; i++) {
		if (pools[i].index == index)
			shrink(&pools[i]);
	}
}

void hook_pool_trim(int index)
{
	WITH_LOCK(&locks.pool);
	trim_locked(index);
}

void hook_pool_refresh(uint64_t now_ns)
{
	static uint64_t last_ns;

	if (now_ns - last_ns < RESERVED_REFRESH_NS || !sys_trylock(&locks.pool))
		return;
	last_ns = now_ns;
	for (unsigned i = pool_count; i-- > 0;) {
		if (pools[i].is_destroy_deferred) {
			shrink(&pools[i]);
			try_deferred_destroy(&pools[i]);
		} else if (!pools[i].is_imported) {
			update_charge(&pools[i], 0);
		}
	}
	sys_unlock(&locks.pool);
}

void hook_pool_reset(void)
{
	pool_count = 0;
}

static uint64_t max_growth(size_t bytes)
{
	return bytes > UINT64_MAX - RESERVED_STEP
		       ? UINT64_MAX
		       : (bytes + RESERVED_STEP - 1) / RESERVED_STEP * RESERVED_STEP;
}

/* Reserves for the largest growth, even if the pool has room: that may be fragmented, or returned to the GPU meanwhile. */
static bool reserve_growth(const struct known_pool *p, uint64_t growth, bool count_denial)
{
	struct reserve_wait wait = { 0 };

	if (ledger_reserve(p->index, growth, false) == 0)
		return true;
	trim_locked(p->index);
	/* locks.pool is held, so the wait must be short. It is: a tenant that holds a context is answered at once. */
	while (reserve_wait(p->index, growth, &wait))
		if (ledger_reserve(p->index, growth, false) == 0)
			return true;
	return ledger_reserve(p->index, growth, count_denial) == 0;
}

struct async_request {
	CUmemoryPool pool;
	CUstream stream;
	int index;
	CUresult (*alloc)(CUdeviceptr *, size_t, CUstream); /* alloc or alloc_from is NULL */
	CUresult (*alloc_from)(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
};

static CUresult call(const struct async_request *r, CUdeviceptr *ptr, size_t bytes)
{
	return r->alloc ? r->alloc(ptr, bytes, r->stream)
			: r->alloc_from(ptr, bytes, r->pool, r->stream);
}

static bool has_spare(const struct known_pool *p, size_t bytes)
{
	uint64_t used = attribute(p->handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
	uint64_t reserved = attribute(p->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);

	return used <= reserved && bytes <= reserved - used;
}

/* Sets *ret_result to the hook's result. Returns false if the pool's growth exceeds the quota, or `pools` is full. */
static bool alloc_in_pool(const struct async_request *r, CUdeviceptr *ptr, size_t bytes,
			  CUresult *ret_result)
{
	uint64_t growth = max_growth(bytes);

	WITH_LOCK(&locks.pool);
	struct known_pool *p = find_or_add(r->pool, r->index);
	if (p && (p->is_imported || p->is_destroy_deferred)) {
		/* The driver itself refuses an imported pool, but does not know that a pool is to be destroyed. */
		*ret_result = p->is_destroy_deferred ? CUDA_ERROR_INVALID_VALUE
						     : call(r, ptr, bytes);
		return true;
	}
	/* If the program named no pool, alloc_async() tries cuMemAlloc next, so a failure here is no denial yet. */
	if (!p || !reserve_growth(p, growth, r->alloc_from != NULL))
		return false;
	/* Even while the GPU's free memory is reserved for another tenant, the pool can use memory that it already has. */
	bool is_refused = swap_room_is_reserved(r->index, growth) && !has_spare(p, bytes);
	*ret_result = is_refused ? CUDA_ERROR_OUT_OF_MEMORY : call(r, ptr, bytes);
	swap_room_check_result(*ret_result, r->index, growth);
	update_charge(p, growth);
	if (*ret_result == CUDA_SUCCESS)
		trace_memory(TRACE_ALLOC, r->index, *ptr, bytes);
	return true;
}

/*
 * If a pool cannot grow by a whole step, the requested bytes alone may fit, so cuMemAlloc allocates them. cuMemFreeAsync
 * accepts such memory (CUDA Programming Guide, stream ordered memory allocator). Not during a capture, which cuMemAlloc would
 * break. Not for a pool that the program named, because the pool's pointers may be exported.
 */
static CUresult alloc_async(const struct async_request *r, CUdeviceptr *ptr, size_t bytes)
{
	CUresult result;

	if (alloc_in_pool(r, ptr, bytes, &result))
		return result;
	if (r->alloc && !atomic_load(&process_state.captures) && real.cuMemAlloc_v2)
		return hook_mem_alloc(real.cuMemAlloc_v2, ptr, bytes);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* True if `stream` is captured, so an allocation only makes a graph node. NULL may mean either default stream here. */
static bool is_captured(CUstream stream)
{
	CUstreamCaptureStatus status;

	if (likely(!atomic_load(&process_state.captures)) || !real.cuStreamIsCapturing ||
	    !inflight_is_handle(stream))
		return false;
	if (!stream && real.cuStreamIsCapturing(CU_STREAM_PER_THREAD, &status) == CUDA_SUCCESS &&
	    status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return true;
	return real.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
	       status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

DEFINE_HOOK_WITH_ROOM(hook_mem_alloc_async, alloc,
		      (CUdeviceptr * ptr, size_t bytes, CUstream stream), (ptr, bytes, stream))
{
	WITH_MEMORY_HELD();
	struct async_request r = { .stream = stream, .alloc = alloc };
	CUdevice device;

	if (!process_is_active() || is_captured(stream) ||
	    real.cuCtxGetDevice(&device) != CUDA_SUCCESS ||
	    (r.index = process_device_index(device)) < 0 || !real.cuDeviceGetMemPool ||
	    real.cuDeviceGetMemPool(&r.pool, device) != CUDA_SUCCESS)
		return alloc(ptr, bytes, stream);
	return alloc_async(&r, ptr, bytes);
}

/* A pool that is not in `pools` may be a device's default pool. */
static int index_of(CUmemoryPool pool)
{
	CUmemoryPool standard;

	{
		WITH_LOCK(&locks.pool);
		struct known_pool *p = find(pool);
		if (p)
			return p->index;
	}
	for (CUdevice device = 0; device < REGION_MAX_DEVICES && real.cuDeviceGetDefaultMemPool &&
				  real.cuDeviceGetDefaultMemPool(&standard, device) == CUDA_SUCCESS;
	     device++)
		if (standard == pool)
			return process_device_index(device);
	return process_current_index();
}

DEFINE_HOOK_WITH_ROOM(hook_mem_alloc_from_pool_async, alloc,
		      (CUdeviceptr * ptr, size_t bytes, CUmemoryPool pool, CUstream stream),
		      (ptr, bytes, pool, stream))
{
	WITH_MEMORY_HELD();
	struct async_request r = { .pool = pool, .stream = stream, .alloc_from = alloc };

	if (!process_is_active() || is_captured(stream) || (r.index = index_of(pool)) < 0)
		return alloc(ptr, bytes, pool, stream);
	return alloc_async(&r, ptr, bytes);
}

DEFINE_HOOK(hook_mem_pool_trim_to, trim, (CUmemoryPool pool, size_t keep_bytes))
{
	CUresult result = trim(pool, keep_bytes);

	if (process_is_active()) {
		WITH_LOCK(&locks.pool);
		struct known_pool *p = find(pool);
		if (p && !p->is_imported)
			update_charge(p, 0);
	}
	return result;
}

DEFINE_HOOK(hook_mem_pool_create, create, (CUmemoryPool * pool, const CUmemPoolProps *props))
{
	if (!process_is_active() || !props)
		return create(pool, props);
	WITH_LOCK(&locks.pool);
	CUresult result = create(pool, props);
	int index = result == CUDA_SUCCESS ? charge_location_index(&props->location) : -1;
	/* If `pools` is full, allocations from this pool will fail in alloc_in_pool(). */
	if (index >= 0)
		add(&(struct known_pool){ .handle = *pool,
					  .index = index,
					  .device = props->location.id,
					  .is_made = true });
	return result;
}

DEFINE_HOOK(hook_mem_pool_destroy, destroy, (CUmemoryPool pool))
{
	if (!process_is_active())
		return destroy(pool);
	WITH_LOCK(&locks.pool);
	struct known_pool *p = find(pool);
	if (p && p->is_destroy_deferred)
		return CUDA_ERROR_INVALID_VALUE;
	if (p && p->is_made && attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT)) {
		defer_destroy(p);
		return CUDA_SUCCESS;
	}
	CUresult result = destroy(pool);
	if (p && result == CUDA_SUCCESS)
		forget(p);
	return result;
}

void hook_pool_exported(CUmemoryPool pool, uint64_t wanted, uint64_t *ret_key)
{
	WITH_LOCK(&locks.pool);
	struct known_pool *p = find(pool);
	*ret_key = 0;
	if (!p || p->is_imported)
		return;
	if (!p->key) {
		p->key = wanted ? wanted : fd_tag_new_key();
		shared_record_export(&(struct shared){ .kind = SHARED_EXPORTED_POOL,
						       .index = p->index,
						       .id = (uint64_t)(uintptr_t)pool,
						       .key = p->key });
	}
	*ret_key = p->key;
}

void hook_pool_imported(CUmemoryPool pool, uint64_t key)
{
	WITH_LOCK(&locks.pool);
	if (!find(pool))
		add(&(struct known_pool){ .handle = pool, .key = key, .is_imported = true });
}

bool hook_pool_import(CUmemoryPool pool, int index, int64_t bytes)
{
	struct shared s = { .kind = SHARED_IMPORTED_POOL,
			    .index = index,
			    .id = (uint64_t)(uintptr_t)pool };

	{
		WITH_LOCK(&locks.pool);
		struct known_pool *p = find(pool);
		if (!p)
			return true;
		s.key = p->key;
		s.bytes = p->imports += (uint64_t)bytes;
	}
	/* The charge does not shrink, because the driver keeps freed memory in the pool until the pool is destroyed. */
	if (bytes < 0)
		return true;
	/* hook_pool_trim() takes locks.pool if a reservation does not fit, so this thread must not hold it here. */
	if (shared_key(s.kind, s.id) ? shared_grow(s.kind, s.id, s.bytes) : shared_record_import(&s))
		return true;
	WITH_LOCK(&locks.pool);
	struct known_pool *p = find(pool);
	if (p)
		p->imports -= (uint64_t)bytes;
	return false;
}
