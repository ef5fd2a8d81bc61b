/*
 * Opens the node's cards, takes each card's lock, so that no other daemon arbitrates the card, and starts the cards'
 * arbitrations. Main thread only.
 */
#pragma once

#include "base/error.h"

struct node;

/*
 * Opens the cards of node->backend and node->gpu_source. Returns -E2BIG if there are more than
 * NODE_MAX_CARDS.
 */
int cards_start(struct node *node, struct error *err);
/* Closes the cards. Call after all tenants are gone. Allowed after a failed cards_start(). */
void cards_stop(struct node *node);
