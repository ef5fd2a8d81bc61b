/* Converts an allocated ResourceClaim (Kubernetes) to a request for one of our claims (containers/claims). Main thread only. */
#pragma once

#include "daemon/containers/claims/claim.h"
#include "kube/dra/resource_claim.h"

/*
 * Makes one tenant's request for all devices of the ResourceClaim; amounts for the same GPU add up. *ret points to the caller's
 * `key`, `name` and `in_namespace`. `node_name` is the Node object's name. Returns -ENODEV if a GPU is missing or belongs to
 * another node; -EINVAL if the ResourceClaim has no device of this driver or too many, or its terms contradict each other.
 */
int dra_request_make(struct node *node, const char *node_name, const struct dra_claim *claim,
		     const char *key, const char *name, const char *in_namespace,
		     struct claim_request *ret, struct error *err);
