/*
 * GPU time and memory over time by namespace of Kubernetes, for who is billed: counted once a second, also of
 * tenants that have ended. What is in no pod, or whose name its engine does not tell, counts as the namespace "".
 * Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/containers/engine/engine_reply.h"

#define NAMESPACE_USES_MOST 256 /* namespaces; what comes later is counted as "" */

struct node;
struct tenant;

struct namespace_use {
	char name[ENGINE_NAMESPACE_MAX];
	uint64_t charged_ns;
	double gib_seconds;
};

struct namespace_uses {
	unsigned count;
	uint64_t counted_ns; /* up to then; 0: not yet */
	struct namespace_use list[NAMESPACE_USES_MOST];
};

int namespace_use_start(struct node *node, struct error *err);
void namespace_use_stop(struct node *node);
/* Counts what has been used since the last call; GPU time only with `has_worked`, where there may be some. */
void namespace_use_count(struct node *node, bool has_worked, uint64_t now_ns);
/* The rest of one that ends. */
void namespace_use_end(struct tenant *tenant);
