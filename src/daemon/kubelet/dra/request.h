/* From an allocated ResourceClaim to what is asked of the claims store. Main thread only: it looks at the node's cards. */
#pragma once

#include "daemon/containers/claims/claim.h"
#include "kube/dra/claim.h"

/*
 * All devices of the claim as one tenant; two requests that got one GPU have the sum of both there. *ret refers to `key`,
 * `name`, and the namespace, which stay the caller's. `node_name`: Kubernetes'. -ENODEV: a GPU that is not there, or another
 * node's; -EINVAL: nothing of this driver's is allocated, terms of its requests contradict each other or their capacity.
 */
int dra_request_make(struct node *node, const char *node_name, const struct dra_claim *claim,
		     const char *key, const char *name, const char *in_namespace,
		     struct claim_request *ret, struct error *err);
