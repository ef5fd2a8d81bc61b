/*
 * Why a pod with ResourceClaims (resource.k8s.io/v1) waits, or which GPUs it has by them: by the claims, the slices that nodes
 * have published, and what other claims have of these. Selectors are not evaluated. Pure but for memory.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* As the API server has it. NULL: it may not be read. */
struct explain_claims {
	json_t *claims; /* {name of the pod's entry: the claim, null: it is not there}; left out: may not be read */
	json_t *templates; /* {name: whether it is there} */
	json_t *classes;   /* {name: the DeviceClass, null: it is not there} */
	json_t *slices;    /* a ResourceSliceList, of the driver gpu.allot.dev */
	json_t *all;       /* a ResourceClaimList, of all namespaces */
	json_t *events;    /* an EventList, of the pod */
};

/* Does it ask by claims, of any driver? */
bool explain_has_claims(const json_t *pod);
/* The claim's name that an entry of spec.resourceClaims stands for; "": it is not made yet. */
const char *explain_claim_name(const json_t *pod, const json_t *entry);

/*
 * An explanation as explain_of_pod() makes it, with "claims", what the pod has by each, and "why", one sentence, where it
 * waits or its node can't start it. A new object; NULL: no memory.
 */
json_t *explain_of_claims(const json_t *pod, const struct explain_claims *known);
