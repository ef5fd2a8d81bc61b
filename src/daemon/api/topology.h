/*
 * The links between the node's cards. Read from the driver once, when the daemon starts, since they do not change while a
 * driver is loaded. Main thread only.
 */
#pragma once

#include "daemon/state/node/node.h"
#include "policy/placement/place_node.h"

struct topology;

/*
 * Asks the backend about all cards of the node, which must be open. Anything the backend can't tell is recorded as unknown.
 * Returns -ENOMEM if out of memory.
 */
int topology_read(struct node *node, struct topology **ret, struct error *err);
/* Frees the topology. NULL is fine; returns NULL. */
struct topology *topology_free(struct topology *topology);

/*
 * Fills *ret with the model of this node that src/policy/placement uses: its cards with their current promises and links. Texts
 * belong to the node. Memory counts as used if it can't be promised to a new tenant whose claim has the key `key` ("": it has
 * no claim).
 */
void topology_model(struct node *node, const char *key, struct place_node *ret);

/* Returns where a card is in the machine; unknown before topology_read(). */
struct gpu_seat topology_seat(const struct node *node, unsigned card);
/* Returns the NUMA node of a card; -1 if unknown. */
int topology_numa(const struct node *node, unsigned card);
