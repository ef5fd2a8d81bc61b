#include "library/memory/suballoc.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "library/loader/real.h"
#include "library/memory/ledger.h"
#include "library/state/process_state.h"
#include "library/sys/biased.h"

#define LEAVES (1 << (SUBALLOC_ADDRESS_BITS - SUBALLOC_LEAF_SHIFT))

static struct suballoc_leaf *_Atomic leaf_at[LEAVES];
static struct suballoc_leaf *_Atomic leaves;

/* A spare (suballoc.h) that is unused for this long is given back. */
#define REST_EVERY_NS (100 * NS_PER_MS)

static struct suballoc_leaf *make_leaf(size_t index)
{
	struct suballoc_leaf *none = NULL, *leaf = sys_map(NULL, 0, sizeof(*leaf));

	if (!leaf)
		return NULL;
	leaf->index = index;
	for (size_t i = 0; i < SUBALLOC_LEAF_CHUNKS; i++)
		leaf->chunk[i].number = (uint32_t)(index * SUBALLOC_LEAF_CHUNKS + i);
	if (!atomic_compare_exchange_strong(&leaf_at[index], &none, leaf)) {
		munmap(leaf, sizeof(*leaf));
		return none; /* another thread was faster: `none` is its leaf */
	}
	leaf->next = atomic_load(&leaves);
	while (!atomic_compare_exchange_weak(&leaves, &leaf->next, leaf))
		;
	return leaf;
}

static inline struct suballoc_spare_state *spare_of(int device)
{
	return &process_own()->cache.spares[device];
}

static inline struct biased_lock *cache_lock(void)
{
	return &process_own()->cache.lock;
}

/* Remembers the leaf (suballoc.h) as the last one read. NULL if the address has none. */
static struct suballoc_leaf *leaf_of(CUdeviceptr ptr)
{
	size_t index = ptr >> SUBALLOC_LEAF_SHIFT;
	struct suballoc_leaf *leaf = index < LEAVES ? atomic_load_explicit(&leaf_at[index],
									   memory_order_acquire)
						    : NULL;

	if (leaf)
		atomic_store_explicit(&process_own()->cache.last_leaf, leaf, memory_order_release);
	return leaf;
}

enum suballoc_charge suballoc_take_spare(int device)
{
	enum biased_hold hold = biased_enter(cache_lock());
	bool is_taken = biased_move(hold, &spare_of(device)->spare, SUBALLOC_SPARE_THERE,
				    SUBALLOC_SPARE_TAKEN);

	biased_leave(cache_lock(), hold);
	if (!is_taken)
		return SUBALLOC_RESERVED;
	atomic_store_explicit(&spare_of(device)->is_used, true, memory_order_relaxed);
	return SUBALLOC_SPARE;
}

void suballoc_use_spare(int device)
{
	atomic_store(&spare_of(device)->spare, SUBALLOC_NO_SPARE);
}

void suballoc_drain(int device)
{
	if (atomic_load(&spare_of(device)->spare) != SUBALLOC_SPARE_THERE)
		return;
	enum biased_hold hold = biased_visit(cache_lock());
	bool is_drained = biased_move(hold, &spare_of(device)->spare, SUBALLOC_SPARE_THERE,
				      SUBALLOC_NO_SPARE);
	biased_leave(cache_lock(), hold);
	if (is_drained)
		ledger_release(device, SUBALLOC_CHUNK);
}

/* Keeps an unneeded charge as the spare. Returns false if there is a spare already; then the caller gives the charge back. */
static bool keep_spare(enum biased_hold hold, int device, enum suballoc_charge charge)
{
	struct suballoc_spare_state *s = spare_of(device);

	if (charge == SUBALLOC_RESERVED)
		return biased_move(hold, &s->spare, SUBALLOC_NO_SPARE, SUBALLOC_SPARE_THERE);
	atomic_store_explicit(&s->spare, SUBALLOC_SPARE_THERE, memory_order_release);
	return true;
}

void suballoc_failed(int device, enum suballoc_charge charge)
{
	enum biased_hold hold = biased_enter(cache_lock());
	bool is_kept = keep_spare(hold, device, charge);
	/* If another thread ends the last chunk now, it sees the spare, or this thread sees the end, and drains the spare. */
	if (hold == BIASED_SHARED)
		atomic_thread_fence(memory_order_seq_cst);
	bool is_needed = atomic_load(&spare_of(device)->chunks);
	biased_leave(cache_lock(), hold);

	if (!is_kept)
		ledger_release(device, SUBALLOC_CHUNK);
	else if (!is_needed)
		suballoc_drain(device);
}

