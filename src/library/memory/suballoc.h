/*
 * Small linear memory. The driver cuts allocations below 2 MiB (suballocations) from chunks of 2 MiB. A chunk is charged from
 * its first suballocation until its last one is freed. (An allocation of 2 MiB or more has its pages to itself.) The library
 * counts the suballocations of each chunk, and finds the count by address with two loads.
 *
 * Whether an existing chunk had room is known only after the driver's call, so a whole chunk is reserved before it. If no new
 * chunk was needed, the reservation stays as a spare for the next suballocation, one per device. The spare is given back after
 * 100 ms without use, when memory is short, and with the device's last chunk.
 *
 * Most calls come from one thread, and find a spare and a chunk in use. The memory that such a call touches decides its cost,
 * because the driver evicts the first-level cache between two calls. So these functions are inline, and read one cache line
 * (struct thread_cache). Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"
#include "library/state/thread_cache.h"

#define SUBALLOC_CHUNK (2ULL << 20)
#define SUBALLOC_STEP 512ULL
/* The largest suballocation. This and the sizes above are bytes, as measured on an H200 with driver 580. */
#define SUBALLOC_MAX (SUBALLOC_CHUNK - SUBALLOC_STEP)

struct suballoc_chunk {
	/* Low bits: number of suballocations. Upper bits: the device. In one word, so that a removal reads both. */
	_Atomic uint32_t state;
	uint32_t number;        /* address / 2 MiB; never changes */
	_Atomic uint64_t owner; /* the chunk's context */
};

#define SUBALLOC_DEVICE_SHIFT 24
#define SUBALLOC_COUNT_MASK ((1U << SUBALLOC_DEVICE_SHIFT) - 1)

/* Chunks are in leaves of 2 GiB, made when needed and kept. The driver reuses addresses, so there are few leaves. */
#define SUBALLOC_CHUNK_SHIFT 21
#define SUBALLOC_LEAF_SHIFT 31
#define SUBALLOC_LEAF_CHUNKS (1 << (SUBALLOC_LEAF_SHIFT - SUBALLOC_CHUNK_SHIFT))
/* The table covers addresses of this many bits, as hosts use. GPUs may use 57; beyond the table, suballoc_add() fails. */
#define SUBALLOC_ADDRESS_BITS 49

struct suballoc_leaf {
	struct suballoc_chunk chunk[SUBALLOC_LEAF_CHUNKS];
	struct suballoc_leaf *next;
	size_t index;
};

/* Where the charge for a suballocation's chunk came from. */
enum suballoc_charge { SUBALLOC_RESERVED = 0, SUBALLOC_SPARE };

/* Takes a device's spare, which is charged. SUBALLOC_RESERVED: there is none, so reserve SUBALLOC_CHUNK. */
enum suballoc_charge suballoc_take_spare(int device);

/* The spare's charge now belongs to something else. Call only in the thread that took the spare; no lock guards this. */
void suballoc_use_spare(int device);

/* Call if the driver's call failed. Keeps the charge as a spare, unless there is one or the device has no chunks. */
void suballoc_failed(int device, enum suballoc_charge charge);

/* Gives the spare back, if there is one. */
void suballoc_drain(int device);

/* For the helper thread: every 100 ms, gives back the spares that were not used in that time. */
void suballoc_trim(uint64_t now_ns);

/*
 * Counts a suballocation at `ptr`. If it is the only one in its chunk, `charge` becomes the chunk's charge. Otherwise `charge`
 * stays as the spare or, if there is a spare already, is given back. Returns false, having done nothing, if the address is
 * beyond the table or memory ran out.
 */
bool suballoc_add(CUdeviceptr ptr, int device, enum suballoc_charge charge);

/* NULL if the chunk that contains `ptr` has no suballocations. */
struct suballoc_chunk *suballoc_chunk_of(CUdeviceptr ptr);

/* Call after the driver has freed a suballocation. With the last one, the chunk's charge is given back. */
void suballoc_remove_any(struct suballoc_chunk *chunk);

/* Call after a context has ended: gives back the charges of its chunks. */
void suballoc_context_gone(uint64_t owner);

/* Call in a forked child: forgets all chunks and spares. */
void suballoc_reset(void);

/* The functions below serve the common case, in a process whose tenant has one device. */

static inline struct suballoc_chunk *suballoc_chunk_in(struct suballoc_leaf *leaf, CUdeviceptr ptr)
{
	return &leaf->chunk[ptr >> SUBALLOC_CHUNK_SHIFT & (SUBALLOC_LEAF_CHUNKS - 1)];
}

static inline uint32_t suballoc_count(const struct suballoc_chunk *c)
{
	return atomic_load_explicit(&c->state, memory_order_acquire) & SUBALLOC_COUNT_MASK;
}

/* Valid only for a chunk that has suballocations. */
static inline int suballoc_device(const struct suballoc_chunk *c)
{
	return (int)(atomic_load_explicit(&c->state, memory_order_relaxed) >> SUBALLOC_DEVICE_SHIFT);
}

/* NULL if the address is not in the leaf that was read last. The chunk may have no suballocations. */
static inline struct suballoc_chunk *suballoc_chunk_nearby(struct thread_cache *cache,
							   CUdeviceptr ptr)
{
	struct suballoc_leaf *leaf = atomic_load_explicit(&cache->last_leaf, memory_order_acquire);

	if (unlikely(!leaf))
		return NULL;
	struct suballoc_chunk *c = suballoc_chunk_in(leaf, ptr);
	return likely(c->number == ptr >> SUBALLOC_CHUNK_SHIFT) ? c : NULL;
}

/* Like suballoc_take_spare(0). False if the calling thread does not own cache->lock, or there is no spare. */
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

/* Like suballoc_add(ptr, 0, SUBALLOC_SPARE), for a chunk that already has suballocations. Returns false if nothing was done. */
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
