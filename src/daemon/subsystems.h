/*
 * Starts and stops the daemon's cards, timers and parts, in order.
 */
#pragma once

#include "base/error.h"

struct gpu_backend;
struct node;

/*
 * Opens the cards and starts every part. *node must be zero except for config, run_dir and flags. Call node_close() after
 * any result.
 */
int node_open(struct node *node, const struct gpu_backend *backend, const char *source,
	      struct error *err);
/* Stops and frees everything except the tenants' files, from which the next daemon adopts the tenants. */
void node_close(struct node *node);
