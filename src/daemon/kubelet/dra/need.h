/*
 * Says whether a claim that was made for a ResourceClaim is still needed. Normally the kubelet unprepares each claim, from its
 * own records. If the kubelet has lost its records, we learn from the API server that the ResourceClaim is gone. Main thread
 * only.
 */
#pragma once

#include "daemon/containers/claims/claim.h"
#include "kube/client/kube_client.h"

struct dra_need;

/*
 * Makes the struct dra_need. `look_ns`: how often dra_need_of() is called for a claim; an answer is used for four calls.
 * Returns NULL if out of memory.
 */
struct dra_need *dra_need_new(struct kube_client *client, uint64_t look_ns);
struct dra_need *dra_need_free(struct dra_need *need); /* NULL is fine; returns NULL */

/*
 * A callback for claims_add_keep(); `data` is the struct dra_need. Asks the API server in the background: until it answers, the
 * result is CLAIM_UNKNOWN, and a later call returns the answer.
 */
enum claim_need dra_need_of(void *data, const struct claim *claim);
