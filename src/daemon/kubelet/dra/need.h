/*
 * Whether a claim that a ResourceClaim made is still needed. The kubelet unprepares each claim in the end, by books of its own;
 * where those were lost, the API server says that the claim is gone. Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claim.h"
#include "kube/client/client.h"

struct dra_need;

/* NULL: no memory. */
struct dra_need *dra_need_new(struct kube_client *client);
struct dra_need *dra_need_free(struct dra_need *need); /* NULL is fine; returns NULL */

/* As claims_keep; the data is the struct dra_need. Asks the server in the background: the next call knows. */
enum claim_need dra_need_of(void *data, const struct claim *claim);
