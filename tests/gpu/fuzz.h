/*
 * Every way of getting memory of a card, as gpu-fuzz mixes them: one vtable row each. What is got is a
 * struct held; going may take several steps, as with memory that has a handle and mappings.
 */
#pragma once

#include "cuda.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define FUZZ_MAPPINGS 2

struct way;

struct held {
	const struct way *way; /* NULL: an empty place */
	size_t bytes; /* surely on the card, or 0 where that is shared or no call tells it */
	CUdeviceptr p;
	CUarray array;
	CUmipmappedArray mipmap;
	void *host;
	CUmodule module;
	CUcontext context;
	CUgraphExec exec;
	CUmemGenericAllocationHandle handle; /* 0: released */
	size_t span;
	CUdeviceptr mapping[FUZZ_MAPPINGS]; /* 0: not mapped */
};

struct way {
	const char *name;
	unsigned int weight; /* how often it is chosen */
	unsigned int most;   /* so many at once; 0: any number */
	CUresult (*make)(struct held *h);
	/* One step towards its end, or something else that may happen to it. True: it is gone. */
	bool (*step)(struct held *h);
};

extern const struct way fuzz_ways[];
extern const unsigned int fuzz_ways_count;

/* Live managed memory, of which NVML tells in no process. */
extern size_t fuzz_managed_bytes;

/* Opens streams and pools of its own; needs gpu_open(). */
void fuzz_begin(uint64_t seed);
void fuzz_end(void);

/* A number below `most`, of the seed's sequence. */
uint64_t fuzz_pick(uint64_t most);

/* Gives back what pools and graphs keep. */
void fuzz_trim(void);
