/*
 * Admission of tenants that wait for memory (on_full "wait"). It reads what their processes ask for
 * (region_want), lets policy/memory/admit.h decide for all cards at once, writes the grants and
 * wakes the processes.
 *
 *   NONE     holds nothing and asks for nothing
 *   QUEUED   a process asks: waits until the tenant's whole reservation is free, on all its cards
 *   HOLDING  granted, until it holds nothing and has no live process. Requests to grow beyond the
 *            grant are answered at once: see admit.h
 *
 * These count as taken on a card: grants, promises to tenants that do not wait, memory of tenants
 * without a promise, draining memory, and memory of processes of no tenant. A grant is saved in the
 * state file before the tenant learns of it, so a restarted daemon knows every holder. Main thread
 * only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/state/node/admission_state.h"
#include "daemon/state/tenant.h"
#include "policy/memory/admit.h"

/*
 * Publishes that the tenant waits for memory. Call for a new tenant, or when on_full becomes
 * "wait".
 */
void admission_begin(struct tenant *tenant);
/* Restores what the previous daemon knew of the tenant. */
void admission_restore(struct tenant *tenant, const struct admission_past *past);

/*
 * Changes on_full between "fail" and "wait". ON_FULL_SWAP must stay as it is. A tenant that stops
 * waiting may use its whole quota, which must have been promised to it. A tenant that starts
 * waiting gets a grant for the memory that it holds.
 */
void admission_set_on_full(struct tenant *tenant, enum on_full on_full);

/* Handler of node->admission_timer, which node_admit_soon() starts. `data` is the node. */
void admission_due(void *data, uint32_t events);

/* The tenant is being removed: ends its wait. */
void admission_forget(struct tenant *tenant);

/* Denies the tenant's pending request for memory. Does nothing if there is none. */
void admission_give_up(struct tenant *tenant);

/* The unanswered request of the tenant on a device, in bytes; 0 if there is none. */
uint64_t admission_wanted_bytes(struct tenant *tenant, unsigned device);
/* A card as admission sees it. kept_bytes is from the last decision. */
struct admit_card admission_card(struct node *node, const struct card *card);
