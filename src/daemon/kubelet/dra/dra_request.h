/* Makes a claim request from an allocated ResourceClaim. Main thread only, since it reads the node's cards. */
#pragma once

#include "daemon/containers/claims/claim.h"
#include "kube/dra/resource_claim.h"

/*
 * Makes one tenant's request for all devices of the claim. If several requests of the ResourceClaim got the same GPU, their
 * amounts add up. *ret points to `key`, `name` and `in_namespace`, which the caller owns. `node_name` is this node's name in
 * Kubernetes. Returns -ENODEV if a GPU does not exist or belongs to another node. Returns -EINVAL if nothing of this driver is
 * allocated, or if terms of the claim contradict each other or the capacity.
 */
int dra_request_make(struct node *node, const char *node_name, const struct dra_claim *claim,
		     const char *key, const char *name, const char *in_namespace,
		     struct claim_request *ret, struct error *err);
