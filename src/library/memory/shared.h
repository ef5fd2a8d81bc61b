/*
 * Memory that this process shares with others: exported by this process, or imported from another. Within a
 * tenant, shared memory is charged once. The process that made it is charged; when that process frees it or dies,
 * another one that still holds it is charged. For memory of another tenant, the first process that imports it is
 * charged. The processes of a tenant agree on this through the table in exports.h.
 *
 * The process that made the memory charges exported memory (ledger.h); imported memory is charged here. Thread
 * safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"
#include "library/state/process_state.h"

enum shared_kind {
	SHARED_OUT_MEMORY = 1, /* exported as an IPC handle; by address */
	SHARED_IN_MEMORY,      /* imported by an IPC handle; by address */
	SHARED_OUT_PHYSICAL,   /* VMM memory, by its number (hook_vmm.c) */
	SHARED_IN_PHYSICAL,
	SHARED_OUT_POOL, /* a pool, by its handle */
	SHARED_IN_POOL,
};

struct shared {
	enum shared_kind kind;
	int index; /* device index */
	uint64_t id;
	uint64_t key;      /* identifies the memory in every process that holds it: exports.h */
	uint64_t bytes;    /* of an import: the bytes to charge if this process is the owner */
	CUcontext context; /* the context with which the memory ends, or NULL */
};

static inline bool shared_any(void)
{
	return unlikely(atomic_load_explicit(&process_state.shared, memory_order_relaxed));
}

/*
 * Records exported memory, for which this process is charged. If the record cannot be stored for lack of memory,
 * other processes are charged too.
 */
void shared_give(const struct shared *given);

/*
 * Records imported memory. Returns false if no process of the tenant is charged for it and it does not fit the
 * quota.
 */
bool shared_take(const struct shared *taken);

/*
 * If the memory was imported already, counts this import too and returns true. shared_close() must be called once per import.
 */
bool shared_again(enum shared_kind kind, uint64_t id);
void shared_close(enum shared_kind kind, uint64_t id);

/*
 * Call when the memory turns out to be larger. Returns false if the larger size does not fit the quota; returns
 * true also if the memory is not known here. The caller holds a lock, so that one thread at a time grows or drops
 * the same memory.
 */
bool shared_grow(enum shared_kind kind, uint64_t id, uint64_t bytes);

/*
 * Call when this process no longer holds the memory. Returns false if it was not known. For exported memory, call
 * this before giving its charge back.
 */
bool shared_drop(enum shared_kind kind, uint64_t id);

/* Returns the memory's key, or 0 if it is not known. */
uint64_t shared_key(enum shared_kind kind, uint64_t id);

/* Call after a context has ended: drops the memory that was shared in it. */
void shared_context_gone(CUcontext context);

/* Helper thread: becomes the owner of imported memory that has no live owner any more; at most 50 times a second. */
void shared_refresh(uint64_t now_ns);

/* Enters this process's ownerships in the report of a restarted daemon, before the process moves to it. */
void shared_move(struct region_report *report, const struct region_slot *slot);

/* Call in a forked child: forgets the state of the parent. */
void shared_reset(void);
