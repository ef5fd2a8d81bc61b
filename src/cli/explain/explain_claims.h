/*
 * Explains why a pod with ResourceClaims (resource.k8s.io/v1) waits, or which GPUs its claims gave it: from the claims, the
 * nodes' ResourceSlices, and what other pods' claims use. Does not evaluate selectors. Pure, but allocates memory.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Objects of the API server, without those that the user may not read. `slices`, `all` and `events` may be NULL. */
struct explain_claims {
	/* {name of an entry of spec.resourceClaims: its claim, or null if there is none} */
	json_t *claims;
	json_t *templates; /* {name: whether this ResourceClaimTemplate exists} */
	json_t *classes;   /* {name: the DeviceClass, or null if there is none} */
	json_t *slices;    /* a ResourceSliceList of the driver gpu.allot.dev */
	json_t *all;       /* a ResourceClaimList of all namespaces */
	json_t *events;    /* an EventList of the pod */
};

/* Whether the pod has ResourceClaims, of any driver. */
bool explain_has_claims(const json_t *pod);
/* Returns the name of the claim for an entry of spec.resourceClaims; "" if the claim is not created yet. */
const char *explain_claim_name(const json_t *pod, const json_t *entry);

/*
 * Makes an explanation like explain_of_pod(), with the member "claims": what each claim gave the pod. If the pod waits or its
 * node cannot start it, the member "why" gives the reason. Returns a new object; NULL if out of memory.
 */
json_t *explain_of_claims(const json_t *pod, const struct explain_claims *known);
