/*
 * Small linear memory. The card gives no less than 2 MiB, so what is smaller the driver cuts from chunks of
 * that size, and a chunk is charged from its first piece to its last, however few are left. (From 2 MiB on
 * an allocation has its pages for itself, and no piece is cut from what it leaves of the last one.) Here
 * each chunk has the count of its pieces, found by address in two loads.
 *
 * Whether the driver has room in a chunk is not known before it is asked; so a whole chunk is reserved
 * ahead, and where it was not needed it stays a spare for the next piece: one for each device, given back
 * when it is not asked for, when other memory is short, and with the last chunk.
 *
 * Most calls are of one thread, and find a spare and a chunk that has pieces. Those cost the more, the more
 * memory they touch, since between two of them the driver has used the whole first level of the cache for
 * itself: so they are inline, and find what they need in one line of it (struct piece_desk).
 *
 * Thread safe.
 */
#ifndef ALLOT_LIBRARY_MEMORY_PIECE_H
#define ALLOT_LIBRARY_MEMORY_PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"
#include "library/state/piece_desk.h"

#define PIECE_CHUNK (2ULL << 20)
#define PIECE_STEP 512ULL
#define PIECE_MAX \
	(PIECE_CHUNK - PIECE_STEP) /* bytes; these as measured on an H200 with driver 580 */

struct piece_chunk {
	/*
	 * How many pieces, and above that, of a chunk that has any, the device. One word, so that who
	 * takes the last piece knows whose it was.
	 */
	_Atomic uint32_t state;
	uint32_t number;        /* address / 2 MiB; never changes */
	_Atomic uint64_t owner; /* the context that it dies with */
};

#define PIECE_DEVICE_SHIFT 24
#define PIECE_COUNT_MASK ((1U << PIECE_DEVICE_SHIFT) - 1)

/*
 * Chunks by number (address / 2 MiB), in leaves of 2 GiB each that are made when they are needed and stay:
 * as the driver gives addresses out again, there are as many as the most that was held at once needs.
 */
#define PIECE_CHUNK_SHIFT 21
#define PIECE_LEAF_SHIFT 31
#define PIECE_LEAF_CHUNKS (1 << (PIECE_LEAF_SHIFT - PIECE_CHUNK_SHIFT))
#define PIECE_ADDRESS_BITS 49 /* of a device pointer: of the GPU's 57, what a host has */

struct piece_leaf {
	struct piece_chunk chunk[PIECE_LEAF_CHUNKS];
	struct piece_leaf *next;
	size_t index;
};

/* How a chunk's charge was come by before the driver is asked for a piece. */
enum piece_charge { PIECE_RESERVED = 0, PIECE_SPARE };

/* Takes the spare of a device, which is charged: PIECE_SPARE. Else reserve PIECE_CHUNK: PIECE_RESERVED. */
enum piece_charge piece_take_spare(int device);

/* It is no spare any more: the charge is for something else. */
void piece_use_spare(int device);

/* The driver failed, and made no piece. */
void piece_failed(int device, enum piece_charge charge);

/* Gives the spare back, if there is one. */
void piece_drain(int device);

/* For the helper, now and then: gives back the spares that nobody took since the last time. */
void piece_rest(uint64_t now_ns);

/*
 * Counts a piece at `ptr`, and settles the charge: it becomes the chunk's, or is kept as a spare or given
 * back. False: an address that there is no table for, or no memory for one; not counted, not settled.
 */
bool piece_add(CUdeviceptr ptr, int device, enum piece_charge charge);

/* The chunk that has pieces and `ptr` lies in, or NULL. */
struct piece_chunk *piece_chunk_of(CUdeviceptr ptr);

/* One less, after the driver has freed it: with the last one the chunk's charge goes back. */
void piece_remove_any(struct piece_chunk *chunk);

/* The context is gone, and with it its chunks. */
void piece_context_gone(uint64_t owner);

/* Forgets everything, in a forked child. */
void piece_reset(void);

/* ---- the usual case, at the desk of a process whose tenant has one device ---- */

static inline struct piece_chunk *piece_chunk_in(struct piece_leaf *leaf, CUdeviceptr ptr)
{
	return &leaf->chunk[ptr >> PIECE_CHUNK_SHIFT & (PIECE_LEAF_CHUNKS - 1)];
}

static inline uint32_t piece_count(const struct piece_chunk *c)
{
	return atomic_load_explicit(&c->state, memory_order_acquire) & PIECE_COUNT_MASK;
}

/* Of a chunk that has pieces. */
static inline int piece_device(const struct piece_chunk *c)
{
	return (int)(atomic_load_explicit(&c->state, memory_order_relaxed) >> PIECE_DEVICE_SHIFT);
}

/* The chunk of an address, whether it has pieces or not; no further than in the last leaf. NULL: not there. */
static inline struct piece_chunk *piece_chunk_nearby(struct piece_desk *desk, CUdeviceptr ptr)
{
	struct piece_leaf *leaf = atomic_load_explicit(&desk->last_leaf, memory_order_acquire);

	if (unlikely(!leaf))
		return NULL;
	struct piece_chunk *c = piece_chunk_in(leaf, ptr);
	return likely(c->number == ptr >> PIECE_CHUNK_SHIFT) ? c : NULL;
}

/* As piece_take_spare(0), where nothing stands in the way. False: nothing was done. */
static inline bool piece_begin_here(struct piece_desk *desk)
{
	struct piece_stock *s = &desk->stock[0];

	if (unlikely(!biased_enter_own(&desk->lock)))
		return false;
	bool is_taken = biased_move(BIASED_OWN, &s->spare, PIECE_SPARE_THERE, PIECE_SPARE_TAKEN);
	if (likely(is_taken))
		atomic_store_explicit(&s->is_used, true, memory_order_relaxed);
	biased_leave(&desk->lock, BIASED_OWN);
	return is_taken;
}

/* As piece_add(ptr, 0, PIECE_SPARE), where the chunk has pieces. False: nothing was done. */
static inline bool piece_end_here(struct piece_desk *desk, CUdeviceptr ptr)
{
	struct piece_chunk *c = piece_chunk_nearby(desk, ptr);

	if (unlikely(!c || !biased_enter_own(&desk->lock)))
		return false;
	bool has_pieces = piece_count(c);
	if (likely(has_pieces)) {
		biased_add(BIASED_OWN, &c->state, 1);
		atomic_store_explicit(&desk->stock[0].spare, PIECE_SPARE_THERE,
				      memory_order_relaxed);
	}
	biased_leave(&desk->lock, BIASED_OWN);
	return has_pieces;
}

static inline void piece_remove(struct piece_desk *desk, struct piece_chunk *c)
{
	if (unlikely(!biased_enter_own(&desk->lock))) {
		piece_remove_any(c);
		return;
	}
	bool is_last = piece_count(c) <= 1;
	if (likely(!is_last))
		biased_add(BIASED_OWN, &c->state, -1U);
	biased_leave(&desk->lock, BIASED_OWN);
	if (unlikely(is_last))
		piece_remove_any(c);
}

#endif
