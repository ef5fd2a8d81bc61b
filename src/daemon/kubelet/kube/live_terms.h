/*
 * Applies pods' annotations that change the terms of running containers (kube/own/live.h). A claim that was made for a pod's
 * container by name is known at once; a claim by slices, once the kubelet has told which container holds it. The priority comes
 * from the container's limits (kube/hami/priority.h). A pod is read again only when its annotations have changed. A change that
 * cannot be made leaves the claim as it is, is logged once, and is tried again every 30 s, since memory may have become free.
 * The main thread.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/kube/pods.h"
#include "kube/client/client.h"
#include "kube/own/live.h"

struct node;
struct live_terms;

/* All arguments must outlive it; `name` is the node's. NULL: out of memory. */
struct live_terms *live_terms_start(struct node *node, struct kube_client *client, const char *name,
				    const struct node_pods *pods);
struct live_terms *live_terms_stop(struct live_terms *live); /* NULL is fine; returns NULL */

/* To be called when pods have changed. `again`: also tries once more what was refused. NULL is fine. */
void live_terms_apply(struct live_terms *live, bool again);

/* The terms wanted of a claim with `device_count` devices. -EINVAL: the annotation has another number of values. Pure. */
int live_terms_wish(const struct kube_live *said, unsigned device_count, struct claim_wish *ret,
		    struct error *err);
