#include "interpose/piece.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "interpose/ledger.h"
#include "interpose/real.h"
#include "interpose/sys.h"

/*
 * Chunks by number (address / 2 MiB), in leaves of 2 GiB each that are made when they are needed and stay:
 * as the driver gives addresses out again, there are as many as the most that was held at once needs.
 */
#define CHUNK_SHIFT 21
#define LEAF_SHIFT 31
#define LEAF_CHUNKS (1 << (LEAF_SHIFT - CHUNK_SHIFT))
#define ADDRESS_BITS 49 /* of a device pointer: of the GPU's 57, what a host has */
#define LEAVES (1 << (ADDRESS_BITS - LEAF_SHIFT))

struct leaf {
	struct piece_chunk chunk[LEAF_CHUNKS];
	struct leaf *next;
	size_t index;
};

static struct leaf *_Atomic leaf_at[LEAVES];
static struct leaf *_Atomic leaves; /* all of them */

enum spare { SPARE_NONE, SPARE_THERE, SPARE_TAKEN };

/*
 * Who has taken the spare is the only one to change that: so it is put back by a plain store, and costs one
 * locked instruction, not two.
 */
static struct stock {
	_Alignas(64) _Atomic uint32_t spare;
	_Atomic bool is_used; /* the spare was taken since the helper's last look */
	_Atomic uint32_t chunks;
} stock[REGION_MAX_DEVICES];

#define REST_EVERY_NS (100 * NS_PER_MS)

