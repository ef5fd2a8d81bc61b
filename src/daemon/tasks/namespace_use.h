/*
 * GPU time and memory over time by Kubernetes namespace, for billing. Counted once a second;
 * tenants that have ended stay included. A tenant outside Kubernetes, or with a namespace that its
 * engine does not report, counts for namespace "". Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/containers/engine/engine_reply.h"

#define NAMESPACE_USES_MOST 256 /* further namespaces count as "" */

struct node;
struct tenant;

struct namespace_use {
	char name[ENGINE_NAMESPACE_MAX];
	uint64_t charged_ns;
	double gib_seconds;
};

struct namespace_uses {
	unsigned count;
	uint64_t counted_ns; /* use until then is counted; 0: not counted yet */
	struct namespace_use list[NAMESPACE_USES_MOST];
};

int namespace_use_start(struct node *node, struct error *err);
void namespace_use_stop(struct node *node);
/*
 * Counts use since the last call. GPU time is counted only with `has_worked`: some tenant may have
 * used the GPU.
 */
void namespace_use_count(struct node *node, bool has_worked, uint64_t now_ns);
/* Counts the remaining use of a tenant that ends. */
void namespace_use_end(struct tenant *tenant);
