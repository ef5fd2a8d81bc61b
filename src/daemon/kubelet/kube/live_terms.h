/*
 * Applies pods' annotations that change the terms of running containers (kube/own/live.h). The key of a claim made for a pod's
 * container by name says to which pod it belongs. For a claim made by slices, the pod is known once the kubelet has listed
 * which container holds the claim. The priority comes from the container's limits (kube/hami/priority.h). A pod is read again
 * only if its annotations have changed. If a change cannot be made, the claim stays unchanged, the error is logged once, and
 * the change is retried every 30 s, since memory may become free. Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/kube/pods.h"
#include "kube/client/kube_client.h"
#include "kube/own/live.h"

struct node;
struct live_terms;

/*
 * Makes the struct live_terms, which does nothing before live_terms_apply(). All arguments must outlive it; `name` is the
 * node's. Returns NULL if out of memory.
 */
struct live_terms *live_terms_start(struct node *node, struct kube_client *client, const char *name,
				    const struct node_pods *pods);
struct live_terms *live_terms_stop(struct live_terms *live); /* NULL is fine; returns NULL */

/* To be called when pods have changed. With `again`, also retries changes that were refused. NULL is fine. */
void live_terms_apply(struct live_terms *live, bool again);

/*
 * Converts the annotations `said` to a wish for a claim with `device_count` devices. Returns -EINVAL if an annotation has
 * neither one value nor one for each device. Pure.
 */
int live_terms_wish(const struct kube_live *said, unsigned device_count, struct claim_wish *ret,
		    struct error *err);
