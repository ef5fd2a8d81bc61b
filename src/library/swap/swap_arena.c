#include "library/swap/swap_arena.h"

#include "library/loader/real.h"
#include "library/memory/exports.h"
#include "library/state/process_state.h"
#include "library/sys/locks.h"

#define CHUNK_STEP (2ULL << 20)
#define CHUNK_MIN (32ULL << 20)
#define MAP_BYTES (4ULL << 20)
#define PORTABLE 1        /* CU_MEMHOSTREGISTER_PORTABLE: locked for all contexts */
#define POPULATE_WRITE 23 /* MADV_POPULATE_WRITE, Linux 5.14 */

static struct {
	uint8_t *mapping;
	uint64_t bytes, chunk_bytes;
	/* For the swap thread: how much of the arena has memory, the largest arena_ready_bytes seen so far. */
	uint64_t ready_bytes;
	/* The chunks that this process owns, in the order in which they are filled. */
	uint16_t own[REGION_ARENA_CHUNKS];
	_Atomic uint32_t owned;
	/* For the swap thread: how many chunks of own[] are mapped, and how many of these are page-locked. */
	uint32_t mapped, locked;
} arena;

void swap_arena_begin(void *mapping, uint64_t bytes)
{
	uint64_t chunk = (bytes + REGION_ARENA_CHUNKS - 1) / REGION_ARENA_CHUNKS;

	chunk = (chunk + CHUNK_STEP - 1) / CHUNK_STEP * CHUNK_STEP;
	arena.mapping = mapping;
	arena.bytes = bytes;
	arena.chunk_bytes = chunk < CHUNK_MIN ? CHUNK_MIN : chunk;
}

/* The arena's last chunk may be shorter than the others. */
static uint64_t size_of(uint32_t chunk)
{
	uint64_t left = arena.bytes - chunk * arena.chunk_bytes;

	return left < arena.chunk_bytes ? left : arena.chunk_bytes;
}

/* Takes a chunk without a live owner. Returns its bytes, or 0 if there is none. The caller holds locks.swap_arena. */
static uint64_t take_chunk(void)
{
	struct region_report *report = atomic_load(&process_state.report);
	uint64_t self = exports_owner(report, atomic_load(&process_state.slot));
	uint32_t n = atomic_load(&arena.owned);
	uint32_t count = (uint32_t)((arena.bytes + arena.chunk_bytes - 1) / arena.chunk_bytes);

	for (uint32_t i = 0; i < count && n < REGION_ARENA_CHUNKS; i++) {
		uint64_t old = atomic_load(&report->arena[i].owner);

		if (exports_is_alive(report, old) ||
		    !atomic_compare_exchange_strong(&report->arena[i].owner, &old, self))
			continue;
		arena.own[n] = (uint16_t)i;
		atomic_store(&arena.owned, n + 1);
		return size_of(i);
	}
	return 0;
}

bool swap_arena_reserve(uint64_t bytes)
{
	uint64_t have = 0;

	if (!arena.mapping)
		return false;
	WITH_LOCK(&locks.swap_arena);
	for (uint32_t i = 0; i < atomic_load(&arena.owned); i++)
		have += size_of(arena.own[i]);
	while (have < bytes) {
		/*
		 * Only the daemon that made the arena knows the chunks' owners. A later one's arena_bytes is 0: take no more.
		 */
		uint64_t more = atomic_load(&process_state.control)->arena_bytes ? take_chunk() : 0;
		if (!more)
			return false;
		have += more;
	}
	return true;
}

static bool has_memory(uint32_t chunk)
{
	const struct region_control *control = atomic_load(&process_state.control);
	uint64_t ready = atomic_load(&control->arena_ready_bytes);

	/* A later daemon may report less, but chunks that had memory keep it. */
	if (ready > arena.ready_bytes)
		arena.ready_bytes = ready;
	return chunk * arena.chunk_bytes + size_of(chunk) <= arena.ready_bytes;
}

bool swap_arena_is_ready(uint64_t bytes)
{
	uint32_t n = atomic_load(&arena.owned);
	uint64_t have = 0;

	for (uint32_t i = 0; i < n && have < bytes; i++) {
		if (!has_memory(arena.own[i]))
			return false;
		have += size_of(arena.own[i]);
	}
	return have >= bytes;
}

static void *address_of(uint32_t chunk)
{
	return arena.mapping + chunk * arena.chunk_bytes;
}

uint64_t swap_arena_map_next(void)
{
	uint32_t i = arena.mapped;

	if (i >= atomic_load(&arena.owned) || !has_memory(arena.own[i]) ||
	    !real.cuMemHostRegister_v2)
		return 0;
	uint64_t bytes = size_of(arena.own[i]);
	/* In small parts: while a part is being mapped, other threads cannot map or unmap memory. */
	for (uint64_t at = 0; at < bytes; at += MAP_BYTES)
		syscall(SYS_madvise, (uint8_t *)address_of(arena.own[i]) + at,
			bytes - at < MAP_BYTES ? bytes - at : MAP_BYTES, POPULATE_WRITE);
	arena.mapped = i + 1;
	return bytes;
}

uint64_t swap_arena_lock_next(void)
{
	uint32_t i = arena.locked;

	if (i >= arena.mapped)
		return 0;
	CUresult result = real.cuMemHostRegister_v2(address_of(arena.own[i]), size_of(arena.own[i]),
						    PORTABLE);
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
		return 0;
	arena.locked = i + 1;
	return size_of(arena.own[i]);
}

bool swap_arena_is_locked(uint64_t bytes)
{
	uint64_t have = 0;

	for (uint32_t i = 0; i < arena.locked && have < bytes; i++)
		have += size_of(arena.own[i]);
	return have >= bytes;
}

void swap_arena_relock(void)
{
	arena.locked = 0;
}

void *swap_arena_at(uint64_t at, uint64_t *ret_run)
{
	uint32_t i = 0;

	/* The last, shorter chunk of the arena can be anywhere in own[]. */
	for (; at >= size_of(arena.own[i]); i++)
		at -= size_of(arena.own[i]);
	*ret_run = size_of(arena.own[i]) - at;
	return (uint8_t *)address_of(arena.own[i]) + at;
}

void swap_arena_reset(void)
{
	arena.mapping = NULL;
	arena.ready_bytes = 0;
	atomic_store(&arena.owned, 0);
	arena.mapped = arena.locked = 0;
}
