/*
 * What this process holds, by address or handle: found again in O(1) when it is freed. Sharded by
 * key; each shard two hash tables with open addressing that grow by themselves, in memory of their
 * own (mmap: the program's allocator may be anything). Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum holding_kind {
	HOLDING_NONE = 0, /* an empty place */
	HOLDING_MEMORY, /* linear memory, by device pointer; small suballocations are suballoc.c's */
	HOLDING_ARRAY,  /* an array or mipmapped array, by handle */
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
	 * Charged. GRAPH: what a launch may map. HANDLE: how often obtained. IMPORT: its size.
	 */
	uint64_t bytes;
	uint64_t owner; /* MEMORY, ARRAY: the context it dies with, or 0; other kinds have none */
	/*
	 * MEMORY: how a suballocation's charge was come by, until it is noted (suballoc.h). IMPORT: its pool.
	 * HANDLE, MAPPING, BINDING: the memory's number. PHYSICAL: references. GRAPH: the CUDA device.
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

/* Removes every holding that dies with context `owner`, calling `drop` for each. */
void ptrmap_remove_owned(uint64_t owner, void (*drop)(const struct holding *, void *),
			 void *context);

/* Forgets everything, in a forked child. */
void ptrmap_reset(void);
