/*
 * The process's allocations by address or handle, in constant time. Each shard has two hash tables with open addressing, in
 * memory of mmap, because the program may have replaced the allocator. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum holding_kind {
	HOLDING_NONE = 0,
	/* Linear memory, by device pointer; not small suballocations (suballoc.h). */
	HOLDING_MEMORY,
	HOLDING_ARRAY,
	HOLDING_CONTEXT,
	/* Memory of the virtual memory API, by the library's number for it (hook_vmm.h). */
	HOLDING_PHYSICAL,
	HOLDING_HANDLE,  /* a handle of memory of the kind PHYSICAL */
	HOLDING_MAPPING, /* a mapping of memory of the kind PHYSICAL, by address */
	/* Memory of the kind PHYSICAL bound to a multicast object (hook_multicast.c). */
	HOLDING_BINDING,
	HOLDING_IMPORT, /* an allocation in an imported pool, by address */
	HOLDING_GRAPH,  /* an executable graph with memory (hook_graph.c) */
};

struct holding {
	uint64_t key; /* unique within its kind */
	enum holding_kind kind;
	int device; /* index in the tenant's list */
	/* The bytes charged. GRAPH: what a launch may map. HANDLE: how often it was obtained. MAPPING, IMPORT: the size. */
	uint64_t bytes;
	/* MEMORY and ARRAY: the context with which the memory ends, or 0. */
	uint64_t owner;
	/*
	 * IMPORT: the pool. HANDLE, MAPPING and BINDING: the memory's number. PHYSICAL: the number of references. CONTEXT: the
	 * device of a green context. A suballocation, which is never in the map: its enum suballoc_charge.
	 */
	uint64_t related;
};

/* Adds or replaces the holding with this kind and key. Returns false if out of memory; then the caller's call must fail. */
bool ptrmap_insert(const struct holding *holding);

/* This and the next two functions return false if there is no such holding. */
bool ptrmap_remove(enum holding_kind kind, uint64_t key, struct holding *ret_holding);

bool ptrmap_find(enum holding_kind kind, uint64_t key, struct holding *ret_holding);

/* Replaces `bytes` and `related` of a holding. */
bool ptrmap_update(const struct holding *holding);

/* Removes all holdings of the context `owner`, and calls `drop` for each. */
void ptrmap_remove_owned(uint64_t owner, void (*drop)(const struct holding *, void *),
			 void *context);

/* Call in a forked child: forgets all holdings. */
void ptrmap_reset(void);
