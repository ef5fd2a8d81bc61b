/*
 * The memory that this process shares with others: exported or imported. Within a tenant, shared memory is charged to one
 * process: to that which allocated it or, once that has freed it or died, to another process that holds it. Memory of another
 * tenant is charged to the first process that imports it. exports.h has the table of owners.
 *
 * The hook that allocated exported memory charges it; these functions charge imported memory. Thread safe.
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
	SHARED_EXPORTED_PHYSICAL,   /* memory of the virtual memory API, by its number */
	SHARED_IMPORTED_PHYSICAL,
	SHARED_EXPORTED_POOL, /* a pool, by its handle */
	SHARED_IMPORTED_POOL,
};

struct shared {
	enum shared_kind kind;
	int index;
	uint64_t id;       /* address, number or handle, as the kind says */
	uint64_t key;      /* identifies the memory in every process (exports.h) */
	uint64_t bytes;    /* an import's bytes, to charge if this process becomes the owner */
	CUcontext context; /* with which the memory ends, or NULL */
};

static inline bool shared_any(void)
{
	return unlikely(atomic_load_explicit(&process_state.shared, memory_order_relaxed));
}

/* Exported memory is charged to this process. If out of memory for the record, other processes are charged too. */
void shared_record_export(const struct shared *given);

/*
 * Charges this process for the memory if no process of the tenant is charged yet. Returns false if that exceeds the quota, or
 * if host memory ran out.
 */
bool shared_record_import(const struct shared *taken);

/* If the memory was imported already, counts this import too and returns true. Call shared_remove_import() once per import. */
bool shared_add_import(enum shared_kind kind, uint64_t id);
void shared_remove_import(enum shared_kind kind, uint64_t id);

/*
 * Call when the memory turns out to be larger than recorded. Returns false if the larger size exceeds the quota. Memory that is
 * not recorded yields true. The caller holds a lock, so that one thread at a time grows or drops the memory.
 */
bool shared_grow(enum shared_kind kind, uint64_t id, uint64_t bytes);

/*
 * Call when this process no longer holds the memory, so that another process is charged. For exported memory, call before its
 * charge is given back. Returns false if the memory was unknown.
 */
bool shared_drop(enum shared_kind kind, uint64_t id);

/* 0 if unknown. */
uint64_t shared_key(enum shared_kind kind, uint64_t id);

/* Call after a context has ended: forgets what was shared in it. */
void shared_context_gone(CUcontext context);

/* For the helper thread: makes this process the owner of imports whose owner is gone. At most 50 times a second. */
void shared_refresh(uint64_t now_ns);

/* Writes this process's ownerships into the report of a restarted daemon, before the process uses that report. */
void shared_republish(struct region_report *report, const struct region_slot *slot);

/* Call in a forked child: forgets all shared memory. */
void shared_reset(void);
