/* Small allocations share 2 MiB blocks (struct heap) of 512-byte slots, as in the driver. An empty block is freed. */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/sim.h"

#define SLOT 512
#define SLOTS (SIM_UNIT / SLOT)

struct heap {
	struct heap *next;
	struct sim_region *region;
	uint32_t free;
	uint64_t used[SLOTS / 64];
	/* slots[i]: number of slots of the allocation that begins at slot i, or 0. rest[i]: unused bytes in its last slot. */
	uint16_t slots[SLOTS];
	uint16_t rest[SLOTS];
};

/* A list of its own: sim_va_list() has all large allocations too, so searching it would take longer. */
static struct heap *heaps;

static bool is_used(const struct heap *heap, uint32_t slot)
{
	return heap->used[slot / 64] >> slot % 64 & 1;
}

static void mark(struct heap *heap, uint32_t slot, uint32_t n, bool used)
{
	for (; n; slot++, n--) {
		if (used)
			heap->used[slot / 64] |= 1ull << slot % 64;
		else
			heap->used[slot / 64] &= ~(1ull << slot % 64);
	}
}

/* Returns the first of n free slots in a row; SLOTS if there are none. */
static uint32_t find(const struct heap *heap, uint32_t n)
{
	uint32_t run = 0;

	if (heap->free < n)
		return SLOTS;
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		if (slot % 64 == 0 && heap->used[slot / 64] == UINT64_MAX) {
			run = 0;
			slot += 63;
			continue;
		}
		run = is_used(heap, slot) ? 0 : run + 1;
		if (run == n)
			return slot + 1 - n;
	}
	return SLOTS;
}

static struct sim_region *grow(CUcontext ctx, CUresult *ret_result)
{
	struct heap *heap = calloc(1, sizeof(*heap));
	uint32_t block = 0;

	*ret_result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!heap)
		return NULL;
	*ret_result = sim_block_new(ctx->dev, sim_round(ctx->dev, SIM_UNIT), SIM_BLOCK_DATA, &block);
	struct sim_region *region = *ret_result == CUDA_SUCCESS
					    ? sim_va_new(REGION_HEAP, SIM_UNIT, 0)
					    : NULL;
	if (!region) {
		if (*ret_result == CUDA_SUCCESS)
			*ret_result = CUDA_ERROR_OUT_OF_MEMORY;
		sim_block_free(block);
		free(heap);
		return NULL;
	}
	heap->free = SLOTS;
	heap->region = region;
	heap->next = heaps;
	heaps = heap;
	region->detail = heap;
	region->block = block;
	region->ctx = ctx;
	region->dev = ctx->dev;
	region->bytes = SIM_UNIT;
	sim_va_add_backing(region, false);
	return region;
}

CUresult sim_heap_alloc(CUcontext ctx, uint64_t bytes, CUdeviceptr *ret_ptr)
{
	uint32_t n = (uint32_t)((bytes + SLOT - 1) / SLOT), slot = SLOTS;
	struct sim_region *region;
	struct heap *heap;
	CUresult r = CUDA_SUCCESS;

	for (heap = heaps; heap; heap = heap->next) {
		if (heap->region->ctx == ctx && (slot = find(heap, n)) != SLOTS)
			break;
	}
	region = heap ? heap->region : grow(ctx, &r);
	if (!region)
		return r;
	if (!heap) {
		heap = region->detail;
		slot = 0;
	}
	mark(heap, slot, n, true);
	heap->free -= n;
	heap->slots[slot] = (uint16_t)n;
	heap->rest[slot] = (uint16_t)(n * SLOT - bytes);
	*ret_ptr = region->base + (uint64_t)slot * SLOT;
	return CUDA_SUCCESS;
}

void sim_heap_region_gone(struct sim_region *region)
{
	struct heap **at = &heaps;

	while (*at && *at != region->detail)
		at = &(*at)->next;
	if (*at)
		*at = (*at)->next;
}

bool sim_heap_free(struct sim_region *region, uint64_t addr)
{
	struct heap *heap = region->detail;
	uint32_t slot = (uint32_t)((addr - region->base) / SLOT), n;

	if ((addr - region->base) % SLOT || !heap->slots[slot])
		return false;
	n = heap->slots[slot];
	heap->slots[slot] = 0;
	mark(heap, slot, n, false);
	heap->free += n;
	if (heap->free == SLOTS)
		sim_region_drop(region);
	return true;
}

bool sim_heap_find(struct sim_region *region, uint64_t addr, uint64_t *ret_base, uint64_t *ret_bytes)
{
	const struct heap *heap = region->detail;
	uint32_t slot = (uint32_t)((addr - region->base) / SLOT);

	if (!is_used(heap, slot))
		return false;
	while (!heap->slots[slot])
		slot--;
	*ret_base = region->base + (uint64_t)slot * SLOT;
	*ret_bytes = heap->slots[slot] * SLOT - heap->rest[slot];
	return addr < *ret_base + *ret_bytes;
}
