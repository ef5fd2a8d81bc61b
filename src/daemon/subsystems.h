/*
 * The daemon as a whole: its cards, its timers, its parts in order.
 */
#pragma once

#include "base/error.h"

struct gpu_backend;
struct node;

/*
 * Opens the backend's cards, starts their arbitration, and every part of the daemon. *node must be zero but for config, run_dir
 * and flags. On failure what was begun is undone by node_close(), which is always safe after this.
 */
int node_open(struct node *node, const struct gpu_backend *backend, const char *source,
	      struct error *err);
/* Tenants' files stay where they are (a new daemon adopts them); everything else is given back. */
void node_close(struct node *node);
