/*
 * Memory pools and stream-ordered allocation. A pool takes memory in chunks, multiples of 32 MiB. It returns an empty chunk
 * when it is trimmed, or at a sync point if more than its release threshold is reserved. A free takes effect at the call, not
 * in stream order, because simulated work does not read memory.
 */
#include "sim/cuda/memory/pool.h"

#include <stdlib.h>
#include <string.h>

#define STEP_BYTES (32ull << 20)
#define ALIGN_BYTES 512

static CUmemoryPool pools;
/* in all pools; at 0 a sync point has nothing to release */
static atomic_uint empty_chunks;

bool sim_pool_is(CUmemoryPool pool)
{
	for (CUmemoryPool p = pools; p; p = p->next)
		if (p == pool && !p->is_ended)
			return true;
	return false;
}

void sim_pool_region_gone(struct sim_region *region)
{
	struct chunk *chunk = region->detail;
	struct chunk **at = &chunk->pool->chunks;

	while (*at != chunk)
		at = &(*at)->next;
	*at = chunk->next;
	if (!chunk->pieces_n)
		atomic_fetch_sub(&empty_chunks, 1);
	for (uint32_t i = 0; i < chunk->pieces_n; i++)
		chunk->pool->used -= chunk->pieces[i].span;
	chunk->pool->reserved -= region->span;
	free(chunk->pieces);
}

CUmemoryPool sim_pool_of(struct sim_region *region)
{
	return ((struct chunk *)region->detail)->pool;
}

void sim_pool_trim(CUmemoryPool pool, uint64_t keep)
{
	struct chunk *chunk = pool->chunks, *next;

	for (; chunk && pool->reserved > keep; chunk = next) {
		next = chunk->next;
		if (!chunk->pieces_n)
			sim_region_drop(chunk->region);
	}
}

void sim_pools_trim_after_sync(CUdevice dev)
{
	if (!atomic_load_explicit(&empty_chunks, memory_order_relaxed))
		return;
	SIM_WITH_LOCK();
	for (CUmemoryPool pool = pools; pool; pool = pool->next)
		if (pool->dev == dev)
			sim_pool_trim(pool, SIM_MAX(pool->threshold, pool->used));
}

