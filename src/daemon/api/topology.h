/*
 * The links between the node's cards, read once when the daemon starts, since they do not change while a driver is loaded.
 * Main thread only.
 */
#pragma once

#include "daemon/state/node/node.h"
#include "policy/placement/place_node.h"

struct topology;

/*
 * Asks the GPU backend (gpu.h) about the node's cards. Facts that the backend cannot tell count as unknown. Returns 0 or
 * -ENOMEM.
 */
int topology_read(struct node *node, struct topology **ret, struct error *err);
/* NULL is allowed; returns NULL. */
struct topology *topology_free(struct topology *topology);

/*
 * Describes this node, its promises and links for policy/placement. The texts in *ret belong to the node. Memory counts as
 * used if it could not be promised to a new tenant with claim key `key` ("": no claim).
 */
void topology_model(struct node *node, const char *key, struct place_node *ret);

/* unknown before topology_read() */
struct gpu_locality topology_locality(const struct node *node, unsigned card);
/* -1 if unknown */
int topology_numa(const struct node *node, unsigned card);
