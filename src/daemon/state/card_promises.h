/*
 * A promise is the memory and GPU time reserved for a tenant on a card. This module sums a card's promises. Main thread only.
 */
#pragma once

#include "policy/memory/promise.h"

struct card;
struct node;
struct tenant;

/*
 * Sums the promises except those to `except` (may be NULL). Counts for each pod the most that the pod needs at any one time
 * (pod_stage.h). Memory that tenants hold counts as their processes report it.
 */
struct promise_card node_promised(struct node *node, const struct card *card,
				  const struct tenant *except);
/* Returns how much of the card is promised, granted or held, without memory that can be moved off it or is reserved. */
uint64_t node_taken_bytes(const struct card *card, const struct promise_card *p);
/* Like node_promised(), but sums only the tenants that would run at the same time as a tenant made for claim `key`. */
struct promise_card node_promised_beside(struct node *node, const struct card *card,
					 const char *key);

/*
 * Sums the promises to the tenants that `counts` accepts, as if all containers of a pod ran at the same time. Leaves out
 * memory reserved for waiting tenants and for containers that return from a checkpoint.
 */
struct promise_card node_promised_to(struct node *node, const struct card *card,
				     bool (*counts)(const struct tenant *tenant));

/*
 * Handler of the event tenants_changed (subsystem.h). If the guarantees on a card exceed 100 %, reduces those of the users with
 * the largest sums (promise_user_most_pct()), and tells the card's arbiter. Until this has run, a new or changed tenant has its
 * whole guarantee, and the arbiter scales down all tenants' guarantees in proportion.
 */
void node_update_guarantees(struct node *node);

/* Each tenant that asked for no amount of memory may use all memory that is promised to no tenant, unless it is retired. */
void node_update_unpromised_quotas(struct node *node, const struct card *card);
void node_update_all_unpromised_quotas(struct node *node);
