/* The sum of what a card's tenants were promised. Main thread only. */
#pragma once

#include "policy/memory/promise.h"

struct card;
struct node;
struct tenant;

/*
 * Sums a card's promises to all tenants except `except`, which may be NULL. Containers of one pod
 * that never run at the same time (pod_stage.h) count as the largest of them. Reads slots.
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
 * Sums the promises to those tenants for which `counts` returns true, as if all of them ran at the
 * same time. Leaves out memory that is kept for waiting tenants.
 */
struct promise_card node_promised_to(struct node *node, const struct card *card,
				     bool (*counts)(const struct tenant *tenant));

/*
 * A tenant may have no memory promise of its own. Sets the quota of each such tenant to the card's
 * unpromised memory.
 */
void node_update_rest(struct node *node, const struct card *card);
/* Does the same for all cards, with one walk over the tenants. */
void node_update_unpromised(struct node *node);
