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
 * A tenant may have been promised no amount of memory; it may then use what is promised to no other
 * tenant. Sets the quota of each such tenant on the card to that unpromised memory.
 */
void node_update_rest(struct node *node, const struct card *card);
/* Does what node_update_rest() does for all cards, with one walk over the tenants. */
void node_update_unpromised(struct node *node);
