/* The sum of what a card's tenants were promised. Main thread only. */
#pragma once

#include "policy/memory/promise.h"

struct card;
struct node;
struct tenant;

/*
 * Sums a card's promises to all tenants except `except`, which may be NULL. Containers of one pod
 * that never run at the same time (pod_stage.h) count only as much as the pod needs at any one
 * time. Reads the usage in the tenants' slots.
 */
struct promise_card node_promised(struct node *node, const struct card *card,
				  const struct tenant *except);
/*
 * Like node_promised(), but sums only the tenants that would run at the same time as a tenant made
 * for claim `key`.
 */
struct promise_card node_promised_beside(struct node *node, const struct card *card,
					 const char *key);

/*
 * Sums the promises to the tenants for which `counts` returns true, as if all containers of a pod
 * ran at the same time. Leaves out memory that is reserved for waiting tenants and for containers
 * that return from a checkpoint.
 */
struct promise_card node_promised_to(struct node *node, const struct card *card,
				     bool (*counts)(const struct tenant *tenant));

/*
 * Sets the quota of each tenant on the card that asked for no amount of memory. Such a tenant may
 * use the memory that is promised to no other tenant.
 */
void node_update_rest(struct node *node, const struct card *card);
/* Calls node_update_rest() for each card that has a tenant without a promised amount of memory. */
void node_update_unpromised(struct node *node);
