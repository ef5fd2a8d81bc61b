/*
 * Small linear memory. The card gives no less than 2 MiB, so what is smaller the driver cuts from chunks of
 * that size, and a chunk is charged from its first suballocation to its last, however few are left. (From 2 MiB on
 * an allocation has its pages for itself, and no suballocation is cut from what it leaves of the last one.) Here
 * each chunk has the count of its suballocations, found by address in two loads.
 *
 * Whether the driver has room in a chunk is not known before it is asked; so a whole chunk is reserved
 * ahead, and where it was not needed it stays a spare for the next suballocation: one for each device, given back
 * when it is not asked for, when other memory is short, and with the last chunk.
 *
 * Most calls are of one thread, and find a spare and a chunk that has suballocations. Those cost the more, the more
 * memory they touch, since between two of them the driver has used the whole first level of the cache for
 * itself: so they are inline, and find what they need in one line of it (struct thread_cache).
 *
 * Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"
#include "library/state/thread_cache.h"

#define SUBALLOC_CHUNK (2ULL << 20)
#define SUBALLOC_STEP 512ULL
#define SUBALLOC_MAX \
	(SUBALLOC_CHUNK - SUBALLOC_STEP) /* bytes; these as measured on an H200 with driver 580 */

struct suballoc_chunk {
	/*
	 * How many suballocations, and above that, of a chunk that has any, the device. One word, so that who
	 * takes the last suballocation knows whose it was.
	 */
	_Atomic uint32_t state;
	uint32_t number;        /* address / 2 MiB; never changes */
	_Atomic uint64_t owner; /* the context that it dies with */
};

#define SUBALLOC_DEVICE_SHIFT 24
#define SUBALLOC_COUNT_MASK ((1U << SUBALLOC_DEVICE_SHIFT) - 1)

/*
 * Chunks by number (address / 2 MiB), in leaves of 2 GiB each that are made when they are needed and stay:
 * as the driver gives addresses out again, there are as many as the most that was held at once needs.
 */
#define SUBALLOC_CHUNK_SHIFT 21
#define SUBALLOC_LEAF_SHIFT 31
#define SUBALLOC_LEAF_CHUNKS (1 << (SUBALLOC_LEAF_SHIFT - SUBALLOC_CHUNK_SHIFT))
#define SUBALLOC_ADDRESS_BITS 49 /* of a device pointer: of the GPU's 57, what a host has */

struct suballoc_leaf {
	struct suballoc_chunk chunk[SUBALLOC_LEAF_CHUNKS];
	struct suballoc_leaf *next;
	size_t index;
};

/* How a chunk's charge was come by before the driver is asked for a suballocation. */
enum suballoc_charge { SUBALLOC_RESERVED = 0, SUBALLOC_SPARE };

/* Takes the spare of a device, which is charged: SUBALLOC_SPARE. Else reserve SUBALLOC_CHUNK: SUBALLOC_RESERVED. */
enum suballoc_charge suballoc_take_spare(int device);

/* It is no spare any more: the charge is for something else. */
void suballoc_use_spare(int device);

/* The driver failed, and made no suballocation. */
void suballoc_failed(int device, enum suballoc_charge charge);

/* Gives the spare back, if there is one. */
void suballoc_drain(int device);

/* For the helper, now and then: gives back the spares that nobody took since the last time. */
void suballoc_trim(uint64_t now_ns);

/*
 * Counts a suballocation at `ptr`, and settles the charge: it becomes the chunk's, or is kept as a spare or given
 * back. False: an address that there is no table for, or no memory for one; not counted, not settled.
 */
bool suballoc_add(CUdeviceptr ptr, int device, enum suballoc_charge charge);

/* The chunk that has suballocations and `ptr` lies in, or NULL. */
struct suballoc_chunk *suballoc_chunk_of(CUdeviceptr ptr);

/* One less, after the driver has freed it: with the last one the chunk's charge goes back. */
void suballoc_remove_any(struct suballoc_chunk *chunk);

/* The context is gone, and with it its chunks. */
void suballoc_context_gone(uint64_t owner);

/* Forgets everything, in a forked child. */
void suballoc_reset(void);

/* ---- the usual case, at the cache of a process whose tenant has one device ---- */

static inline struct suballoc_chunk *suballoc_chunk_in(struct suballoc_leaf *leaf, CUdeviceptr ptr)
{
	return &leaf->chunk[ptr >> SUBALLOC_CHUNK_SHIFT & (SUBALLOC_LEAF_CHUNKS - 1)];
}

static inline uint32_t suballoc_count(const struct suballoc_chunk *c)
{
	return atomic_load_explicit(&c->state, memory_order_acquire) & SUBALLOC_COUNT_MASK;
}

/* Of a chunk that has suballocations. */
static inline int suballoc_device(const struct suballoc_chunk *c)
{
	return (int)(atomic_load_explicit(&c->state, memory_order_relaxed) >> SUBALLOC_DEVICE_SHIFT);
}

/* The chunk of an address, whether it has suballocations or not; no further than in the last leaf. NULL: not there. */
static inline struct suballoc_chunk *suballoc_chunk_nearby(struct thread_cache *cache,
							   CUdeviceptr ptr)
{
	struct suballoc_leaf *leaf = atomic_load_explicit(&cache->last_leaf, memory_order_acquire);

	if (unlikely(!leaf))
		return NULL;
	struct suballoc_chunk *c = suballoc_chunk_in(leaf, ptr);
	return likely(c->number == ptr >> SUBALLOC_CHUNK_SHIFT) ? c : NULL;
}

/* As suballoc_take_spare(0), where nothing stands in the way. False: nothing was done. */
static inline bool suballoc_begin_here(struct thread_cache *cache)
{
	struct suballoc_spare_state *s = &cache->spares[0];

	if (unlikely(!biased_enter_own(&cache->lock)))
		return false;
	bool is_taken = biased_move(BIASED_OWN, &s->spare, SUBALLOC_SPARE_THERE,
				    SUBALLOC_SPARE_TAKEN);
	if (likely(is_taken))
		atomic_store_explicit(&s->is_used, true, memory_order_relaxed);
	biased_leave(&cache->lock, BIASED_OWN);
	return is_taken;
}

/* As suballoc_add(ptr, 0, SUBALLOC_SPARE), where the chunk has suballocations. False: nothing was done. */
static inline bool suballoc_end_here(struct thread_cache *cache, CUdeviceptr ptr)
{
	struct suballoc_chunk *c = suballoc_chunk_nearby(cache, ptr);

	if (unlikely(!c || !biased_enter_own(&cache->lock)))
		return false;
	bool has_suballocs = suballoc_count(c);
	if (likely(has_suballocs)) {
		biased_add(BIASED_OWN, &c->state, 1);
		atomic_store_explicit(&cache->spares[0].spare, SUBALLOC_SPARE_THERE,
				      memory_order_relaxed);
	}
	biased_leave(&cache->lock, BIASED_OWN);
	return has_suballocs;
}

static inline void suballoc_remove(struct thread_cache *cache, struct suballoc_chunk *c)
{
	if (unlikely(!biased_enter_own(&cache->lock))) {
		suballoc_remove_any(c);
		return;
	}
	bool is_last = suballoc_count(c) <= 1;
	if (likely(!is_last))
		biased_add(BIASED_OWN, &c->state, -1U);
	biased_leave(&cache->lock, BIASED_OWN);
	if (unlikely(is_last))
		suballoc_remove_any(c);
}
