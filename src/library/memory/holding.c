#include "library/memory/holding.h"

#include <string.h>

#include "library/loader/real.h"
#include "library/memory/reserve_wait.h"
#include "library/memory/swap_room.h"
#include "library/sys/log.h"
#include "library/trace/trace_record.h"

#define PAGE (2 * MIB)

static void (*trim_pools)(int index);

void charge_set_trim(void (*trim)(int index))
{
	trim_pools = trim;
}

uint64_t charge_rounded(uint64_t bytes)
{
	uint64_t step = bytes < SUBALLOC_CHUNK ? SUBALLOC_STEP : PAGE;

	if (bytes > UINT64_MAX - step)
		return UINT64_MAX;
	return (bytes + step - 1) / step * step;
}

static bool is_suballoc(const struct holding *h)
{
	return h->kind == HOLDING_MEMORY && h->bytes <= SUBALLOC_MAX && h->device != REGION_HOST;
}

/* A suballocation (suballoc.h) may need a new chunk, so it counts as a whole one. */
static uint64_t cost(const struct holding *h)
{
	return is_suballoc(h) ? SUBALLOC_CHUNK : h->bytes;
}

int charge_index(void)
{
	return process_is_active() ? process_current_index() : -1;
}

int charge_index_of_call(void)
{
	if (!process_is_active())
		return -1;
	return likely(atomic_load_explicit(&process_own()->has_one_device, memory_order_relaxed))
		       ? 0
		       : process_current_index();
}

int charge_location_index(const CUmemLocation *location)
{
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		return process_device_index(location->id);
	return location->type >= CU_MEM_LOCATION_TYPE_HOST &&
			       location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
		       ? REGION_HOST
		       : -1;
}

/*
 * While the driver's checkpoint keeps the tenant off its GPU, the quota equals the memory that the tenant holds, so every new
 * reservation fails. Waits in cuMemGetInfo until the tenant is back, and returns true: the reservation is worth another try.
 * Returns false if the driver did not answer, the process captures a stream, or the thread has no context.
 */
static bool wait_in_driver(void)
{
	size_t free_bytes, total_bytes;

	return real.cuMemGetInfo_v2 && !atomic_load(&process_state.captures) &&
	       real.cuMemGetInfo_v2(&free_bytes, &total_bytes) == CUDA_SUCCESS;
}

static bool reserve(int index, uint64_t bytes)
{
	struct reserve_wait wait = { 0 };

	if (ledger_reserve(index, bytes, false) == 0)
		return true;
	if (index != REGION_HOST)
		suballoc_drain(index);
	if (trim_pools)
		trim_pools(index);
	while (reserve_wait(index, bytes, &wait))
		if (ledger_reserve(index, bytes, false) == 0)
			return true;
	if (index != REGION_HOST && wait_in_driver() && ledger_reserve(index, bytes, false) == 0)
		return true;
	if (ledger_reserve(index, bytes, true) == 0)
		return true;
	log_debug("device %d (%d means host memory): allocation of %llu bytes refused: the tenant "
		  "uses %llu of its quota of %llu bytes",
		  index, REGION_HOST, (unsigned long long)bytes,
		  (unsigned long long)ledger_used(index), (unsigned long long)ledger_quota(index));
	return false;
}

bool charge_begin(struct holding *h)
{
	if (h->device < 0)
		return true;
	if (h->kind == HOLDING_ARRAY)
		ledger_mark_unsure(h->device);
	if (is_suballoc(h) && (h->related = suballoc_take_spare(h->device)) == SUBALLOC_SPARE)
		return true;
	return reserve(h->device, cost(h));
}

static void give_back_reserved(const struct holding *h)
{
	if (is_suballoc(h))
		suballoc_failed(h->device, (enum suballoc_charge)h->related);
	else
		ledger_release(h->device, h->bytes);
}

bool charge_begin_on_gpu(struct holding *h)
{
	if (!charge_begin(h))
		return false;
	if (likely(!swap_room_is_reserved(h->device, cost(h))))
		return true;
	give_back_reserved(h);
	return false;
}

bool charge_resize(struct holding *h, uint64_t bytes)
{
	struct holding resized = *h;
	uint64_t old_cost = cost(h);

	if (h->device < 0)
		return true;
	resized.bytes = bytes;
	uint64_t new_cost = cost(&resized);
	if (new_cost > old_cost && !reserve(h->device, new_cost - old_cost))
		return false;
	if (new_cost < old_cost)
		ledger_release(h->device, old_cost - new_cost);
	if (is_suballoc(h) && !is_suballoc(&resized) && h->related == SUBALLOC_SPARE)
		suballoc_use_spare(h->device);
	if (!is_suballoc(h))
		h->related = SUBALLOC_RESERVED;
	h->bytes = bytes;
	return true;
}

static bool note(struct holding *h)
{
	if (is_suballoc(h)) {
		if (likely(suballoc_add(h->key, h->device, (enum suballoc_charge)h->related)))
			return true;
		/* The suballocation cannot be counted, so charge it as a whole chunk. */
		charge_resize(h, SUBALLOC_CHUNK);
	}
	h->owner = (uint64_t)(uintptr_t)real_current_context();
	return ptrmap_insert(h);
}

CUresult charge_end(struct holding *h, CUresult result, const void *made, void (*undo)(uint64_t key))
{
	if (h->device < 0)
		return result;
	if (likely(result == CUDA_SUCCESS)) {
		memcpy(&h->key, made, sizeof(h->key));
		if (likely(note(h))) {
			trace_memory(TRACE_ALLOC, h->device, h->key, h->bytes);
			return result;
		}
		undo(h->key);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		swap_room_check_result(result, h->device, cost(h));
	}
	give_back_reserved(h);
	return result;
}

CUresult charge_give_back(const struct holding *h, CUresult result)
{
	if (result == CUDA_SUCCESS) {
		ledger_release(h->device, h->bytes);
		trace_memory(TRACE_FREE, h->device, h->key, h->bytes);
	} else {
		ptrmap_insert(h);
	}
	return result;
}

bool charge_find(CUdeviceptr ptr, uint64_t bytes, struct holding *ret_holding)
{
	const struct suballoc_chunk *chunk = charge_suballoc_at(ptr);

	if (!chunk)
		return ptrmap_find(HOLDING_MEMORY, ptr, ret_holding);
	*ret_holding = (struct holding){
		.kind = HOLDING_MEMORY,
		.key = ptr,
		.device = suballoc_device(chunk),
		.bytes = bytes,
		.owner = chunk->owner,
	};
	return true;
}

static void drop(const struct holding *h, void *unused)
{
	ledger_release(h->device, h->bytes);
}

void charge_context_gone(CUcontext context)
{
	uint64_t gone = (uint64_t)(uintptr_t)context;

	ptrmap_remove_owned(gone, drop, NULL);
	suballoc_context_gone(gone);
}
