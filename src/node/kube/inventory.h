/* This node's cards as a scheduler is told of them. The main thread. */
#ifndef ALLOT_NODE_KUBE_INVENTORY_H
#define ALLOT_NODE_KUBE_INVENTORY_H

#include "kube/cards.h"

struct node;

/* -ENOMEM; to be freed by cards_free(). */
int inventory_cards(const struct node *node, struct kube_cards *ret);

#endif
