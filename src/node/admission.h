/*
 * Tenants that wait for memory (on_full "wait"): reads what their processes ask for (region_want), lets
 * admit/admit.h decide for all cards at once, writes what is granted, and wakes whom it concerns.
 *
 *   NONE     holds nothing and asks for nothing
 *   QUEUED   a process asks: waits until all that the tenant reserved is there, on all its cards
 *   HOLDING  granted; until it holds nothing and no process of it lives. Growth past the grant is answered
 *            at once: see admit.h
 *
 * Taken of a card is what is granted, promised to tenants that do not wait, held by those with the rest,
 * still draining, and held by processes of no tenant. A grant is written to the state file before the
 * tenant hears of it, so a restarted daemon knows of every holder. Main thread only.
 */
#ifndef ALLOT_NODE_ADMISSION_H
#define ALLOT_NODE_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "admit/admit.h"
#include "region/region.h"

struct node;
struct card;
struct tenant;

enum wait_outcome { WAIT_GRANTED, WAIT_GIVEN_UP, WAIT_LEFT, WAIT_OUTCOMES };

/* Waits for memory that there were, of a tenant or of all. WAIT_LEFT: nobody asks any more. */
struct admission_counts {
	uint64_t begun, ended[WAIT_OUTCOMES];
	uint64_t waited_ns; /* of those that ended */
};

enum admission_state { ADMISSION_NONE, ADMISSION_QUEUED, ADMISSION_HOLDING };

/* What the state file keeps of it. All 0: it neither held nor waited. */
struct admission_past {
	uint64_t granted_bytes[REGION_MAX_DEVICES];
	uint64_t arrival, since_ns; /* on the monotonic clock */
};

/* Of a tenant that waits. */
struct tenant_admission {
	enum admission_state state;
	uint64_t arrival, since_ns; /* of QUEUED */
	uint32_t passes;
	unsigned place; /* in the order of waiting, from 1 */
	bool is_logged; /* that it waits */
	/* After a restart: its place is kept for one that waited, until then. */
	struct admission_past past;
	uint64_t past_until_ns;
	uint64_t granted_bytes[REGION_MAX_DEVICES]; /* HOLDING; else 0 */
};

/* Publishes the terms of waiting of a tenant that is new, or waits from now on. */
void admission_begin(struct tenant *tenant);
/* It waits no more: who does may have memory up to its quota, which was promised. terms.on_full is still wait. */
void admission_stop(struct tenant *tenant);
/* What the daemon before this one knew of it. */
void admission_restore(struct tenant *tenant, const struct admission_past *past);
/* For the state file. */
struct admission_past admission_past(const struct tenant *tenant);

/* Something changed that may let somebody in: decides soon. Cheap; nothing without tenants that wait. */
void admission_soon(struct node *node);
/* Handler of node->admission_timer: `data` is the node. */
void admission_due(void *data, uint32_t events);

/* The tenant goes, and waits no more. */
void admission_forget(struct tenant *tenant);

/* Refuses what the tenant waits for; nothing where it does not. */
void admission_give_up(struct tenant *tenant);

/* What a tenant that waits takes of the card of its device: granted, or held in spite of that. */
uint64_t admission_taken_bytes(struct tenant *tenant, unsigned device);
/* What the tenant asks for on a device and has not been answered; 0: nothing. */
uint64_t admission_wanted_bytes(struct tenant *tenant, unsigned device);
/* A card as admission sees it; kept_bytes is of the last decision. */
struct admit_card admission_card(struct node *node, const struct card *card);

#endif
