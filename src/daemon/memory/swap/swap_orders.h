/*
 * A tenant with on_full "swap" can have its memory moved off the GPU. This module orders the tenant's processes to move it, and
 * reads their reports. The library in the processes moves the memory (library/swap/swap.h). Main thread only.
 */
#pragma once

#include "daemon/memory/checkpoint/checkpoint.h"
#include "daemon/state/tenant.h"

/* How a tenant's memory leaves its GPU. */
enum swap_way { SWAP_BY_LIBRARY, SWAP_BY_CHECKPOINT };
static inline enum swap_way swap_way_of(const struct tenant_terms *terms)
{
	return terms->on_full == ON_FULL_SWAP ? SWAP_BY_LIBRARY : SWAP_BY_CHECKPOINT;
}

/* Sums of the reports of a tenant's processes for one device. Each value is at most the GPU's memory. */
struct swap_device_figures {
	uint64_t movable_bytes; /* movable memory, on the GPU or off it */
	uint64_t out_bytes;     /* part of movable_bytes that is off the GPU */
	uint64_t kept_bytes;    /* stays on the GPU because other processes share it */
	uint64_t context_bytes; /* contexts, which stay on the GPU */
	uint64_t wanted_bytes;  /* further bytes that allocations wait for */
};

struct swap_figures {
	/* Numbers of processes by place; is_short: those in `out` without room to return. */
	unsigned in, moving, out, is_short;
	/* Number of processes that still have to carry out the present order, or to give it up. */
	unsigned behind;
	uint64_t copied_bytes; /* copied so far by processes that are moving */
	uint64_t failed;       /* number of moves that failed */
	uint64_t moved_ns;     /* longest of the processes' last moves */
	/* Changes as long as any process makes progress with its move. */
	uint64_t progress;
	uint64_t movable_bytes, out_bytes; /* sums over the devices */
	struct swap_device_figures device[REGION_MAX_DEVICES];
};

/*
 * Checks the requested swap_arena_bytes, rounds them up, and limits them to the sum of the quotas, the default. Without on_full
 * "swap", none may be requested. Returns -EINVAL or -ENOSPC; err then says what would be accepted.
 */
int swap_check_terms(struct node *node, struct tenant_terms *terms, struct error *err);

/* -ENOSPC if the host memory for a checkpoint is missing. A simulated GPU's memory is host memory already, and needs none. */
int swap_check_host_memory(struct node *node, uint64_t bytes, struct error *err);

/* Handler of the event tenant_added (subsystem.h): gives the tenant its first order and, if `is_new`, its arena. */
int swap_tenant_added(struct tenant *tenant, bool is_new, struct error *err);
void swap_close(struct tenant *tenant);

/* How much host memory all arenas may have, and how much they have. */
uint64_t swap_budget_bytes(const struct node *node);
uint64_t swap_reserved_bytes(const struct node *node);

/* Orders the tenant's processes onto their GPUs, off them, or to park (tenant_checkpoint.h). */
void swap_set_order(struct tenant *tenant, enum swap_order order);
/* Gives the present order again, so that processes that gave up try again. */
void swap_repeat_order(struct tenant *tenant);

struct swap_figures swap_figures(const struct tenant *tenant);
/* PLACE_IN also if all the tenant's processes gave up or cannot leave; PLACE_STUCK if some are out and others gave up. */
enum checkpoint_place swap_place(const struct tenant *tenant);
/* While a tenant leaves: bytes that have left or are copied, all movable bytes, and bytes that stay. */
struct swap_progress {
	uint64_t moved_bytes, total_bytes, stays_bytes;
};
struct swap_progress swap_progress(struct tenant *tenant);

/* True if leaving has ended without success: all processes left or gave up, and memory is still on the GPUs. */
bool swap_has_refused(const struct tenant *tenant);
/* The states that swap_state_text() names: each place, and SWAP_TEXT_SHORT (no room to return). */
enum { SWAP_TEXT_SHORT = PLACE_STUCK + 1, SWAP_TEXTS };
/* `state` must be below SWAP_TEXTS. */
const char *swap_text(unsigned state);
/* The tenant's place, "short" if there is no room to return, or NULL if no memory can be moved. */
const char *swap_state_text(const struct tenant *tenant);
