/*
 * Keeps a list of the memory that this process shares with others: exported or imported. Within a tenant, shared memory is
 * charged to one process: the process that allocated the memory or, after that process freed the memory or died, another
 * process that holds the memory. Memory of another tenant is charged to the first process that imports it. exports.h has the
 * table of owners.
 *
 * Exported memory is charged by the hook that allocated it, imported memory by these functions. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"
#include "library/state/process_state.h"

enum shared_kind {
	SHARED_EXPORTED_MEMORY = 1, /* exported as an IPC handle; by address */
	SHARED_IMPORTED_MEMORY,     /* imported by an IPC handle; by address */
	SHARED_EXPORTED_PHYSICAL, /* memory of the virtual memory API, by its number (hook_vmm.h) */
	SHARED_IMPORTED_PHYSICAL,
	SHARED_EXPORTED_POOL, /* a pool, by its handle */
	SHARED_IMPORTED_POOL,
};

struct shared {
	enum shared_kind kind;
	int index;         /* device index */
	uint64_t id;       /* address, number or handle, as the kind says */
	uint64_t key;      /* identifies the memory in every process (exports.h) */
	uint64_t bytes;    /* an import's bytes, to charge if this process becomes the owner */
	CUcontext context; /* the context with which the memory ends, or NULL */
};

static inline bool shared_any(void)
{
	return unlikely(atomic_load_explicit(&process_state.shared, memory_order_relaxed));
}

/* Records exported memory, for which this process is charged. If out of memory, other processes will be charged too. */
void shared_record_export(const struct shared *given);

/*
 * Records imported memory. Returns false if the memory is charged to no process of the tenant and exceeds the quota, or if host
 * memory ran out.
 */
bool shared_record_import(const struct shared *taken);

/* If the memory was imported already, counts this import too and returns true. Call shared_remove_import() once per import. */
bool shared_add_import(enum shared_kind kind, uint64_t id);
void shared_remove_import(enum shared_kind kind, uint64_t id);

/*
 * Call when the memory turns out to be larger than recorded. Returns false if the larger size exceeds the quota; true also if
 * the memory is not recorded. The caller holds a lock, so that one thread at a time grows or drops the memory.
 */
bool shared_grow(enum shared_kind kind, uint64_t id, uint64_t bytes);

/*
 * Call when this process no longer holds the memory: removes it from the list, so that another process is charged. For exported
 * memory, call before its charge is given back. Returns false if the memory was unknown.
 */
bool shared_drop(enum shared_kind kind, uint64_t id);

/* Returns the memory's key, or 0 if unknown. */
uint64_t shared_key(enum shared_kind kind, uint64_t id);

/* Call after a context has ended: forgets the memory that was shared in it. */
void shared_context_gone(CUcontext context);

/* For the helper thread: makes this process the owner of imported memory whose owner is gone. At most 50 times a second. */
void shared_refresh(uint64_t now_ns);

/* Writes this process's ownerships into the report of a restarted daemon, before the process uses that report. */
void shared_republish(struct region_report *report, const struct region_slot *slot);

/* Call in a forked child: forgets all shared memory. */
void shared_reset(void);
