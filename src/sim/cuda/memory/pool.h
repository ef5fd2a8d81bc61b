/*
 * Shared by pool.c (where a pool's memory is) and pool_handles.c (the calls about a pool). Call
 * every function here with sim.lock held.
 */
#pragma once

#include "sim/cuda/sim.h"

struct piece {
	uint64_t offset, span; /* span: rounded up */
	uint64_t bytes;        /* the size that the program asked for */
};

/* The detail of a REGION_POOL: the chunk's allocations in order of address. */
struct chunk {
	CUmemoryPool pool;
	struct sim_region *region;
	struct chunk *next;
	struct piece *pieces;
	uint32_t pieces_n, pieces_size;
};

/*
 * A block of the card's memory that an imported pool holds since the first pointer into the block was
 * imported.
 */
struct kept {
	struct kept *next;
	uint64_t name;
	uint32_t block;
	CUdevice dev;
};

struct CUmemPoolHandle_st {
	uint32_t magic;
	CUdevice dev;
	bool is_default;
	bool on_host;
	bool is_imported; /* a pool of another process; it has no readable attributes */
	bool is_ended; /* destroyed; the struct stays until the pool's last allocation is freed */
	CUmemAllocationHandleType handle_types;
	struct kept *kept;   /* only for an imported pool */
	uint32_t pointers_n; /* imported pointers that are not freed yet */
	CUmemoryPool next;
	struct chunk *chunks;
	uint64_t threshold, max_bytes;
	uint64_t reserved, reserved_high, used, used_high;
	int reuse[3];
	uint32_t access; /* bit i: device i may access the pool */
};

/* Called when an allocation of an imported pool is freed. */
void sim_pool_import_gone(struct sim_region *region);
CUmemoryPool sim_pool_new(CUdevice dev, bool is_default);
/* Ends a pool and releases its memory. The struct is freed with the pool's last allocation. */
void sim_pool_end(CUmemoryPool pool);
bool sim_pool_is(CUmemoryPool pool);
/* Releases empty chunks while more than `keep` bytes are reserved. */
void sim_pool_trim(CUmemoryPool pool, uint64_t keep);
