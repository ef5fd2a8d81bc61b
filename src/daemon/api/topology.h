/*
 * How the node's cards hang together: read from the driver once, when the daemon starts, as nothing of
 * it changes while a driver is loaded. Main thread only.
 */
#pragma once

#include "daemon/state/node/node.h"
#include "policy/placement/node.h"

struct topology;

/* Asks the backend about all cards of the node, which must be open; what it can't tell is unknown. -ENOMEM. */
int topology_read(struct node *node, struct topology **ret, struct error *err);
/* NULL is fine; returns NULL. */
struct topology *topology_free(struct topology *topology);

/*
 * The node for src/policy/placement: its cards as they are promised now, with their links. Texts are the node's
 * own. A card's memory is used as far as it can't be promised to a new tenant of a claim of this key ("": of none).
 */
void topology_model(struct node *node, const char *key, struct place_node *ret);

/* Where a card sits; nothing is known before topology_read(). */
struct gpu_seat topology_seat(const struct node *node, unsigned card);
/* The NUMA node that a card hangs at; -1: not known. */
int topology_numa(const struct node *node, unsigned card);
