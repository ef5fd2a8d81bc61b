/*
 * Reads a pod's claims from the API server, one object after the other. Objects that the user may not read are left out.
 * Not thread safe.
 */
#pragma once

#include "cli/explain/explain_claims.h"
#include "kube/client/api_access.h"

/*
 * Reads the members of *ret for this pod; `slices` and `all` only if the pod has no node yet. `in` is the pod's namespace. Free
 * *ret with explain_claims_free().
 */
void explain_claims_fetch(const struct kube_access *access, const char *in, const json_t *pod,
			  struct explain_claims *ret);
void explain_claims_free(struct explain_claims *known);
