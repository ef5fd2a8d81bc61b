/*
 * Linear memory that can be taken off the card under its address: cuMemAlloc of 2 MiB and more, in a
 * swappable process, is an address range of its own with memory of the virtual memory API behind it. To the
 * program it is memory as cuMemAlloc makes it; for legacy IPC, which that API lacks, see ipc_broker.h.
 *
 * Made and freed inside the hold (swap_hold.h). What the swap thread does with them, it does while the hold
 * is shut. The rest is thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"

#define SWAP_PAGE (2ULL << 20) /* from this size on; and what sizes are rounded to */

struct backing {
	CUdeviceptr base;
	uint64_t bytes; /* whole pages */
	uint64_t asked; /* what the program thinks */
	CUcontext owner;
	CUdevice device;
	int index;                           /* of the device in the tenant's list */
	CUmemGenericAllocationHandle handle; /* while it is on the card */
	bool is_on_card;
	bool is_kept;                 /* stays there: others may know its memory by another way */
	uint64_t arena_at;            /* while it is not on the card */
	unsigned long long buffer_id; /* as the driver had it at first: unique for ever */
	bool is_exportable;           /* the driver has descriptors of it */
	uint64_t key; /* by which other processes know it (ipc_broker.h); 0: none does */
};

/*
 * Allocates. CUDA_ERROR_NOT_SUPPORTED: not here (arena full, no context, a driver without the API): the
 * caller allocates as it always did.
 */
CUresult swap_backing_alloc(CUdeviceptr *ptr, size_t bytes);

/* Frees what begins at ptr, when all work that may use it has ended. False: it is none of ours. */
bool swap_backing_free(CUdeviceptr ptr, CUresult *ret_result);

/* What the address is in; false: none of ours. */
bool swap_backing_find(CUdeviceptr ptr, struct backing *ret_backing);

/* Of what ptr is in: it stays on the card from now on. */
void swap_backing_keep(CUdeviceptr ptr);

/* Of what begins there. */
void swap_backing_set_key(CUdeviceptr ptr, uint64_t key);
bool swap_backing_has_key(uint64_t key);
/* The next one with a key from ptr on; false: there is none. */
bool swap_backing_next_with_key(CUdeviceptr ptr, struct backing *ret);

/* The context is gone, and what it owned with it. */
void swap_backing_context_gone(CUcontext context);

/* On a device of the tenant's list, or (negative) on all. */
struct backing_figures {
	uint64_t movable_bytes; /* there or out */
	uint64_t out_bytes;     /* of these, out */
	uint64_t kept_bytes;    /* could be moved, but that others know them */
};
struct backing_figures swap_backing_figures(int index);

/* Maps what the handle is there, for those devices; all or nothing. */
CUresult swap_backing_map(CUdeviceptr base, uint64_t bytes, CUmemGenericAllocationHandle handle,
			  const CUmemAccessDesc *access, size_t n);

/* ---- for the swap thread, while the hold is shut ---- */

/* The next one from index *at on, which is counted up; NULL: that was the last. */
struct backing *swap_backing_next(uint32_t *at);

/* Puts memory of the card behind its address: undefined bytes. Nothing is left on failure. */
CUresult swap_backing_put(struct backing *b);
/* Takes it away. */
CUresult swap_backing_take(struct backing *b);

/*
 * Lets a device's kernels reach the memory of a context that is there, or no longer: what swap_peers.h says has
 * changed. In the hold.
 */
void swap_backing_share(CUcontext owner, CUdevice peer, bool is_allowed);

/* In a forked child. */
void swap_backing_reset(void);
