/*
 * What the tenants of a card were promised together. Main thread only.
 */
#pragma once

#include "policy/memory/promise.h"

struct card;
struct node;
struct tenant;

/*
 * Sums the promises of a card to all tenants but `except` (NULL: to all). Containers of one pod that never run at once
 * (pod_stage.h) count as the largest of them. Reads slots.
 */
struct promise_card node_promised(struct node *node, const struct card *card,
				  const struct tenant *except);
/* The same to all that run at the same time as a tenant that is to be made for a claim of this key. */
struct promise_card node_promised_beside(struct node *node, const struct card *card,
					 const char *key);

/* The same to those tenants that `counts` says, all at once, and nothing that is kept for tenants that wait. */
struct promise_card node_promised_to(struct node *node, const struct card *card,
				     bool (*counts)(const struct tenant *tenant));

/* Gives every tenant that was promised no memory of its own what is left of this card as its quota. */
void node_update_rest(struct node *node, const struct card *card);
/* The same on all cards; looks at the tenants once. */
void node_update_unpromised(struct node *node);
