#include "interpose/charge.h"

#include <string.h>

#include "interpose/hook_pool.h"
#include "interpose/log.h"
#include "interpose/real.h"

#define SHARED_CHUNK_STEP 512ULL
#define SHARED_CHUNK_MAX (1 * MIB)
#define PAGE (2 * MIB)

uint64_t charge_rounded(uint64_t bytes)
{
	uint64_t step = bytes <= SHARED_CHUNK_MAX ? SHARED_CHUNK_STEP : PAGE;

	if (bytes > UINT64_MAX - step)
		return UINT64_MAX;
	return (bytes + step - 1) / step * step;
}

int charge_index(void)
{
	return guest_is_active() ? guest_current_index() : -1;
}

int charge_place(const CUmemLocation *location)
{
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		return guest_device_index(location->id);
	return location->type >= CU_MEM_LOCATION_TYPE_HOST &&
			       location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
		       ? REGION_HOST
		       : -1;
}

static bool reserve(int index, uint64_t bytes)
{
	if (ledger_reserve(index, bytes, false) == 0)
		return true;
	hook_pool_trim(index);
	if (ledger_wait_for_look(index) && ledger_reserve(index, bytes, false) == 0)
		return true;
	if (ledger_reserve(index, bytes, true) == 0)
		return true;
	log_debug("device %d (%d: host memory): %llu bytes refused: %llu of %llu in use", index,
		  REGION_HOST, (unsigned long long)bytes, (unsigned long long)ledger_used(index),
		  (unsigned long long)ledger_quota(index));
	return false;
}

bool charge_begin(const struct holding *h)
{
	return h->device < 0 || reserve(h->device, h->bytes);
}

bool charge_resize(struct holding *h, uint64_t bytes)
{
	if (h->device < 0)
		return true;
	if (bytes > h->bytes && !reserve(h->device, bytes - h->bytes))
		return false;
	if (bytes < h->bytes)
		ledger_release(h->device, h->bytes - bytes);
	h->bytes = bytes;
	return true;
}

/* The current context: what dies with it is found by it. */
static uint64_t owner(void)
{
	CUcontext context = NULL;

	if (real.cuCtxGetCurrent)
		real.cuCtxGetCurrent(&context);
	return (uint64_t)(uintptr_t)context;
}

CUresult charge_end(struct holding *h, CUresult result, const void *made, void (*undo)(uint64_t key))
{
	if (h->device < 0)
		return result;
	if (result == CUDA_SUCCESS) {
		memcpy(&h->key, made, sizeof(h->key));
		h->owner = owner();
		if (ptrmap_insert(h))
			return result;
		undo(h->key);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	ledger_release(h->device, h->bytes);
	return result;
}
