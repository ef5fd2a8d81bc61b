/* Asks the API server about a pod's claims, one object after the other. What may not be read is left out. One thread. */
#pragma once

#include "cli/explain/claims.h"
#include "kube/client/access.h"

/* `in`: the pod's namespace. */
void explain_claims_get(const struct kube_access *access, const char *in, const json_t *pod,
			struct explain_claims *ret);
void explain_claims_forget(struct explain_claims *known);
