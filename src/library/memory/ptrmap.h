/*
 * What this process holds, by address or handle; a free finds it in O(1). The map is sharded by key. Each shard
 * has two hash tables with open addressing that grow in memory of their own (by mmap, since the program may have
 * replaced the allocator). Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum holding_kind {
	HOLDING_NONE = 0, /* an empty entry */
	/* Linear memory, by device pointer; small suballocations are in suballoc.c. */
	HOLDING_MEMORY,
	HOLDING_ARRAY,   /* an array or mipmapped array, by handle */
	HOLDING_CONTEXT, /* a context, by handle */
	/* VMM memory, by the library's number for it: see hook_vmm.c */
	HOLDING_PHYSICAL,
	HOLDING_HANDLE,  /* a handle of VMM memory, by its value */
	HOLDING_MAPPING, /* a mapping of VMM memory, by address */
	/* VMM memory bound to a multicast object: see hook_multicast.c */
	HOLDING_BINDING,
	HOLDING_IMPORT, /* an allocation of an imported pool, by address */
	HOLDING_GRAPH,  /* an executable graph with memory: see hook_graph.c */
};

struct holding {
	uint64_t key; /* unique within its kind */
	enum holding_kind kind;
	int device; /* index in the tenant's list */
	/*
	 * The bytes charged. For GRAPH, the memory that a launch may map on the device. For HANDLE, how often the handle was
	 * obtained. For IMPORT, the size of the allocation.
	 */
	uint64_t bytes;
	/* For MEMORY and ARRAY, the context with which the memory ends, or 0; other kinds have no owner. */
	uint64_t owner;
	/*
	 * For MEMORY, until it is recorded, where the charge of a suballocation came from (suballoc.h). For
	 * IMPORT, the pool. For HANDLE, MAPPING and BINDING, the memory's number. For PHYSICAL, the number of
	 * references.
	 */
	uint64_t related;
};

/* Adds a holding. Returns false if memory ran out; then the caller gives its reservation back and fails the call. */
bool ptrmap_insert(const struct holding *holding);

/* Removes a holding and returns it in *ret_holding. Returns false if there is none. */
bool ptrmap_remove(enum holding_kind kind, uint64_t key, struct holding *ret_holding);

bool ptrmap_find(enum holding_kind kind, uint64_t key, struct holding *ret_holding);

/* Replaces `bytes` and `related` of an existing holding. Returns false if there is none. */
bool ptrmap_update(const struct holding *holding);

/* Removes every holding that ends with the context `owner`, and calls `drop` for each. */
void ptrmap_remove_owned(uint64_t owner, void (*drop)(const struct holding *, void *),
			 void *context);

/* Call in a forked child: forgets all holdings. */
void ptrmap_reset(void);
