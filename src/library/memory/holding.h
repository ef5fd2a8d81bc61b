/*
 * The steps that all allocation hooks share. To charge memory is to count it against the tenant's quota. A holding (ptrmap.h)
 * records one allocation of this process:
 *
 *     to allocate:                                        to free:
 *
 *     struct holding h = { .kind, .device, .bytes };      struct holding h;
 *     charge_begin(&h)      reserves h.bytes              charge_forget(kind, key, &h)   removes the record
 *     the driver's call                                   the driver's call
 *     charge_end(&h, ...)   on success records h,         charge_give_back(&h, ...)      on success gives h.bytes back,
 *                           else gives h.bytes back                                      else records h again
 */
#pragma once

#include "abi/cuda_abi.h"
#include "library/memory/ledger.h"
#include "library/memory/suballoc.h"
#include "library/memory/ptrmap.h"
#include "library/state/process_state.h"

#define KIB 1024ULL
#define MIB (1024 * KIB)

/* The GPU memory that `bytes` of linear memory take: part of a chunk (suballoc.h), or whole pages of 2 MiB. */
uint64_t charge_rounded(uint64_t bytes);

/* The calling thread's device. -1 if nothing is charged: no tenant, no current context, or not the tenant's device. */
int charge_index(void);

/*
 * As charge_index(), for a call that fails without a current context. If the tenant has one device, does not ask the driver,
 * because there can be no context of another device (hook_context.c).
 */
int charge_index_of_call(void);

/* Returns the device to charge for memory at `location`, or REGION_HOST for host memory; -1 if nothing is charged. */
int charge_location_index(const CUmemLocation *location);

/*
 * Reserves h->bytes on h->device. If that fails, trims this process's memory pools and tries again. Then waits if that may help
 * (reserve_wait.h). Returns false if refused; the refusal is counted, and the call must fail with CUDA_ERROR_OUT_OF_MEMORY. If
 * h->device is -1, nothing is charged, here or in charge_end().
 */
bool charge_begin(struct holding *h);

/*
 * As charge_begin(), for memory on the GPU. In a swappable process, also refuses while the GPU's free memory is kept for
 * another tenant. Such a refusal is recorded for WITH_ROOM() (swap_room.h), as is a driver's "out of memory" in charge_end().
 */
bool charge_begin_on_gpu(struct holding *h);

/* Call before charge_end() if the driver states the real size. Returns false if refused; then h is unchanged. */
bool charge_resize(struct holding *h, uint64_t bytes);

/*
 * Ends the hook with the driver's `result`. On success, records the holding under the address or handle (8 bytes) at `made`. On
 * failure, gives the reservation back. If out of host memory for the record, calls undo(key) to free the allocation. Returns
 * what the hook must return.
 */
CUresult charge_end(struct holding *h, CUresult result, const void *made,
		    void (*undo)(uint64_t key));

/*
 * Call charge_forget() before the driver frees the memory, because another thread may get the address at once. It returns false
 * if this process has no such holding. Call charge_give_back() after the driver's call, because the memory is in use until
 * then. If the driver failed, it records the holding again. charge_forget() is inline, because the library's part of a free
 * takes only 40 ns.
 */
static inline bool charge_forget(enum holding_kind kind, uint64_t key, struct holding *ret_holding)
{
	return process_is_active() && ptrmap_remove(kind, key, ret_holding);
}

CUresult charge_give_back(const struct holding *h, CUresult result);

/* The chunk of the small allocation at `ptr`. NULL if there is none; then charge_forget() may find the memory. */
static inline struct suballoc_chunk *charge_suballoc_at(CUdeviceptr ptr)
{
	return process_is_active() ? suballoc_chunk_of(ptr) : NULL;
}

/* Finds the holding that begins at `ptr`, of this process. `bytes` is its size, which a suballocation does not record. */
bool charge_find(CUdeviceptr ptr, uint64_t bytes, struct holding *ret_holding);

/* `trim` trims the pools of a device, for when memory is short. Call before the first charge. */
void charge_set_trim(void (*trim)(int index));

/* Call after a context has ended: gives back the charges for its memory. */
void charge_context_gone(CUcontext context);
