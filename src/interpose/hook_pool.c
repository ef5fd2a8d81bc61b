#include "interpose/hook_pool.h"

#include "interpose/charge.h"
#include "interpose/guest.h"
#include "interpose/hooks.h"
#include "interpose/ledger.h"
#include "interpose/real.h"

#define POOL_STEP (32 * MIB) /* measured: what a pool grows by */
#define REFRESH_EVERY_NS (20 * NS_PER_MS)
#define MAX_POOLS 1024

/* One at a time: a pool's figure before and after a call must not mix with another call's. */
static struct sys_lock pool_lock;

/*
 * The pools that were allocated from. A list of their own and not holdings: they are walked 50 times a
 * second, and a walk through 100,000 holdings took a tenth of a core.
 */
struct known_pool {
	CUmemoryPool handle;
	int index;
	uint64_t bytes; /* charged: what it reserved when we last looked */
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
 * Brings the charge of a pool to what it reserves now, in one step with giving `reserved_for_it` back:
 * in two, the same bytes would count twice for a moment, and others be refused. Holds pool_lock.
 */
static void settle(struct known_pool *p, uint64_t reserved_for_it)
{
	uint64_t bytes = attribute(p->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);

	if (bytes != p->bytes + reserved_for_it)
		ledger_adjust(p->index, (int64_t)(bytes - p->bytes - reserved_for_it));
	p->bytes = bytes;
}

/* Holds pool_lock, as do all below. NULL: not known. */
static struct known_pool *find(CUmemoryPool handle)
{
	for (unsigned i = 0; i < pool_count; i++)
		if (pools[i].handle == handle)
			return &pools[i];
	return NULL;
}

static struct known_pool *know(CUmemoryPool handle, int index)
{
	struct known_pool *p = find(handle);

	if (p || pool_count == MAX_POOLS)
		return p;
	p = &pools[pool_count++];
	*p = (struct known_pool){ .handle = handle, .index = index };
	settle(p, 0);
	return p;
}

static void trim_locked(int index)
{
	for (unsigned i = 0; i < pool_count; i++) {
		if (pools[i].index != index)
			continue;
		if (real.cuMemPoolTrimTo)
			real.cuMemPoolTrimTo(pools[i].handle, 0);
		settle(&pools[i], 0);
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

	if (now_ns - last_ns < REFRESH_EVERY_NS || !sys_trylock(&pool_lock))
		return;
	last_ns = now_ns;
	for (unsigned i = 0; i < pool_count; i++)
		settle(&pools[i], 0);
	sys_unlock(&pool_lock);
}

void hook_pool_reset(void)
{
	pool_lock = (struct sys_lock){ 0 };
	pool_count = 0;
}

/* The most that the pool may grow by for this request. */
static uint64_t most_growth(size_t bytes)
{
	return bytes > UINT64_MAX - POOL_STEP ? UINT64_MAX
					      : (bytes + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
}

/*
 * Reserves for the growth that the call may cause: the most, though the pool may look as if it had
 * room. That room may be in pieces, and another thread's synchronization may give it back to the card
 * before the driver looks; with less reserved, a pool near the quota grew past it for a moment (65 MiB
 * over 4 GiB with 8 processes).
 */
static bool reserve_growth(const struct known_pool *p, uint64_t growth, bool count_denial)
{
	if (ledger_reserve(p->index, growth, false) == 0)
		return true;
	trim_locked(p->index);
	return ledger_reserve(p->index, growth, count_denial) == 0;
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

/* False: the quota has no room for the pool's growth. */
static bool alloc_in_pool(const struct async_request *r, CUdeviceptr *ptr, size_t bytes,
			  CUresult *ret_result)
{
	uint64_t growth = most_growth(bytes);

	WITH_LOCK(&pool_lock);
	struct known_pool *p = know(r->pool, r->index);
	/* The default pool's refusal is not the last word: see alloc_async(). */
	if (!p || !reserve_growth(p, growth, r->alloc_from != NULL))
		return false;
	*ret_result = call(r, ptr, bytes);
	settle(p, growth);
	return true;
}

/*
 * Where a pool can't grow, because its steps are coarse, the very bytes may still fit: they come from
 * cuMemAlloc then, which cuMemFreeAsync and cuMemFree take back alike (CUDA Programming Guide, stream
 * ordered memory allocator). Not while something is being captured, which that call would spoil, nor
 * for a pool that the program named: it may want to export the pointer.
 */
static CUresult alloc_async(const struct async_request *r, CUdeviceptr *ptr, size_t bytes)
{
	CUresult result;

	if (alloc_in_pool(r, ptr, bytes, &result))
		return result;
	if (r->alloc && !atomic_load(&guest.captures) && real.cuMemAlloc_v2)
		return hook_mem_alloc(real.cuMemAlloc_v2, ptr, bytes);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * An allocation that is being captured makes a node of a graph and no memory. Asked of the stream
 * itself: a capture elsewhere in the process leaves this one as it is. NULL may stand for either
 * default stream here.
 */
static bool is_captured(CUstream stream)
{
	CUstreamCaptureStatus status;

	if (likely(!atomic_load(&guest.captures)) || !real.cuStreamIsCapturing)
		return false;
	if (!stream && real.cuStreamIsCapturing(CU_STREAM_PER_THREAD, &status) == CUDA_SUCCESS &&
	    status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return true;
	return real.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
	       status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult hook_mem_alloc_async(CUresult (*alloc)(CUdeviceptr *, size_t, CUstream), CUdeviceptr *ptr,
			      size_t bytes, CUstream stream)
{
	struct async_request r = { .stream = stream, .alloc = alloc };
	CUdevice device;

	if (!guest_is_active() || is_captured(stream) ||
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

	if (!guest_is_active() || is_captured(stream) || (r.index = guest_current_index()) < 0)
		return alloc(ptr, bytes, pool, stream);
	return alloc_async(&r, ptr, bytes);
}

CUresult hook_mem_pool_trim_to(CUresult (*trim)(CUmemoryPool, size_t), CUmemoryPool pool,
			       size_t keep_bytes)
{
	CUresult result = trim(pool, keep_bytes);

	if (guest_is_active()) {
		WITH_LOCK(&pool_lock);
		struct known_pool *p = find(pool);
		if (p)
			settle(p, 0);
	}
	return result;
}

CUresult hook_mem_pool_destroy(CUresult (*destroy)(CUmemoryPool), CUmemoryPool pool)
{
	if (!guest_is_active())
		return destroy(pool);
	WITH_LOCK(&pool_lock);
	struct known_pool *p = find(pool);
	CUresult result = destroy(pool);
	if (p && result == CUDA_SUCCESS) {
		ledger_release(p->index, p->bytes);
		*p = pools[--pool_count];
	}
	return result;
}
