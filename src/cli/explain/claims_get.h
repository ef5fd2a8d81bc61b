/* Reads a pod's claims from the API server. Leaves out objects that the user may not read. Not thread safe. */
#pragma once

#include "cli/explain/explain_claims.h"
#include "kube/client/api_access.h"

/* Returns the list of the pod's events, which the caller frees; NULL if the user may not read them. `in`: its namespace. */
json_t *explain_events_fetch(const struct kube_access *access, const char *in, const char *pod);

/* `in` is the pod's namespace. Reads `slices` and `all` only if the pod has no node. Free *ret with explain_claims_free(). */
void explain_claims_fetch(const struct kube_access *access, const char *in, const json_t *pod,
			  struct explain_claims *ret);
void explain_claims_free(struct explain_claims *known);
