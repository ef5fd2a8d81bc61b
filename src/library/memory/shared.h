/*
 * Memory that this process shares with others: given out by it, or taken in. Charged once in a tenant:
 * to the process that made it, and when that lets go of it or dies, to one that holds it still; in
 * another tenant to the first process that takes it in. exports.h has the table by which the processes
 * of a tenant agree on that.
 *
 * What is given out is charged by whoever made it (ledger.h); what is taken in is charged here.
 * Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"
#include "library/state/process_state.h"

enum shared_kind {
	SHARED_OUT_MEMORY = 1, /* linear memory given out as an IPC handle, by address */
	SHARED_IN_MEMORY,      /* the like taken in, by address */
	SHARED_OUT_PHYSICAL,   /* VMM memory, by its number (hook_vmm.c) */
	SHARED_IN_PHYSICAL,
	SHARED_OUT_POOL, /* a pool, by its handle */
	SHARED_IN_POOL,
};

struct shared {
	enum shared_kind kind;
	int index; /* of the device */
	uint64_t id;
	uint64_t key;      /* what every holder knows it by: exports.h */
	uint64_t bytes;    /* IN: charged, if to this process */
	CUcontext context; /* it dies with; or NULL */
};

static inline bool shared_any(void)
{
	return unlikely(atomic_load_explicit(&process_state.shared, memory_order_relaxed));
}

/* Given out: this process is charged for it. Without memory for the note others are charged as well. */
void shared_give(const struct shared *given);

/* Taken in. False when it is charged to nobody in the tenant and does not fit in the quota. */
bool shared_take(const struct shared *taken);

/* True when it was taken in before: once more then, and shared_close() as often. */
bool shared_again(enum shared_kind kind, uint64_t id);
void shared_close(enum shared_kind kind, uint64_t id);

/*
 * It turned out to be larger. False when that does not fit; true as well when it is not known here. One
 * piece of memory is grown and dropped by one thread at a time: the caller has a lock for it.
 */
bool shared_grow(enum shared_kind kind, uint64_t id, uint64_t bytes);

/* Held no longer; false when it was not known. Before the charge of what was given out goes back. */
bool shared_drop(enum shared_kind kind, uint64_t id);

/* Its key, or 0. */
uint64_t shared_key(enum shared_kind kind, uint64_t id);

/* The context is gone, and what was shared in it. */
void shared_context_gone(CUcontext context);

/* Helper thread: takes over what nobody is charged for any more, 50 times a second at most. */
void shared_refresh(uint64_t now_ns);

/* A restarted daemon's report, before this process moves there. */
void shared_move(struct region_report *report, const struct region_slot *slot);

/* In a forked child. */
void shared_reset(void);
