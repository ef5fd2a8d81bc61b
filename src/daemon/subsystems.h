/*
 * Starts and stops the daemon's cards (GPUs), timers and parts (subsystems, see node/subsystem.h), in order.
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
/* Stops and frees everything. The tenants' files stay, so that the next daemon can adopt the tenants. */
void node_close(struct node *node);
