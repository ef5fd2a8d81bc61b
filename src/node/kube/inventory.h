/* This node's cards, and how they are linked, as a scheduler is told of them. The main thread. */
#ifndef ALLOT_NODE_KUBE_INVENTORY_H
#define ALLOT_NODE_KUBE_INVENTORY_H

#include "kube/cards.h"
#include "kube/scores.h"

struct node;

/* *ret_scores is of no cards where no link is known. -ENOMEM. To be freed by cards_free() and scores_free(). */
int inventory_read(struct node *node, struct kube_cards *ret_cards, struct kube_scores *ret_scores);

#endif
