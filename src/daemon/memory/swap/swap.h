/*
 * Tenants whose memory can be moved off the card (on_full swap): what is asked for, what their processes
 * say of it. The library does the moving (library/swap/swap.h). Main thread only.
 */
#pragma once

#include "daemon/memory/checkpoint/checkpoint.h"
#include "daemon/state/tenant.h"

/* How a tenant's memory leaves its card: the one place where that is decided. */
enum swap_way { SWAP_BY_LIBRARY, SWAP_BY_CHECKPOINT };
static inline enum swap_way swap_way_of(const struct tenant_terms *terms)
{
	return terms->on_full == ON_FULL_SWAP ? SWAP_BY_LIBRARY : SWAP_BY_CHECKPOINT;
}

/* What they say of one of its devices, every value bounded by the card. */
struct swap_device_figures {
	uint64_t movable_bytes; /* there or out */
	uint64_t out_bytes;     /* of these, not there */
	uint64_t kept_bytes;    /* could be moved, but that others know them */
	uint64_t context_bytes; /* of contexts, which stay */
	uint64_t wanted_bytes;  /* more, that allocations wait for */
};

/* What a tenant's processes say. */
struct swap_figures {
	unsigned in, moving, out, is_short; /* processes; out includes is_short */
	unsigned behind;       /* have not carried out or given up on the order in force */
	uint64_t copied_bytes; /* by those that move, of this move */
	uint64_t failed;       /* orders that came to nothing */
	uint64_t moved_ns;     /* the longest of their last moves */
	uint64_t progress;     /* changes while any of them moves */
	struct swap_device_figures device[REGION_MAX_DEVICES];
};

/*
 * Checks a new tenant's terms and fills swap_arena_bytes in: its quotas together, unless the request named less.
 * -EINVAL, -EOPNOTSUPP or -ENOSPC with the value and what would be right. Other tenants: 0.
 */
int swap_check_terms(struct node *node, struct tenant_terms *terms, struct error *err);

/*
 * Whether the machine has so much host memory for what leaves a card by checkpoint, beside what arenas are
 * yet to take. -ENOSPC. A simulated card's memory is host memory already.
 */
int swap_check_host_memory(struct node *node, uint64_t bytes, struct error *err);

/* As subsystem.h has it: gives the tenant its first order, and a new one its arena. */
int swap_tenant_added(struct tenant *tenant, bool is_new, struct error *err);
void swap_close(struct tenant *tenant);

/* Host memory that arenas may have together, and what they have. */
uint64_t swap_budget_bytes(const struct node *node);
uint64_t swap_reserved_bytes(const struct node *node);

/* The tenant's processes are to be on their cards, or to leave them. */
void swap_set_order(struct tenant *tenant, enum swap_order order);
/* Asks anew, also those that have given up on the order in force. */
void swap_repeat_order(struct tenant *tenant);

struct swap_figures swap_figures(const struct tenant *tenant);
/*
 * Where the memory of a tenant of this kind is. PLACE_IN also where its processes have given up on leaving, or have none
 * that could leave; PLACE_STUCK: some of them are out, and some have given up on it.
 */
enum checkpoint_place swap_place(const struct tenant *tenant);
/* On a way off the cards: what has left or is copied, of all that can be moved; and what stays there. */
struct swap_progress {
	uint64_t moved_bytes, total_bytes, stays_bytes;
};
struct swap_progress swap_progress(struct tenant *tenant);

/* All processes have done what was asked or have given up on it, and some memory is on the cards all the same. */
bool swap_has_refused(const struct tenant *tenant);
/* The place's name or "short"; NULL where there is nothing to say. */
const char *swap_state_text(const struct tenant *tenant);
