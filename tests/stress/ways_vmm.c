/*
 * Memory of the virtual memory API, which lives as long as its handle or any mapping of it: obtained
 * once more by an address, mapped several times, let go in any order.
 */
#include "ways.h"

#define UNIT (2 * MIB)

static void map_some(struct ways_thread *t, struct held *h)
{
	for (uint64_t i = 0, n = pick(t, WAYS_PIECES + 1); i < n; i++) {
		GPU_DO(cuMemAddressReserve(&h->piece[i], h->physical_bytes, 0, 0, 0));
		GPU_DO(cuMemMap(h->piece[i], h->physical_bytes, 0, h->handle, 0));
	}
}

/* The same memory's handle again, and back. */
static void retain(struct ways_thread *t, struct held *h)
{
	CUdeviceptr inside = h->piece[0] + (pick(t, 2) ? 0 : pick(t, h->physical_bytes));
	CUmemGenericAllocationHandle again;

	GPU_DO(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)inside));
	GPU_DO(cuMemRelease(again));
}

CUresult get_physical(struct ways_thread *t, struct held *h)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};

	h->bytes = h->physical_bytes = (1 + pick(t, 12)) * UNIT;
	CUresult result = cuMemCreate(&h->handle, h->bytes, &prop, 0);
	if (result != CUDA_SUCCESS)
		return result;
	map_some(t, h);
	if (h->piece[0] && pick(t, 3) == 0)
		retain(t, h);
	/* Half of those that are mapped live on by that alone. */
	if (h->piece[0] && pick(t, 2)) {
		GPU_DO(cuMemRelease(h->handle));
		h->handle = 0;
	}
	return result;
}

static void unmap(struct held *h, unsigned i)
{
	if (!h->piece[i])
		return;
	GPU_DO(cuMemUnmap(h->piece[i], h->physical_bytes));
	GPU_DO(cuMemAddressFree(h->piece[i], h->physical_bytes));
	h->piece[i] = 0;
}

bool put_physical(struct ways_thread *t, struct held *h)
{
	unsigned first = (unsigned)pick(t, WAYS_PIECES);

	if (h->piece[0] && pick(t, 4) == 0)
		retain(t, h);
	for (unsigned i = 0; i < WAYS_PIECES; i++) {
		if (h->handle && pick(t, 3) == 0) {
			GPU_DO(cuMemRelease(h->handle));
			h->handle = 0;
		}
		unmap(h, (first + i) % WAYS_PIECES);
	}
	if (h->handle)
		GPU_DO(cuMemRelease(h->handle));
	return true;
}
