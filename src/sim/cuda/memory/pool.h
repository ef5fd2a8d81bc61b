/* Between pool.c (where a pool's memory is) and pool_handles.c (what a program asks of a pool). All
 * with sim.lock. */
#pragma once

#include "sim/cuda/sim.h"

struct piece {
	uint64_t offset, span; /* span: rounded */
	uint64_t bytes;        /* as asked for */
};

/* Detail of a REGION_POOL: its allocations in order of address. */
struct chunk {
	CUmemoryPool pool;
	struct sim_region *region;
	struct chunk *next;
	struct piece *pieces;
	uint32_t pieces_n, pieces_size;
};

/* Memory of the card that an imported pool holds, from the first pointer into it on. */
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
	bool is_imported; /* of another process: it tells nothing of itself */
	bool is_ended;    /* destroyed, but for what is still allocated */
	CUmemAllocationHandleType handle_types;
	struct kept *kept;   /* of an imported pool */
	uint32_t pointers_n; /* imported of it now */
	CUmemoryPool next;
	struct chunk *chunks;
	uint64_t threshold, max_bytes;
	uint64_t reserved, reserved_high, used, used_high;
	int reuse[3];
	uint32_t access; /* bit i: device i */
};

/* An allocation of an imported pool is freed. */
void sim_pool_import_gone(struct sim_region *region);
CUmemoryPool sim_pool_new(CUdevice dev, bool is_default);
/* Gives back its memory, and frees it: what is still allocated of it later, when it is freed. */
void sim_pool_end(CUmemoryPool pool);
bool sim_pool_is(CUmemoryPool pool);
/* Gives empty chunks back while more than keep bytes are reserved. */
void sim_pool_trim(CUmemoryPool pool, uint64_t keep);