void suballoc_trim(uint64_t now_ns)
{
	static uint64_t last_ns;

	if (now_ns - last_ns < REST_EVERY_NS)
		return;
	last_ns = now_ns;
	for (int i = 0; i < REGION_MAX_DEVICES; i++)
		if (!atomic_exchange(&spare_of(i)->is_used, false))
			suballoc_drain(i);
}

/* Call for a chunk's first suballocation: the reserved bytes become the chunk's charge. */
static void begin_chunk(enum biased_hold hold, struct suballoc_chunk *c, uint32_t old_state,
			int device, enum suballoc_charge charge)
{
	biased_add(hold, &c->state, ((uint32_t)device << SUBALLOC_DEVICE_SHIFT) - old_state);
	biased_add(hold, &spare_of(device)->chunks, 1);
	if (charge == SUBALLOC_SPARE)
		suballoc_use_spare(device);
}

bool suballoc_add(CUdeviceptr ptr, int device, enum suballoc_charge charge)
{
	struct suballoc_leaf *leaf = leaf_of(ptr);

	if (unlikely(!leaf) && ptr >> SUBALLOC_LEAF_SHIFT < LEAVES)
		leaf = make_leaf(ptr >> SUBALLOC_LEAF_SHIFT);
	if (unlikely(!leaf))
		return false;
	struct suballoc_chunk *c = suballoc_chunk_in(leaf, ptr);
	enum biased_hold hold = biased_enter(cache_lock());
	uint32_t old = biased_add(hold, &c->state, 1);
	bool is_old = old & SUBALLOC_COUNT_MASK, is_kept = true;
	if (likely(is_old))
		is_kept = keep_spare(hold, device, charge);
	else
		begin_chunk(hold, c, old, device, charge);
	biased_leave(cache_lock(), hold);

	if (unlikely(!is_old))
		atomic_store(&c->owner, (uintptr_t)real_current_context());
	if (unlikely(!is_kept))
		ledger_release(device, SUBALLOC_CHUNK);
	return true;
}

struct suballoc_chunk *suballoc_chunk_of(CUdeviceptr ptr)
{
	struct suballoc_leaf *leaf = leaf_of(ptr);
	struct suballoc_chunk *c = leaf ? suballoc_chunk_in(leaf, ptr) : NULL;

	return c && suballoc_count(c) ? c : NULL;
}

/* Returns true, and the chunk's device, if these were the last suballocations. */
static bool take_suballocs(enum biased_hold hold, struct suballoc_chunk *c, uint32_t suballocs,
			   int *ret_device)
{
	uint32_t old = biased_add(hold, &c->state, -suballocs), count = old & SUBALLOC_COUNT_MASK;

	if (unlikely(count < suballocs)) {
		/* The chunk's context has ended, and its charge was given back. */
		biased_add(hold, &c->state, suballocs);
		return false;
	}
	*ret_device = (int)(old >> SUBALLOC_DEVICE_SHIFT);
	if (likely(count > suballocs))
		return false;
	biased_add(hold, &spare_of(*ret_device)->chunks, -1U);
	return true;
}

static void release_chunk(int device)
{
	ledger_release(device, SUBALLOC_CHUNK);
	if (!atomic_load(&spare_of(device)->chunks))
		suballoc_drain(device);
}

void suballoc_remove_any(struct suballoc_chunk *c)
{
	int device;
	enum biased_hold hold = biased_enter(cache_lock());
	bool is_last = take_suballocs(hold, c, 1, &device);
	biased_leave(cache_lock(), hold);

	if (unlikely(is_last))
		release_chunk(device);
}

void suballoc_context_gone(uint64_t owner)
{
	for (struct suballoc_leaf *leaf = atomic_load(&leaves); leaf; leaf = leaf->next)
		for (struct suballoc_chunk *c = leaf->chunk; c < leaf->chunk + SUBALLOC_LEAF_CHUNKS;
		     c++) {
			if (!suballoc_count(c) || atomic_load(&c->owner) != owner)
				continue;
			int device;
			enum biased_hold hold = biased_visit(cache_lock());
			bool is_last = take_suballocs(hold, c, suballoc_count(c), &device);
			biased_leave(cache_lock(), hold);
			if (is_last)
				release_chunk(device);
		}
}

void suballoc_reset(void)
{
	for (struct suballoc_leaf *leaf = atomic_load(&leaves), *next; leaf; leaf = next) {
		next = leaf->next;
		atomic_store(&leaf_at[leaf->index], NULL);
		munmap(leaf, sizeof(*leaf));
	}
	atomic_store(&leaves, NULL);
	memset(&process_own()->cache, 0, sizeof(process_own()->cache));
	biased_reset(cache_lock());
}
