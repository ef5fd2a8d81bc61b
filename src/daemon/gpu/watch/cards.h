/*
 * Opens the node's cards by its backend, each with the lock that makes this daemon its one arbiter, and starts their
 * arbitration. Main thread only.
 */
#pragma once

#include "base/error.h"

struct node;

/* node->backend and node->gpu_source say what is opened. -E2BIG: there are more than NODE_MAX_CARDS. */
int cards_start(struct node *node, struct error *err);
/* After every tenant. Also where cards_start() failed. */
void cards_stop(struct node *node);
