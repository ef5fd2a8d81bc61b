/*
 * Tenants whose memory can be moved off the card (on_full "swap"): the orders to their processes
 * and the processes' reports. The library moves the memory (library/swap/swap.h). Main thread only.
 */
#pragma once

#include "daemon/memory/checkpoint/checkpoint.h"
#include "daemon/state/tenant.h"

/* How a tenant's memory leaves its card. Only swap_way_of() decides it. */
enum swap_way { SWAP_BY_LIBRARY, SWAP_BY_CHECKPOINT };
static inline enum swap_way swap_way_of(const struct tenant_terms *terms)
{
	return terms->on_full == ON_FULL_SWAP ? SWAP_BY_LIBRARY : SWAP_BY_CHECKPOINT;
}

/* Totals that the tenant's processes report for one device. Every value is at most the card's memory. */
struct swap_device_figures {
	uint64_t movable_bytes; /* movable memory, on the card or off it */
	uint64_t out_bytes;     /* the part of movable_bytes that is off the card */
	uint64_t kept_bytes;    /* stays on the card because other processes share it */
	uint64_t context_bytes; /* contexts, which stay on the card */
	uint64_t wanted_bytes;  /* further bytes that allocations wait for */
};

/* What a tenant's processes report. */
struct swap_figures {
	/*
	 * numbers of processes by the place of their memory; is_short: those in `out` that have no
	 * room to return
	 */
	unsigned in, moving, out, is_short;
	/*
	 * number of processes that have neither carried out the present order nor given up on that
	 * order
	 */
	unsigned behind;
	uint64_t copied_bytes; /* copied so far by moving processes in this move */
	uint64_t failed;       /* number of failed orders */
	uint64_t moved_ns;     /* how long the processes' last moves took, at most */
	/* a sum that changes as long as any process makes progress with its move */
	uint64_t progress;
	struct swap_device_figures device[REGION_MAX_DEVICES];
};

/*
 * Checks a new tenant's terms and fills in swap_arena_bytes: the sum of its quotas, unless the
 * request named less; 0 for tenants without swap. Returns -EINVAL, -EOPNOTSUPP or -ENOSPC, with the
 * value and what would be accepted.
 */
int swap_check_terms(struct node *node, struct tenant_terms *terms, struct error *err);

/*
 * Checks that the machine has this much host memory for a checkpoint, beside what arenas will still
 * take. Returns -ENOSPC if not. Always succeeds for a simulated card, whose memory is host memory
 * already.
 */
int swap_check_host_memory(struct node *node, uint64_t bytes, struct error *err);

/* Event of subsystem.h: gives the tenant its first order, and a new tenant its arena. */
int swap_tenant_added(struct tenant *tenant, bool is_new, struct error *err);
void swap_close(struct tenant *tenant);

/* Return how much host memory all arenas together may have, and how much they have now. */
uint64_t swap_budget_bytes(const struct node *node);
uint64_t swap_reserved_bytes(const struct node *node);

/* Orders the tenant's processes onto their cards or off them. */
void swap_set_order(struct tenant *tenant, enum swap_order order);
/* Gives the present order again, so that processes that have given up on it try again. */
void swap_repeat_order(struct tenant *tenant);

/* Sums the reports of the tenant's processes. */
struct swap_figures swap_figures(const struct tenant *tenant);
/*
 * Returns where the tenant's memory is. PLACE_IN also if its processes have given up on leaving, or
 * cannot leave. PLACE_STUCK: some processes are out and others have given up on leaving.
 */
enum checkpoint_place swap_place(const struct tenant *tenant);
/*
 * While a tenant leaves the cards: bytes that have left or are copied, all movable bytes, and bytes
 * that stay on the cards.
 */
struct swap_progress {
	uint64_t moved_bytes, total_bytes, stays_bytes;
};
struct swap_progress swap_progress(struct tenant *tenant);

/*
 * Whether leaving the cards has ended without success: all processes have carried out the order to
 * leave or given up on it, but some memory is still on the cards.
 */
bool swap_has_refused(const struct tenant *tenant);
/*
 * Returns the name of the tenant's place, or "short" if there is no room for its return. NULL if it
 * has no memory that can be moved.
 */
const char *swap_state_text(const struct tenant *tenant);
