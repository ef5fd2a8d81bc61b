/*
 * Linear memory that can be moved off the GPU and keep its address: cuMemAlloc of 2 MiB and more, in a
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

#define SWAP_PAGE (2ULL << 20) /* the smallest size, and the unit of sizes */

struct backing {
	CUdeviceptr base;
	uint64_t bytes; /* whole pages */
	uint64_t asked; /* the size that the program asked for */
	CUcontext owner;
	CUdevice device;
	int index;                           /* of the device in the tenant's list */
	CUmemGenericAllocationHandle handle; /* while it is on the GPU */
	bool is_on_card;
	bool is_kept;                 /* stays there: other processes may use it in another way */
	uint64_t arena_at;            /* its place in the arena, while it is off the GPU */
	unsigned long long buffer_id; /* as the driver first named it: never used again */
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

/* The allocation that contains ptr; false: none of ours. */
bool swap_backing_find(CUdeviceptr ptr, struct backing *ret_backing);

/* The allocation that contains ptr stays on the GPU from now on. */
void swap_backing_keep(CUdeviceptr ptr);

/* Sets the key of the allocation that begins at ptr. */
void swap_backing_set_key(CUdeviceptr ptr, uint64_t key);
bool swap_backing_has_key(uint64_t key);
/* The first allocation from ptr on that has a key; false: none. */
bool swap_backing_next_with_key(CUdeviceptr ptr, struct backing *ret);

/* The context is gone, and with it all that it owned. */
void swap_backing_context_gone(CUcontext context);

/* Figures of the device with this index in the tenant's list; negative: of all. */
struct backing_figures {
	uint64_t movable_bytes; /* on the GPU or moved off */
	uint64_t out_bytes;     /* of these, moved off */
	uint64_t kept_bytes;    /* movable, but shared with other processes */
};
struct backing_figures swap_backing_figures(int index);

/* Maps the handle's memory at `base` for the devices in `access`; all or nothing. */
CUresult swap_backing_map(CUdeviceptr base, uint64_t bytes, CUmemGenericAllocationHandle handle,
			  const CUmemAccessDesc *access, size_t n);

/* ---- for the swap thread, while the hold is shut ---- */

/* The next allocation from index *at on, which moves past it; NULL: no more. */
struct backing *swap_backing_next(uint32_t *at);

/* Puts GPU memory behind its address, with undefined bytes. Undone on failure. */
CUresult swap_backing_put(struct backing *b);
/* Takes the GPU memory away. */
CUresult swap_backing_take(struct backing *b);

/*
 * Lets a device's kernels reach the memory of a context that is there, or no longer: what swap_peers.h says has
 * changed. In the hold.
 */
void swap_backing_share(CUcontext owner, CUdevice peer, bool is_allowed);

/* In a forked child. */
void swap_backing_reset(void);
