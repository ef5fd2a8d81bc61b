#include "library/memory/piece.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "library/loader/real.h"
#include "library/memory/ledger.h"
#include "library/state/process_state.h"
#include "library/sys/biased.h"

#define LEAVES (1 << (PIECE_ADDRESS_BITS - PIECE_LEAF_SHIFT))

static struct piece_leaf *_Atomic leaf_at[LEAVES];
static struct piece_leaf *_Atomic leaves; /* all of them */

#define REST_EVERY_NS (100 * NS_PER_MS)

static struct piece_leaf *make_leaf(size_t index)
{
	struct piece_leaf *none = NULL, *leaf = mmap(NULL, sizeof(*leaf), PROT_READ | PROT_WRITE,
						     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (leaf == MAP_FAILED)
		return NULL;
	leaf->index = index;
	for (size_t i = 0; i < PIECE_LEAF_CHUNKS; i++)
		leaf->chunk[i].number = (uint32_t)(index * PIECE_LEAF_CHUNKS + i);
	if (!atomic_compare_exchange_strong(&leaf_at[index], &none, leaf)) {
		munmap(leaf, sizeof(*leaf));
		return none; /* another thread was faster */
	}
	leaf->next = atomic_load(&leaves);
	while (!atomic_compare_exchange_weak(&leaves, &leaf->next, leaf))
		;
	return leaf;
}

static inline struct piece_stock *stock_of(int device)
{
	return &process_own()->desk.stock[device];
}

static inline struct biased_lock *desk_lock(void)
{
	return &process_own()->desk.lock;
}

/* NULL: there is none. */
static struct piece_leaf *leaf_of(CUdeviceptr ptr)
{
	size_t index = ptr >> PIECE_LEAF_SHIFT;
	struct piece_leaf *leaf = index < LEAVES ? atomic_load_explicit(&leaf_at[index],
									memory_order_acquire)
						 : NULL;

	if (leaf)
		atomic_store_explicit(&process_own()->desk.last_leaf, leaf, memory_order_release);
	return leaf;
}

enum piece_charge piece_take_spare(int device)
{
	enum biased_hold hold = biased_enter(desk_lock());
	bool is_taken = biased_move(hold, &stock_of(device)->spare, PIECE_SPARE_THERE,
				    PIECE_SPARE_TAKEN);

