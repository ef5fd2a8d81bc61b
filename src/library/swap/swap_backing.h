/*
 * Linear memory that can be moved off the GPU and keeps its address. In a swappable process, each cuMemAlloc of 2 MiB or more
 * becomes a backing: an address range with memory of the virtual memory API. A program sees it as memory of cuMemAlloc;
 * ipc_broker.h adds legacy IPC.
 *
 * The hold (swap_hold.h) keeps threads out of the driver while the process's memory is off the GPU. A thread enters the hold
 * before it allocates or frees a backing. The swap thread closes the hold, so that no other thread is inside, before it moves
 * backings. All functions but those for the swap thread are thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"

#define SWAP_PAGE (2ULL << 20) /* the smallest backing, and the unit of sizes */

struct backing {
	CUdeviceptr base;
	uint64_t bytes; /* whole pages */
	uint64_t asked; /* what the program requested */
	CUcontext owner;
	CUdevice device;
	int index;                           /* in the tenant's list */
	CUmemGenericAllocationHandle handle; /* valid while the memory is on the GPU */
	bool is_resident;
	/* Stays on the GPU, because other processes or devices may access the memory. */
	bool is_kept;
	uint64_t arena_offset; /* position in the arena (swap_arena.h) while off the GPU */
	/* The driver's id of the first memory at `base`; never reused. */
	unsigned long long buffer_id;
	bool is_exportable; /* the driver can export the memory as a descriptor */
	/* The key by which other processes open the memory (ipc_broker.h); 0 if none. */
	uint64_t key;
};

/*
 * Allocates at least `bytes`. Returns CUDA_ERROR_NOT_SUPPORTED if memory cannot be movable (the arena is full, no context, a
 * driver without the virtual memory API); then the caller allocates in the normal way.
 */
CUresult swap_backing_alloc(CUdeviceptr *ptr, size_t bytes);

/* Waits for all work that may use the allocation at ptr. Returns false if ptr is not a backing. */
bool swap_backing_free(CUdeviceptr ptr, CUresult *ret_result);

/* Finds the allocation that contains ptr. Returns false if there is none. */
bool swap_backing_find(CUdeviceptr ptr, struct backing *ret_backing);

/* Keeps the allocation that contains ptr on the GPU from now on. */
void swap_backing_keep(CUdeviceptr ptr);

/*
 * Records that the daemon has a descriptor of the allocation under `key`; swap_backing_free() then deletes the descriptor.
 * Returns false if another thread has freed the allocation; then the caller deletes the descriptor.
 */
bool swap_backing_set_key(const struct backing *b, uint64_t key);
bool swap_backing_has_key(uint64_t key);
/* Finds the first allocation from ptr on that has a key. Returns false if there is none. */
bool swap_backing_next_with_key(CUdeviceptr ptr, struct backing *ret);

/* Call after a context has ended: frees its backings. */
void swap_backing_context_gone(CUcontext context);

/* Sums for one device or, with a negative index, for all devices. */
struct backing_figures {
	uint64_t movable_bytes; /* movable backings, on the GPU or moved off */
	uint64_t out_bytes;     /* the part of movable_bytes that is off the GPU */
	/* Backings that must stay on the GPU (is_kept); not in movable_bytes. */
	uint64_t kept_bytes;
};
struct backing_figures swap_backing_figures(int index);

/* Maps the memory for the devices in `access`. On failure nothing is mapped. */
CUresult swap_backing_map(CUdeviceptr base, uint64_t bytes, CUmemGenericAllocationHandle handle,
			  const CUmemAccessDesc *access, size_t n);

/* The next three functions are for the swap thread, while the hold is closed. */

/* Advances *at, which begins at 0. NULL at the end. */
struct backing *swap_backing_next(uint32_t *at);

/* Allocates GPU memory at the backing's address; its content is undefined. On failure nothing changes. */
CUresult swap_backing_populate(struct backing *b);
/* Frees the GPU memory at the backing's address, which stays reserved. */
CUresult swap_backing_evict(struct backing *b);

/*
 * Sets whether the device `peer` can access the backings of context `owner` that are on the GPU. Call inside the hold, but not
 * from the swap thread, after swap_peers_enable() or swap_peers_disable() has recorded the permission and returned true.
 */
void swap_backing_set_peer_access(CUcontext owner, CUdevice peer, bool is_allowed);

/* Call in a forked child: all backings are the parent's. */
void swap_backing_reset(void);
