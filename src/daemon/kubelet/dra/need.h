/*
 * Tells whether a claim (a container's right to GPUs) made for a ResourceClaim is still needed. Normally the kubelet unprepares
 * claims. If the kubelet has lost its records, the API server shows that the ResourceClaim is gone. Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claim.h"
#include "kube/client/kube_client.h"

struct dra_need;

/* `look_ns`: interval of calls of dra_need_of() for a claim; an answer is reused for four calls. NULL if out of memory. */
struct dra_need *dra_need_new(struct kube_client *client, uint64_t look_ns);
struct dra_need *dra_need_free(struct dra_need *need); /* NULL is allowed; returns NULL */

/*
 * The callback for claims_add_need_check(); `data` is the struct dra_need. Asks the API server in the background, and returns
 * CLAIM_UNKNOWN until the answer has come. Returns CLAIM_UNWANTED for a claim that was not made for a ResourceClaim.
 */
enum claim_need dra_need_of(void *data, const struct claim *claim);
