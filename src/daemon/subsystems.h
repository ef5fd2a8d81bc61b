/* The daemon as a whole: its cards, its timers, and its parts in order. */
#pragma once

#include "base/error.h"

struct gpu_backend;
struct node;

/*
 * Opens the backend's cards, starts their arbitrations and every part of the daemon. *node must be
 * zero except for config, run_dir and flags. After a failure, node_close() undoes what was done; it
 * is safe after any result.
 */
int node_open(struct node *node, const struct gpu_backend *backend, const char *source,
	      struct error *err);
/*
 * Stops and frees everything except the tenants' files, from which the next daemon adopts the
 * tenants.
 */
void node_close(struct node *node);
