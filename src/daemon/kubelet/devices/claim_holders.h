/*
 * Which container holds each claim that was made by slices. An Allocate call does not name a pod, but the kubelet's list of pod
 * resources does (pod_resources.h). A holder is recorded only if its slices are exactly the claim's (reconcile.h), and kept
 * until an answer of the kubelet no longer names it. Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/pod_resources.h"

struct claim_holders;

/* A container, named by namespace, pod and container. */
struct claim_holder {
	const char *pod_namespace, *pod, *container;
};

/* Returns NULL if out of memory. */
struct claim_holders *claim_holders_new(void);
struct claim_holders *claim_holders_free(struct claim_holders *holders); /* NULL is fine; returns NULL */

/*
 * Records the holder of the claim, as found in the kubelet's answer number `answer`. If out of memory, the claim has no known
 * holder until the next answer.
 */
void claim_holders_note(struct claim_holders *holders, const struct claim *claim,
			const struct pod_holder *holder, uint64_t answer);
/*
 * Forgets the holders that the kubelet's answer number `answer` did not name. To be called after claim_holders_note() for all
 * holders in that answer.
 */
void claim_holders_end(struct claim_holders *holders, uint64_t answer);

/*
 * Finds the holder of the claim. Returns false if the holder is unknown, the claim has none, or `holders` is NULL. The texts in
 * *ret stay valid until the next turn of the loop.
 */
bool claim_holders_find(const struct claim_holders *holders, const struct claim *claim,
			struct claim_holder *ret);