	biased_leave(desk_lock(), hold);
	if (!is_taken)
		return PIECE_RESERVED;
	atomic_store_explicit(&stock_of(device)->is_used, true, memory_order_relaxed);
	return PIECE_SPARE;
}

/* Only who has taken the spare changes that. */
void piece_use_spare(int device)
{
	atomic_store(&stock_of(device)->spare, PIECE_NO_SPARE);
}

void piece_drain(int device)
{
	if (atomic_load(&stock_of(device)->spare) != PIECE_SPARE_THERE)
		return;
	enum biased_hold hold = biased_visit(desk_lock());
	bool is_drained = biased_move(hold, &stock_of(device)->spare, PIECE_SPARE_THERE,
				      PIECE_NO_SPARE);
	biased_leave(desk_lock(), hold);
	if (is_drained)
		ledger_release(device, PIECE_CHUNK);
}

/* A charge that was not needed: kept as the spare. False: there is one, and the charge is to go back. */
static bool keep_spare(enum biased_hold hold, int device, enum piece_charge charge)
{
	struct piece_stock *s = stock_of(device);

	if (charge == PIECE_RESERVED)
		return biased_move(hold, &s->spare, PIECE_NO_SPARE, PIECE_SPARE_THERE);
	atomic_store_explicit(&s->spare, PIECE_SPARE_THERE, memory_order_release);
	return true;
}

void piece_failed(int device, enum piece_charge charge)
{
	enum biased_hold hold = biased_enter(desk_lock());
	bool is_kept = keep_spare(hold, device, charge);
	/* Of this and the end of the last chunk, one sees the other. */
	if (hold == BIASED_SHARED)
		atomic_thread_fence(memory_order_seq_cst);
	bool is_needed = atomic_load(&stock_of(device)->chunks);
	biased_leave(desk_lock(), hold);

	if (!is_kept)
		ledger_release(device, PIECE_CHUNK);
	else if (!is_needed)
		piece_drain(device);
}

void piece_rest(uint64_t now_ns)
{
	static uint64_t last_ns;

	if (now_ns - last_ns < REST_EVERY_NS)
		return;
	last_ns = now_ns;
	for (int i = 0; i < REGION_MAX_DEVICES; i++)
		if (!atomic_exchange(&stock_of(i)->is_used, false))
			piece_drain(i);
}

/* The first piece of its chunk: what was reserved ahead is the chunk's charge. */
static void begin_chunk(enum biased_hold hold, struct piece_chunk *c, uint32_t old_state,
			int device, enum piece_charge charge)
{
	biased_add(hold, &c->state, ((uint32_t)device << PIECE_DEVICE_SHIFT) - old_state);
	biased_add(hold, &stock_of(device)->chunks, 1);
	if (charge == PIECE_SPARE)
		piece_use_spare(device);
}

bool piece_add(CUdeviceptr ptr, int device, enum piece_charge charge)
{
	struct piece_leaf *leaf = leaf_of(ptr);

	if (unlikely(!leaf) && ptr >> PIECE_LEAF_SHIFT < LEAVES)
		leaf = make_leaf(ptr >> PIECE_LEAF_SHIFT);
	if (unlikely(!leaf))
		return false;
	struct piece_chunk *c = piece_chunk_in(leaf, ptr);
	enum biased_hold hold = biased_enter(desk_lock());
	uint32_t old = biased_add(hold, &c->state, 1);
	bool is_old = old & PIECE_COUNT_MASK, is_kept = true;
	if (likely(is_old))
		is_kept = keep_spare(hold, device, charge);
	else
		begin_chunk(hold, c, old, device, charge);
	biased_leave(desk_lock(), hold);

	if (unlikely(!is_old))
		atomic_store(&c->owner, (uintptr_t)real_current_context());
	if (unlikely(!is_kept))
		ledger_release(device, PIECE_CHUNK);
	return true;
}

struct piece_chunk *piece_chunk_of(CUdeviceptr ptr)
{
	struct piece_leaf *leaf = leaf_of(ptr);
	struct piece_chunk *c = leaf ? piece_chunk_in(leaf, ptr) : NULL;

	return c && piece_count(c) ? c : NULL;
}

/* Takes pieces from a chunk; true when those were the last. */
static bool take_pieces(enum biased_hold hold, struct piece_chunk *c, uint32_t pieces,
			int *ret_device)
{
	uint32_t old = biased_add(hold, &c->state, -pieces), count = old & PIECE_COUNT_MASK;

	if (unlikely(count < pieces)) {
		/* Its context went away meanwhile, and with it the charge. */
		biased_add(hold, &c->state, pieces);
		return false;
	}
	*ret_device = (int)(old >> PIECE_DEVICE_SHIFT);
	if (likely(count > pieces))
		return false;
	biased_add(hold, &stock_of(*ret_device)->chunks, -1U);
	return true;
}

static void release_chunk(int device)
{
	ledger_release(device, PIECE_CHUNK);
	if (!atomic_load(&stock_of(device)->chunks))
		piece_drain(device);
}

void piece_remove_any(struct piece_chunk *c)
{
	int device;
	enum biased_hold hold = biased_enter(desk_lock());
	bool is_last = take_pieces(hold, c, 1, &device);
	biased_leave(desk_lock(), hold);

	if (unlikely(is_last))
		release_chunk(device);
}

void piece_context_gone(uint64_t owner)
{
	for (struct piece_leaf *leaf = atomic_load(&leaves); leaf; leaf = leaf->next)
		for (struct piece_chunk *c = leaf->chunk; c < leaf->chunk + PIECE_LEAF_CHUNKS; c++) {
			if (!piece_count(c) || atomic_load(&c->owner) != owner)
				continue;
			int device;
			enum biased_hold hold = biased_visit(desk_lock());
			bool is_last = take_pieces(hold, c, piece_count(c), &device);
			biased_leave(desk_lock(), hold);
			if (is_last)
				release_chunk(device);
		}
}

void piece_reset(void)
{
	for (struct piece_leaf *leaf = atomic_load(&leaves), *next; leaf; leaf = next) {
		next = leaf->next;
		atomic_store(&leaf_at[leaf->index], NULL);
		munmap(leaf, sizeof(*leaf));
	}
	atomic_store(&leaves, NULL);
	memset(&process_own()->desk, 0, sizeof(process_own()->desk));
	biased_reset(desk_lock());
}
