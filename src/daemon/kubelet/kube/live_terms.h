/*
 * Live terms: pods' annotations that change what running containers may use (kube/own/live.h), and the priority in a
 * container's limits (kube/hami/priority.h). Applies them to the containers' claims. The pod is known from the claim's key if
 * that names the container, or else from the kubelet's list of holders. Pods are read again when their annotations change. A
 * change that fails leaves the claim unchanged, is logged once, and is retried every 30 s, since memory may become free. Main
 * thread only.
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

/* The arguments must outlive the result; `name` is the node's name. Returns NULL if out of memory. */
struct live_terms *live_terms_start(struct node *node, struct kube_client *client, const char *name,
				    const struct node_pods *pods);
struct live_terms *live_terms_stop(struct live_terms *live); /* NULL is allowed; returns NULL */

/* Call when pods have changed. `again` also retries refused changes. NULL is allowed. */
void live_terms_apply(struct live_terms *live, bool again);

/* -EINVAL if an annotation has neither one value nor one for each of the claim's `device_count` devices. Pure. */
int live_terms_to_override(const struct kube_live *terms, unsigned device_count,
			   struct claim_override *ret, struct error *err);
