/*
 * Small linear memory. The GPU hands out no less than 2 MiB, so the driver cuts smaller allocations from chunks of that
 * size. A chunk is charged from its first suballocation until its last one is freed. (An allocation of 2 MiB or more has
 * its pages to itself; the driver cuts no suballocation from the rest of its last page.) The library counts the
 * suballocations of each chunk, and finds the count by address with two loads.
 *
 * Only the driver's answer shows whether an existing chunk had room. So a whole chunk is reserved in advance. If it was not
 * needed, it stays reserved as a spare for the next suballocation. There is one spare per device. It is given back when it
 * is not used, when memory is short, and with the last chunk.
 *
 * Most calls come from one thread, and find a spare and a chunk that already has suballocations. The cost of such a call
 * depends on how much memory it touches, since between two calls the driver evicts everything from the first-level cache.
 * So these functions are inline, and all they need is in one cache line (struct thread_cache).
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
/* bytes; the largest suballocation, as measured on an H200 with driver 580 */
#define SUBALLOC_MAX (SUBALLOC_CHUNK - SUBALLOC_STEP)

struct suballoc_chunk {
	/*
	 * The number of suballocations in the low bits. If it is not 0, the device is in the bits above. Both are
	 * in one word, so that the thread that takes the last suballocation also reads the device.
	 */
	_Atomic uint32_t state;
	uint32_t number;        /* address / 2 MiB; never changes */
	_Atomic uint64_t owner; /* the context with which the chunk ends */
};

#define SUBALLOC_DEVICE_SHIFT 24
#define SUBALLOC_COUNT_MASK ((1U << SUBALLOC_DEVICE_SHIFT) - 1)

/*
 * Chunks by number (address / 2 MiB), in leaves of 2 GiB each. A leaf is made when it is needed, and stays. Since
 * the driver reuses addresses, there are only as many leaves as the most memory ever held at once needs.
 */
#define SUBALLOC_CHUNK_SHIFT 21
#define SUBALLOC_LEAF_SHIFT 31
#define SUBALLOC_LEAF_CHUNKS (1 << (SUBALLOC_LEAF_SHIFT - SUBALLOC_CHUNK_SHIFT))
/* bits of a device pointer that the table covers; a GPU has 57, a host uses 49 */
#define SUBALLOC_ADDRESS_BITS 49

struct suballoc_leaf {
	struct suballoc_chunk chunk[SUBALLOC_LEAF_CHUNKS];
	struct suballoc_leaf *next;
	size_t index;
};

/* Where the charge for a chunk came from, before the driver is asked for a suballocation. */
enum suballoc_charge { SUBALLOC_RESERVED = 0, SUBALLOC_SPARE };

/*
 * Takes a device's spare, which is already charged, and returns SUBALLOC_SPARE. If there is none, returns
 * SUBALLOC_RESERVED; then the caller reserves SUBALLOC_CHUNK.
 */
enum suballoc_charge suballoc_take_spare(int device);

/* Removes the spare, since its charge now belongs to something else. */
void suballoc_use_spare(int device);

/* Call if the driver failed to make the suballocation: its charge stays as the spare, or is given back. */
void suballoc_failed(int device, enum suballoc_charge charge);

/* Gives the spare's charge back, if there is a spare. */
void suballoc_drain(int device);

/* Helper thread, periodically: gives back the spares that were not used since the last time. */
void suballoc_trim(uint64_t now_ns);

/*
 * Counts a suballocation at `ptr` and settles its charge: the charge becomes the chunk's, stays as a spare, or is given back.
 * Returns false if the address is beyond the table or memory ran out; then nothing is counted or settled.
 */
bool suballoc_add(CUdeviceptr ptr, int device, enum suballoc_charge charge);

/* Returns the chunk that contains `ptr`, if it has suballocations; otherwise NULL. */
struct suballoc_chunk *suballoc_chunk_of(CUdeviceptr ptr);

/*
 * Counts one suballocation less, after the driver has freed it. With the last one, the chunk's charge is given
 * back.
 */
void suballoc_remove_any(struct suballoc_chunk *chunk);

/* Call after a context has ended: its chunks end with it. */
void suballoc_context_gone(uint64_t owner);

/* Call in a forked child: forgets all suballocations. */
void suballoc_reset(void);

/* ---- the common case, in a process whose tenant has one device ---- */

static inline struct suballoc_chunk *suballoc_chunk_in(struct suballoc_leaf *leaf, CUdeviceptr ptr)
{
	return &leaf->chunk[ptr >> SUBALLOC_CHUNK_SHIFT & (SUBALLOC_LEAF_CHUNKS - 1)];
}

static inline uint32_t suballoc_count(const struct suballoc_chunk *c)
{
	return atomic_load_explicit(&c->state, memory_order_acquire) & SUBALLOC_COUNT_MASK;
}

/* Returns the chunk's device. Valid only for a chunk that has suballocations. */
static inline int suballoc_device(const struct suballoc_chunk *c)
{
	return (int)(atomic_load_explicit(&c->state, memory_order_relaxed) >> SUBALLOC_DEVICE_SHIFT);
}

/*
 * Returns the chunk of an address, whether or not it has suballocations, if it is in the leaf that was read last.
 * Returns NULL if it is not.
 */
static inline struct suballoc_chunk *suballoc_chunk_nearby(struct thread_cache *cache,
							   CUdeviceptr ptr)
{
	struct suballoc_leaf *leaf = atomic_load_explicit(&cache->last_leaf, memory_order_acquire);

	if (unlikely(!leaf))
		return NULL;
	struct suballoc_chunk *c = suballoc_chunk_in(leaf, ptr);
	return likely(c->number == ptr >> SUBALLOC_CHUNK_SHIFT) ? c : NULL;
}

/*
 * Like suballoc_take_spare(0), but only if the calling thread owns cache->lock and there is a spare. Otherwise does nothing and
 * returns false.
 */
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

/*
 * As suballoc_add(ptr, 0, SUBALLOC_SPARE), for a chunk that already has suballocations. Returns false if nothing
 * was done.
 */
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
