/*
 * Opens the node's cards, locks each against other daemons, and starts each card's arbitration (the thread that divides its
 * time among tenants). Main thread only.
 */
#pragma once

#include "base/error.h"

struct node;

/* Opens the cards of node->backend and node->gpu_source. Returns -E2BIG if there are more than NODE_MAX_CARDS. */
int cards_start(struct node *node, struct error *err);
/* Closes the cards. Call after all tenants are gone. Allowed after a failed cards_start(). */
void cards_stop(struct node *node);
