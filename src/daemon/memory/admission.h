/*
 * Tenants that wait for memory (on_full "wait"): reads what their processes ask for (region_want), lets
 * policy/memory/admit.h decide for all cards at once, writes what is granted, and wakes whom it concerns.
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
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/state/node/admission_state.h"
#include "daemon/state/tenant.h"
#include "policy/memory/admit.h"

/* Publishes the terms of waiting of a tenant that is new, or waits from now on. */
void admission_begin(struct tenant *tenant);
/* What the daemon before this one knew of it. */
void admission_restore(struct tenant *tenant, const struct admission_past *past);

/*
 * Between fail and wait: ON_FULL_SWAP only where it is that. Who waits for memory is let go; who holds some without a
 * grant gets one. The quota has been promised.
 */
void admission_set_on_full(struct tenant *tenant, enum on_full on_full);

/* Handler of node->admission_timer, which node_admit_soon() starts: `data` is the node. */
void admission_due(void *data, uint32_t events);

/* The tenant goes, and waits no more. */
void admission_forget(struct tenant *tenant);

/* Refuses what the tenant waits for; nothing where it does not. */
void admission_give_up(struct tenant *tenant);

/* What the tenant asks for on a device and has not been answered; 0: nothing. */
uint64_t admission_wanted_bytes(struct tenant *tenant, unsigned device);
/* A card as admission sees it; kept_bytes is of the last decision. */
struct admit_card admission_card(struct node *node, const struct card *card);
