/*
 * Explains why a pod with ResourceClaims (resource.k8s.io/v1) waits, or which GPUs it has through them. The explanation uses
 * the claims, the slices that nodes have published, and what other claims have of the slices' devices. Selectors are not
 * evaluated. Pure, except that it allocates memory.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Objects as the API server has them. NULL if the user may not read them. */
struct explain_claims {
	/* {name of an entry of spec.resourceClaims: the claim, or null}; lacks claims that the user may not read */
	json_t *claims;
	json_t *templates; /* {name: whether it exists} */
	json_t *classes;   /* {name: the DeviceClass, or null if there is none} */
	json_t *slices;    /* a ResourceSliceList of the driver gpu.allot.dev */
	json_t *all;       /* a ResourceClaimList of all namespaces */
	json_t *events;    /* an EventList of the pod */
};

/* Whether the pod has ResourceClaims, of any driver. */
bool explain_has_claims(const json_t *pod);
/* Returns the name of the claim for an entry of spec.resourceClaims; "" if the claim has not been created yet. */
const char *explain_claim_name(const json_t *pod, const json_t *entry);

/*
 * Makes an explanation as explain_of_pod() does, and adds "claims", which says what the pod has by each claim. If the pod waits,
 * or its node can't start it, also adds "why", one sentence. Returns a new object; NULL if out of memory.
 */
json_t *explain_of_claims(const json_t *pod, const struct explain_claims *known);
