/* Shared by memory.c, pool.c, pool_handles.c and pool_share.c. Call every function with sim.lock held. */
#pragma once

#include "sim/cuda/sim.h"

struct piece {
	uint64_t offset, span; /* offset in the chunk; span: `bytes` rounded up to ALIGN_BYTES */
	uint64_t bytes;        /* the program's request */
};

/* region->detail of a REGION_POOL: a chunk's allocations in order of address. */
struct chunk {
	CUmemoryPool pool;
	struct sim_region *region;
	struct chunk *next;
	struct piece *pieces;
	uint32_t pieces_n, pieces_size;
};

/* Another process's memory, which an imported pool keeps from the first import of a pointer into it until the pool ends. */
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
	bool is_imported; /* a pool of another process; its attributes cannot be read */
	bool is_ended; /* destroyed; the struct stays until the pool's last allocation is freed */
	CUmemAllocationHandleType handle_types;
	struct kept *kept;
	uint32_t pointers_n; /* imported pointers that are not freed yet */
	CUmemoryPool next;
	struct chunk *chunks;
	uint64_t threshold, max_bytes;
	uint64_t reserved, reserved_high, used, used_high;
	int reuse[3];
	uint32_t access; /* bit i: device i has access */
};

/* Called when an allocation of an imported pool is freed. */
void sim_pool_import_gone(struct sim_region *region);
CUmemoryPool sim_pool_new(CUdevice dev, bool is_default);
/* Destroys the pool: releases empty chunks now, the other chunks and the struct when the last allocation is freed. */
void sim_pool_end(CUmemoryPool pool);
bool sim_pool_is(CUmemoryPool pool);
/* Releases empty chunks while more than `keep` bytes are reserved. */
void sim_pool_trim(CUmemoryPool pool, uint64_t keep);
