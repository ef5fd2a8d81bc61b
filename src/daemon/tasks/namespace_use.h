/*
 * Sums the GPU time of each Kubernetes namespace, and its memory multiplied by time, for billing. Counts once a second; the
 * sums include ended tenants. Namespace "" has tenants outside Kubernetes or with an unknown namespace. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/containers/engine/engine_reply.h"

#define NAMESPACE_USES_MOST 256 /* beyond this number, a new namespace counts as "" */

struct node;
struct tenant;

struct namespace_use {
	char name[ENGINE_NAMESPACE_MAX];
	uint64_t charged_ns;
	double gib_seconds;
};

struct namespace_uses {
	unsigned count;
	uint64_t counted_ns; /* memory use is counted up to this time; 0: not counted yet */
	struct namespace_use list[NAMESPACE_USES_MOST];
};

int namespace_use_start(struct node *node, struct error *err);
void namespace_use_stop(struct node *node);
/* Adds the use since the last call. `has_worked` is false if no tenant can have used GPU time; then adds only memory use. */
void namespace_use_count(struct node *node, bool has_worked, uint64_t now_ns);
/* Call when a tenant ends: counts its GPU time since the last namespace_use_count(). */
void namespace_use_end(struct tenant *tenant);
