/*
 * Every way of getting memory on the card, a row each: how it is got, and how it is put back in every
 * order that the driver allows. memory_storm.c chooses among them at random.
 *
 * A row's functions run in many threads of several processes at once. What fails though the driver may
 * not let it fail ends the process (GPU_DO).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu.h"
#include "stage.h"

#define WAYS_PIECES 3    /* of one holding: mappings, pieces of a pool */
#define WAYS_PARCELS 64  /* one a thread */
#define WAYS_MAX_ROWS 32 /* of the table */
#define WAYS_PAGE (2 * MIB)

/* NONE: of no holding. MADE: of its maker's. OPEN: `handle` can be opened, or a descriptor is under way. */
enum offer { OFFER_NONE, OFFER_MADE, OFFER_OPEN };

/* Memory of one process that others may open, in memory that all share. A descriptor's goes by a socket. */
struct parcel {
	_Atomic uint32_t offered; /* enum offer */
	_Atomic uint32_t users;   /* who have it open, or are about to */
	_Atomic uint64_t orphan;  /* its bytes: freed by its maker, and open still */
	uint64_t bytes;           /* that stay while it is open: whole pages */
	uint32_t process;         /* that made it */
	CUipcMemHandle handle;
};

/* What one thread has at one place. The fields that a way does not need are 0. */
struct held {
	const struct way *way; /* NULL: an empty place */
	uint64_t bytes;        /* at least so much is held on the card, and charged at once */
	uint64_t late_bytes;   /* what is held as well, and charged later: see ways_late() */
	CUdeviceptr ptr, piece[WAYS_PIECES];
	CUarray array;
	CUmipmappedArray mipmap;
	CUmemGenericAllocationHandle handle;
	uint64_t physical_bytes;
	CUmemoryPool pool;
	CUgraphExec exec;
	CUmodule module;
	CUlibrary library;
	CUcontext context;
	CUgreenCtx green;
	void *host;
	struct parcel *parcel;
	unsigned variant;
};

/* What all processes share. */
struct ways_board {
	struct parcel parcel[WAYS_PARCELS], fd_parcel[WAYS_PARCELS];
	_Atomic uint64_t late_bytes, late_most; /* held, and perhaps not yet charged */
};

struct ways_process {
	uint32_t number;
	CUcontext primary;
	CUmemoryPool pool; /* of the process's own, for all its threads */
	struct ways_board *board;
	int fd_out,
		fd_in; /* a socket's two ends, the same for all processes: descriptors to share */
	_Atomic uint32_t stack_taken; /* a thread has changed the stack's size: cuCtxSetLimit */
};

struct ways_thread {
	struct ways_process *process;
	uint32_t number; /* of all threads: its parcels */
	uint64_t random;
	CUstream stream;
};

/*
 * When is what this way gets charged? AT_ONCE: before the driver's call that it is for. LATE: the library
 * learns of it afterwards: of code and local memory by what the card has less of, and for certain when two
 * looks of the daemon have shown it (docs/internals/memory.md, "What no call names"); of memory that its maker
 * freed while it is open here when the helper thread finds it ownerless. Until then the tenant may be over
 * its quota by as much; from then on the rest is smaller by as much. NEVER: memory of the host.
 */
enum way_charge { WAY_AT_ONCE, WAY_LATE, WAY_NEVER };

struct way {
	const char *name;
	/*
	 * Fills in *h. CUDA_ERROR_OUT_OF_MEMORY: refused, and nothing is held. CUDA_ERROR_NOT_READY:
	 * there was nothing to get, as no one offers a handle.
	 */
	CUresult (*get)(struct ways_thread *t, struct held *h);
	/* False: not yet, as someone else has it open. */
	bool (*put)(struct ways_thread *t, struct held *h);
	enum way_charge charge;
	unsigned weight; /* in a mix */
};

extern const struct way ways[];
extern const unsigned ways_count;

/* One of those whose bit is set, by weight. */
const struct way *ways_pick(struct ways_thread *t, uint64_t rows);

/* Gives back what a process's pools and graphs hold without need. No other thread is in a way. */
void ways_trim(struct ways_process *p);

/* Below `most`. */
static inline uint64_t pick(struct ways_thread *t, uint64_t most)
{
	return random_of(&t->random) % most;
}

/* Many small ones, some large. */
static inline uint64_t pick_bytes(struct ways_thread *t)
{
	static const uint64_t scales[] = { 4 * KIB, 256 * KIB, 2 * MIB, 16 * MIB, 48 * MIB };

	return 1 + pick(t, scales[pick(t, 5)]);
}

/*
 * So many bytes more are held, or less (negative), that are not charged at once. Before they are got, and
 * after they are put back: at no moment less is told than is held.
 */
static inline void ways_late(struct ways_thread *t, int64_t bytes)
{
	struct ways_board *b = t->process->board;
	uint64_t now = atomic_fetch_add(&b->late_bytes, (uint64_t)bytes) + (uint64_t)bytes;
	uint64_t most = atomic_load(&b->late_most);

	while (now > most && !atomic_compare_exchange_weak(&b->late_most, &most, now))
		;
}

/* No longer one of the parcel's users. The last one out: what its maker has freed is gone now. */
void ways_leave(struct ways_thread *t, struct parcel *p);

/* The rows' functions: ways_<kind>.c. */
#define WAY(name) \
	CUresult get_##name(struct ways_thread *t, struct held *h); \
	bool put_##name(struct ways_thread *t, struct held *h);

WAY(linear)
WAY(pitch)
WAY(managed)
WAY(host)
WAY(array)
WAY(array3d)
WAY(mipmap)
WAY(async)
WAY(from_pool)
WAY(pool)
WAY(graph)
WAY(physical)
WAY(context)
WAY(green)
WAY(module)
WAY(library)
WAY(stack)
WAY(shared)
WAY(orphan)
WAY(fd)
WAY(fd_orphan)
#undef WAY
