/* Starts and stops the daemon's cards, timers and parts (subsystems, see node/subsystem.h), in order. */
#pragma once

#include "base/error.h"

struct gpu_backend;
struct node;

/*
 * Opens the cards by `backend` (`source` is the name or path of its library), and starts every part. *node must be zero except
 * for what main() sets from settings and options (config, run_dir, is_private, ...). Call node_close() after any result.
 */
int node_open(struct node *node, const struct gpu_backend *backend, const char *source,
	      struct error *err);
/* Stops and frees everything. The tenants' files stay, so that the next daemon can adopt the tenants. */
void node_close(struct node *node);
