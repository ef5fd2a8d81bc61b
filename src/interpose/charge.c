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

static bool is_piece(const struct holding *h)
{
	return h->kind == HOLDING_MEMORY && h->bytes <= SHARED_CHUNK_MAX && h->device != REGION_HOST;
}

uint64_t charge_cost(const struct holding *h)
{
	return is_piece(h) ? PAGE : h->bytes;
}

static uint64_t chunk_key(uint64_t ptr)
{
	return ptr / PAGE;
}

/*
 * One piece more in its chunk, whose cost is reserved: given back where the chunk was there before. False:
 * no memory for the note.
 */
static bool add_piece(const struct holding *piece)
{
	const struct holding chunk = {
		.kind = HOLDING_CHUNK,
		.key = chunk_key(piece->key),
		.device = piece->device,
		.bytes = 1,
		.owner = piece->owner,
	};
	uint64_t pieces = ptrmap_count_up(&chunk);

	if (pieces > 1 && pieces != UINT64_MAX)
		ledger_release(piece->device, PAGE);
	return pieces != UINT64_MAX;
}

static void release(const struct holding *h)
{
	if (!is_piece(h) || ptrmap_count_down(HOLDING_CHUNK, chunk_key(h->key)) == 0)
		ledger_release(h->device, charge_cost(h));
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
	if (h->device < 0)
		return true;
	if (h->kind == HOLDING_ARRAY)
		ledger_mark_unsure(h->device);
	return reserve(h->device, charge_cost(h));
}

bool charge_resize(struct holding *h, uint64_t bytes)
{
	struct holding resized = *h;
	uint64_t old = charge_cost(h);

	if (h->device < 0)
		return true;
	resized.bytes = bytes;
	uint64_t cost = charge_cost(&resized);
	if (cost > old && !reserve(h->device, cost - old))
		return false;
	if (cost < old)
		ledger_release(h->device, old - cost);
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

/* The piece before its chunk: so a chunk that is there has a piece, or will have. */
static bool note(const struct holding *h)
{
	struct holding same;

	if (!ptrmap_insert(h))
		return false;
	if (!is_piece(h) || add_piece(h))
		return true;
	ptrmap_remove(h->kind, h->key, &same);
	return false;
}

CUresult charge_end(struct holding *h, CUresult result, const void *made, void (*undo)(uint64_t key))
{
	if (h->device < 0)
		return result;
	if (result == CUDA_SUCCESS) {
		memcpy(&h->key, made, sizeof(h->key));
		h->owner = owner();
		if (note(h))
			return result;
		undo(h->key);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	ledger_release(h->device, charge_cost(h));
	return result;
}

CUresult charge_give_back(const struct holding *h, CUresult result)
{
	if (result == CUDA_SUCCESS)
		release(h);
	else
		ptrmap_insert(h);
	return result;
}

void charge_drop(const struct holding *h, void *unused)
{
	if (h->kind == HOLDING_CHUNK)
		ledger_release(h->device, PAGE);
	else if (!is_piece(h))
		ledger_release(h->device, h->bytes);
}
