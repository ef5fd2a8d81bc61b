/*
 * A grant is the memory that a waiting tenant (on_full "wait") may hold. This module reads what the tenants' processes request
 * (region_want), lets policy/memory/grant.h decide for all GPUs at once, writes grants and wakes processes. A tenant is in one
 * of three states:
 *
 *   NONE     holds nothing and requests nothing
 *   QUEUED   a process requests: waits until the tenant's whole reservation is free, on all its GPUs
 *   HOLDING  granted, until it holds nothing and has no live process. A request to grow beyond the
 *            grant is answered at once: see grant.h
 *
 * These count as taken on a GPU: grants, promises to tenants that do not wait, the largest of the swappable tenants' quotas,
 * memory that tenants without a promise hold, memory of ended processes that the driver may not have freed yet, memory of
 * processes that belong to no tenant, and what thawed containers may still allocate. A tenant's first grant is saved in the
 * state file before the tenant learns of it, so a restarted daemon knows every holder. Growth of a grant is saved soon after.
 * Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/state/node/memory_wait.h"
#include "daemon/state/tenant.h"
#include "policy/memory/grant.h"

/* Tells the processes whether they need grants. Call for a new tenant, or when on_full becomes "wait". */
void memory_wait_begin(struct tenant *tenant);
/* Restores the grant or the place in the queue from the previous daemon. */
void memory_wait_restore(struct tenant *tenant, const struct memory_wait_past *past);

/*
 * Changes on_full between "fail" and "wait"; "swap" cannot change. A tenant that stops waiting may use its whole quota, which
 * must have been promised. One that starts waiting gets a grant for what it holds.
 */
void memory_wait_set_on_full(struct tenant *tenant, enum on_full on_full);

/* Handler of node->memory_wait_timer, which node_grant_soon() starts: decides for all waiting tenants. `data` is the node. */
void memory_wait_due(void *data, uint32_t events);

/* Call when the tenant is being removed: if it is QUEUED, its wait ended without a grant. */
void memory_wait_end(struct tenant *tenant);

/* Takes the tenant out of the queue, if it is QUEUED, and denies its requests. */
void memory_wait_give_up(struct tenant *tenant);

/* The bytes of the tenant's unanswered requests on a device. */
uint64_t memory_wait_wanted_bytes(struct tenant *tenant, unsigned device);
/* A GPU as grant.h sees it. kept_bytes, reserved for waiting tenants, is from the last decision. */
struct grant_card memory_wait_card(struct node *node, const struct card *card);
