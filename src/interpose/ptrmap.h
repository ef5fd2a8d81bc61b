/*
 * What this process holds, by address or handle: found again in O(1) when it is freed. Sharded by
 * key; each shard two hash tables with open addressing that grow by themselves, in memory of their
 * own (mmap: the program's allocator may be anything). Thread safe.
 */
#ifndef ALLOT_INTERPOSE_PTRMAP_H
#define ALLOT_INTERPOSE_PTRMAP_H

#include <stdbool.h>
#include <stdint.h>

enum holding_kind {
	HOLDING_NONE = 0, /* an empty place */
	HOLDING_MEMORY,   /* linear memory, by device pointer */
	HOLDING_CHUNK,    /* 2 MiB that small pieces of it share, by number: see charge.c */
	HOLDING_ARRAY,    /* an array or mipmapped array, by handle */
	HOLDING_CONTEXT,  /* a context, by handle */
	HOLDING_PHYSICAL, /* VMM memory, by a number of its own: see hook_vmm.c */
	HOLDING_HANDLE,   /* of such, by its value */
	HOLDING_MAPPING,  /* a mapping of such, by address */
	HOLDING_BINDING,  /* of such, into a multicast object: see hook_multicast.c */
	HOLDING_IMPORT,   /* an allocation of an imported pool, by address */
	HOLDING_GRAPH,    /* an executable graph with memory: see hook_graph.c */
};

struct holding {
	uint64_t key; /* unique within its kind */
	enum holding_kind kind;
	int device; /* index in the tenant's list */
	/*
	 * Charged. GRAPH: what a launch may map. HANDLE: how often obtained. IMPORT: its size. CHUNK: how
	 * many pieces it has.
	 */
	uint64_t bytes;
	uint64_t owner; /* MEMORY, CHUNK, ARRAY: the context it dies with, or 0; other kinds have none */
	/*
	 * IMPORT: its pool. HANDLE, MAPPING, BINDING: the memory's number. PHYSICAL: references. GRAPH:
	 * the CUDA device.
	 */
	uint64_t related;
};

/* False when memory ran out; the caller gives its reservation back and fails the call. */
bool ptrmap_insert(const struct holding *holding);

/* Removes and returns it; false when there is none. */
bool ptrmap_remove(enum holding_kind kind, uint64_t key, struct holding *ret_holding);

bool ptrmap_find(enum holding_kind kind, uint64_t key, struct holding *ret_holding);

/* Replaces an existing holding's bytes and related; false when there is none. */
bool ptrmap_update(const struct holding *holding);

/*
 * Adds to the count in the holding's bytes, in one step; h->bytes says how much, h->device and h->owner are
 * those of a new one. Returns the count; UINT64_MAX: memory ran out.
 */
uint64_t ptrmap_count_up(const struct holding *h);
/* One less; gone with the last. Returns what is left; UINT64_MAX: there is none. */
uint64_t ptrmap_count_down(enum holding_kind kind, uint64_t key);

/* Removes every holding that dies with context `owner`, calling `drop` for each. */
void ptrmap_remove_owned(uint64_t owner, void (*drop)(const struct holding *, void *),
			 void *context);

/* Forgets everything, in a forked child. */
void ptrmap_reset(void);

#endif