static uint32_t next_index(const struct chunk *chunk, uint64_t offset)
{
	uint32_t low = 0, high = chunk->pieces_n;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (chunk->pieces[mid].offset <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Places an allocation of `span` bytes (rounded up) in the chunk. False if no gap is large enough, or out of memory. */
static bool place(struct chunk *chunk, uint64_t span, uint64_t bytes, uint64_t *ret_addr)
{
	uint64_t at = 0;
	uint32_t i;

	for (i = 0; i < chunk->pieces_n; i++) {
		if (chunk->pieces[i].offset - at >= span)
			break;
		at = chunk->pieces[i].offset + chunk->pieces[i].span;
	}
	if (at + span > chunk->region->span)
		return false;
	if (chunk->pieces_n == chunk->pieces_size) {
		uint32_t size = chunk->pieces_size ? chunk->pieces_size * 2 : 16;
		struct piece *pieces = realloc(chunk->pieces, size * sizeof(*pieces));

		if (!pieces)
			return false;
		chunk->pieces = pieces;
		chunk->pieces_size = size;
	}
	memmove(chunk->pieces + i + 1, chunk->pieces + i,
		(chunk->pieces_n - i) * sizeof(*chunk->pieces));
	chunk->pieces[i] = (struct piece){ at, span, bytes };
	if (!chunk->pieces_n++)
		atomic_fetch_sub(&empty_chunks, 1);
	*ret_addr = chunk->region->base + at;
	return true;
}

static CUresult grow(CUmemoryPool pool, uint64_t span, struct chunk **ret_chunk)
{
	uint64_t bytes = (span + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
	struct chunk *chunk = calloc(1, sizeof(*chunk));
	struct sim_region *region = NULL;
	uint32_t block = 0;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (chunk && pool->on_host)
		r = CUDA_SUCCESS;
	else if (chunk && (!pool->max_bytes || pool->reserved + bytes <= pool->max_bytes))
		r = sim_block_new(pool->dev, bytes, SIM_BLOCK_DATA, &block);
	if (r == CUDA_SUCCESS && !(region = sim_va_new(REGION_POOL, bytes, 0)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r != CUDA_SUCCESS) {
		sim_block_free(block);
		free(chunk);
		return r;
	}
	region->block = block;
	region->dev = pool->dev;
	region->bytes = bytes;
	region->detail = chunk;
	sim_va_add_backing(region, false);
	chunk->pool = pool;
	chunk->region = region;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->reserved += bytes;
	pool->reserved_high = SIM_MAX(pool->reserved_high, pool->reserved);
	atomic_fetch_add(&empty_chunks, 1);
	*ret_chunk = chunk;
	return CUDA_SUCCESS;
}

static CUresult pool_alloc(CUmemoryPool pool, uint64_t bytes, CUdeviceptr *ret_ptr)
{
	uint64_t span = (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES, addr;
	struct chunk *chunk;
	CUresult r = CUDA_SUCCESS;

	for (chunk = pool->chunks; chunk; chunk = chunk->next)
		if (place(chunk, span, bytes, &addr))
			break;
	if (!chunk) {
		r = grow(pool, span, &chunk);
		if (r == CUDA_ERROR_OUT_OF_MEMORY) {
			/* Releasing the empty chunks of the device's pools may free enough memory. */
			for (CUmemoryPool p = pools; p; p = p->next)
				if (p->dev == pool->dev)
					sim_pool_trim(p, 0);
			r = grow(pool, span, &chunk);
		}
		if (r == CUDA_SUCCESS && !place(chunk, span, bytes, &addr))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS)
		return r;
	pool->used += span;
	pool->used_high = SIM_MAX(pool->used_high, pool->used);
	*ret_ptr = addr;
	return CUDA_SUCCESS;
}

static const struct piece *find_piece(const struct sim_region *region, uint64_t addr)
{
	const struct chunk *chunk = region->detail;
	uint32_t i = next_index(chunk, addr - region->base);

	if (!i || addr - region->base >= chunk->pieces[i - 1].offset + chunk->pieces[i - 1].span)
		return NULL;
	return &chunk->pieces[i - 1];
}

bool sim_pool_find(struct sim_region *region, uint64_t addr, uint64_t *ret_base, uint64_t *ret_bytes)
{
	const struct piece *piece = find_piece(region, addr);

	if (!piece)
		return false;
	*ret_base = region->base + piece->offset;
	*ret_bytes = piece->bytes;
	return true;
}

CUresult sim_pool_free(struct sim_region *region, uint64_t addr)
{
	struct chunk *chunk = region->detail;
	const struct piece *piece = find_piece(region, addr);

	SIM_FAIL_IF(!piece || region->base + piece->offset != addr, CUDA_ERROR_INVALID_VALUE);
	uint32_t i = (uint32_t)(piece - chunk->pieces);
	chunk->pool->used -= piece->span;
	memmove(chunk->pieces + i, chunk->pieces + i + 1,
		(chunk->pieces_n - i - 1) * sizeof(*chunk->pieces));
	if (!--chunk->pieces_n)
		atomic_fetch_add(&empty_chunks, 1);
	if (chunk->pool->is_ended)
		sim_pool_end(chunk->pool);
	return CUDA_SUCCESS;
}

void sim_pool_import_gone(struct sim_region *region)
{
	CUmemoryPool pool = *(CUmemoryPool *)region->detail;

	pool->pointers_n--;
	if (pool->is_ended)
		sim_pool_end(pool);
}

CUmemoryPool sim_pool_new(CUdevice dev, bool is_default)
{
	CUmemoryPool pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->magic = MAGIC_POOL;
	pool->dev = dev;
	pool->is_default = is_default;
	pool->access = 1u << dev;
	for (int i = 0; i < 3; i++)
		pool->reuse[i] = 1;
	pool->next = pools;
	pools = pool;
	return pool;
}

CUresult sim_pool_default(CUdevice dev, CUmemoryPool *ret_pool)
{
	struct sim_device *device = &sim.devices[dev];

	SIM_FAIL_IF(!device->default_pool && !(device->default_pool = sim_pool_new(dev, true)),
		    CUDA_ERROR_OUT_OF_MEMORY);
	*ret_pool = device->default_pool;
	return CUDA_SUCCESS;
}

void sim_pool_end(CUmemoryPool pool)
{
	CUmemoryPool *at;

	pool->is_ended = true;
	sim_pool_trim(pool, 0);
	if (pool->chunks || pool->pointers_n)
		return;
	while (pool->kept) {
		struct kept *kept = pool->kept;

		pool->kept = kept->next;
		sim_block_free(kept->block);
		free(kept);
	}
	for (at = &pools; *at != pool; at = &(*at)->next)
		;
	*at = pool->next;
	sim_free_handle(pool);
}

static CUresult alloc_async(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream handle,
			    bool ptds)
{
	CUstream stream;
	CUresult r;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_FAIL_IF(!ptr || !bytes, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(sim_fault_oom() || bytes > 1ull << 44, CUDA_ERROR_OUT_OF_MEMORY);
	if (sim_is_capturing(stream)) {
		struct sim_step step = { .kind = STEP_ALLOC,
					 .value = bytes,
					 .flags = (unsigned int)stream->ctx->dev };

		step.addr = *ptr = sim_graph_addresses(stream->ctx, bytes);
		sim_capture_step(stream, &step, &r);
		return *ptr ? r : CUDA_ERROR_OUT_OF_MEMORY;
	}
	SIM_WITH_LOCK();
	if (pool)
		SIM_FAIL_IF(!sim_pool_is(pool) || pool->is_imported, CUDA_ERROR_INVALID_VALUE);
	else if (!(pool = sim.devices[stream->ctx->dev].pool))
		SIM_TRY(sim_pool_default(stream->ctx->dev, &pool));
	return pool_alloc(pool, bytes, ptr);
}

SIM_TWINS(cuMemAllocAsync, _ptsz, (CUdeviceptr * ptr, size_t bytes, CUstream stream),
	  return alloc_async(ptr, bytes, NULL, stream, ptds);)
SIM_TWINS(cuMemAllocFromPoolAsync, _ptsz,
	  (CUdeviceptr * ptr, size_t bytes, CUmemoryPool pool, CUstream stream),
	  return pool ? alloc_async(ptr, bytes, pool, stream, ptds) : CUDA_ERROR_INVALID_VALUE;)

static CUresult free_async(CUdeviceptr ptr, CUstream handle, bool ptds)
{
	CUstream stream;
	CUresult r;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	if (sim_is_capturing(stream)) {
		sim_capture_step(stream, &(struct sim_step){ .kind = STEP_FREE, .addr = ptr }, &r);
		return r;
	}
	SIM_WITH_LOCK();
	return sim_free(ptr);
}

SIM_TWINS(cuMemFreeAsync, _ptsz, (CUdeviceptr ptr, CUstream stream),
	  return free_async(ptr, stream, ptds);)
