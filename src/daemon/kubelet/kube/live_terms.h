/*
 * Pods' annotations that change the terms of containers which run (kube/own/live.h), put into force: of claims that were made
 * for a pod's container by name, and of those by slices once the kubelet has told whose they are, with the priority that
 * these ask for in their limits (kube/hami/priority.h). What a pod says is looked at when it is another than before. What can't
 * be had changes nothing, is said once, and is tried again every 30 s, as memory may have been given back. The main thread.
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

/* All stay the caller's, and valid; `name`: the node's. NULL: no memory. */
struct live_terms *live_terms_start(struct node *node, struct kube_client *client, const char *name,
				    const struct node_pods *pods);
struct live_terms *live_terms_stop(struct live_terms *live); /* NULL is fine; returns NULL */

/* Pods have changed; again: what was refused is tried once more as well. NULL is fine. */
void live_terms_look(struct live_terms *live, bool again);

/* What is wished for of a claim with so many devices. -EINVAL: the number of values is not theirs. Pure. */
int live_terms_wish(const struct kube_live *said, unsigned device_count, struct claim_wish *ret,
		    struct error *err);