static struct leaf *make_leaf(size_t index)
{
	struct leaf *none = NULL, *leaf = mmap(NULL, sizeof(*leaf), PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (leaf == MAP_FAILED)
		return NULL;
	leaf->index = index;
	if (!atomic_compare_exchange_strong(&leaf_at[index], &none, leaf)) {
		munmap(leaf, sizeof(*leaf));
		return none; /* another thread was faster */
	}
	leaf->next = atomic_load(&leaves);
	while (!atomic_compare_exchange_weak(&leaves, &leaf->next, leaf))
		;
	return leaf;
}

static inline struct leaf *leaf_of(CUdeviceptr ptr)
{
	size_t index = ptr >> LEAF_SHIFT;

	return index < LEAVES ? atomic_load_explicit(&leaf_at[index], memory_order_acquire) : NULL;
}

static inline struct piece_chunk *chunk_in(struct leaf *leaf, CUdeviceptr ptr)
{
	return &leaf->chunk[ptr >> CHUNK_SHIFT & (LEAF_CHUNKS - 1)];
}

static bool move_spare(struct stock *s, uint32_t from, uint32_t to)
{
	return atomic_load_explicit(&s->spare, memory_order_relaxed) == from &&
	       atomic_compare_exchange_strong(&s->spare, &from, to);
}

enum piece_charge piece_take_spare(int device)
{
	if (!move_spare(&stock[device], SPARE_THERE, SPARE_TAKEN))
		return PIECE_RESERVED;
	atomic_store_explicit(&stock[device].is_used, true, memory_order_relaxed);
	return PIECE_SPARE;
}

void piece_use_spare(int device)
{
	atomic_store(&stock[device].spare, SPARE_NONE);
}

bool piece_drain(int device)
{
	if (!move_spare(&stock[device], SPARE_THERE, SPARE_NONE))
		return false;
	ledger_release(device, PIECE_CHUNK);
	return true;
}

/* A charge that was not needed. The chunk that it was not needed for is there until the caller returns. */
static void keep_spare(int device, enum piece_charge charge)
{
	struct stock *s = &stock[device];

	if (charge == PIECE_SPARE)
		atomic_store_explicit(&s->spare, SPARE_THERE, memory_order_release);
	else if (!move_spare(s, SPARE_NONE, SPARE_THERE))
		ledger_release(device, PIECE_CHUNK);
}

void piece_failed(int device, enum piece_charge charge)
{
	keep_spare(device, charge);
	/* Of this and the end of the last chunk, one sees the other. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load(&stock[device].chunks))
		piece_drain(device);
}

void piece_rest(uint64_t now_ns)
{
	static uint64_t last_ns;

	if (now_ns - last_ns < REST_EVERY_NS)
		return;
	last_ns = now_ns;
	for (int i = 0; i < REGION_MAX_DEVICES; i++)
		if (!atomic_exchange_explicit(&stock[i].is_used, false, memory_order_relaxed))
			piece_drain(i);
}

static uint64_t current_context(void)
{
	CUcontext context = NULL;

	if (real.cuCtxGetCurrent)
		real.cuCtxGetCurrent(&context);
	return (uint64_t)(uintptr_t)context;
}

/* The first piece of its chunk: what was reserved ahead is the chunk's charge. */
static void begin_chunk(struct piece_chunk *c, uint32_t old_state, int device,
			enum piece_charge charge)
{
	atomic_store_explicit(&c->owner, current_context(), memory_order_relaxed);
	atomic_fetch_add(&c->state, ((uint32_t)device << PIECE_DEVICE_SHIFT) - old_state);
	atomic_fetch_add(&stock[device].chunks, 1);
	if (charge == PIECE_SPARE)
		piece_use_spare(device);
}

bool piece_add(CUdeviceptr ptr, int device, enum piece_charge charge)
{
	struct leaf *leaf = leaf_of(ptr);

	if (unlikely(!leaf) && ptr >> LEAF_SHIFT < LEAVES)
		leaf = make_leaf(ptr >> LEAF_SHIFT);
	if (unlikely(!leaf))
		return false;
	struct piece_chunk *c = chunk_in(leaf, ptr);
	uint32_t old = atomic_fetch_add(&c->state, 1);
	if (likely(old & PIECE_COUNT_MASK))
		keep_spare(device, charge);
	else
		begin_chunk(c, old, device, charge);
	return true;
}

static uint32_t piece_count(const struct piece_chunk *c)
{
	return atomic_load_explicit(&c->state, memory_order_acquire) & PIECE_COUNT_MASK;
}

struct piece_chunk *piece_chunk_of(CUdeviceptr ptr)
{
	struct leaf *leaf = leaf_of(ptr);
	struct piece_chunk *c = leaf ? chunk_in(leaf, ptr) : NULL;

	return c && piece_count(c) ? c : NULL;
}

static void release_chunk(uint32_t state)
{
	int device = (int)(state >> PIECE_DEVICE_SHIFT);
	bool is_last = atomic_fetch_sub(&stock[device].chunks, 1) == 1;

	ledger_release(device, PIECE_CHUNK);
	if (is_last)
		piece_drain(device);
}

void piece_remove(struct piece_chunk *c)
{
	uint32_t old = atomic_fetch_sub(&c->state, 1);

	if (unlikely(!(old & PIECE_COUNT_MASK)))
		atomic_fetch_add(&c->state,
				 1); /* its context went away meanwhile, and with it the charge */
	else if ((old & PIECE_COUNT_MASK) == 1)
		release_chunk(old);
}

void piece_context_gone(uint64_t owner)
{
	for (struct leaf *leaf = atomic_load(&leaves); leaf; leaf = leaf->next)
		for (struct piece_chunk *c = leaf->chunk; c < leaf->chunk + LEAF_CHUNKS; c++)
			if (piece_count(c) && atomic_load(&c->owner) == owner) {
				uint32_t old = atomic_fetch_and(&c->state, ~PIECE_COUNT_MASK);
				if (old & PIECE_COUNT_MASK)
					release_chunk(old);
			}
}

void piece_reset(void)
{
	for (struct leaf *leaf = atomic_load(&leaves), *next; leaf; leaf = next) {
		next = leaf->next;
		atomic_store(&leaf_at[leaf->index], NULL);
		munmap(leaf, sizeof(*leaf));
	}
	atomic_store(&leaves, NULL);
	memset(stock, 0, sizeof(stock));
}
