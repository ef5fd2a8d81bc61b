/*
 * The steps that every allocation hook shares. One struct holding goes through an allocation's life:
 *
 *     struct holding h = { .kind, .device, .bytes };      struct holding h;
 *     charge_begin(&h)      reserves                      charge_forget(kind, key, &h)
 *     the driver's call                                   the driver's call
 *     charge_end(&h, ...)   notes it, or gives back       charge_give_back(&h, ...)
 */
#pragma once

#include "abi/cuda_abi.h"
#include "library/memory/ledger.h"
#include "library/memory/suballoc.h"
#include "library/memory/ptrmap.h"
#include "library/state/process_state.h"

#define KIB 1024ULL
#define MIB (1024 * KIB)

/*
 * The bytes of a request for linear memory as the card rounds them: below 2 MiB it is a piece of a chunk
 * (suballoc.h), from there on it has whole pages of 2 MiB.
 */
uint64_t charge_rounded(uint64_t bytes);

/* Index of the device to charge for the calling thread's current one; -1: not governed. */
int charge_index(void);

/*
 * The same, for a call that fails where no context is current: with one device the driver is not asked,
 * because a context of another can't be there (hook_context.c).
 */
int charge_index_of_call(void);

/* Index to charge for memory at a location: of the device, REGION_HOST, or -1: not governed. */
int charge_place(const CUmemLocation *location);

/*
 * Reserves h->bytes on h->device, and when that fails trims this process's memory pools and tries
 * once more; then waits, where the tenant waits for memory (admission.h). False: refused and counted as a denial, the call is to fail with
 * CUDA_ERROR_OUT_OF_MEMORY. A device of -1 is charged nothing, here and in charge_end().
 */
bool charge_begin(struct holding *h);

/*
 * The same before the driver takes memory of the card: in a swappable process it is also refused while the card
 * has room only for another tenant's return. Then, and when the driver itself finds no room, charge_end() tells
 * so to swap_room.h.
 */
bool charge_begin_on_card(struct holding *h);

/* Between the two, where the call tells what it really cost. False: refused, and h as it was. */
bool charge_resize(struct holding *h, uint64_t bytes);

/*
 * Ends the hook with the driver's `result`: a failure gives the reservation back, a success is noted
 * under the address or handle (8 bytes) at `made`. When it can't be noted (no memory), undo(key) frees
 * it, and the call fails with CUDA_ERROR_OUT_OF_MEMORY. Returns what the hook returns.
 */
CUresult charge_end(struct holding *h, CUresult result, const void *made,
		    void (*undo)(uint64_t key));

/*
 * Frees, in two steps. Forgotten before the driver frees it: afterwards the address may be another
 * thread's already. Given back after, because until then it is held; or noted again, if the driver
 * failed. False: not charged here. Inline: the library's part of a free is 40 ns.
 */
static inline bool charge_forget(enum holding_kind kind, uint64_t key, struct holding *ret_holding)
{
	return process_is_active() && ptrmap_remove(kind, key, ret_holding);
}

CUresult charge_give_back(const struct holding *h, CUresult result);

/* The chunk that a small piece of memory at `ptr` is charged in, or NULL: charge_forget() knows it, or nobody. */
static inline struct suballoc_chunk *charge_suballoc_at(CUdeviceptr ptr)
{
	return process_is_active() ? suballoc_chunk_of(ptr) : NULL;
}

/* What is held at the address that an allocation begins at. False: not charged here. */
bool charge_find(CUdeviceptr ptr, uint64_t bytes, struct holding *ret_holding);

/* Before the first charge. `trim` makes the pools of a device give back what they can; it is called when a quota is short. */
void charge_set_trim(void (*trim)(int index));

/* The context is gone, and what it owned is charged no more. */
void charge_context_gone(CUcontext context);
