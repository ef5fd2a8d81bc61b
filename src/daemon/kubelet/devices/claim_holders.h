/*
 * Whose the claims are that were made by slices: the ids that the kubelet gives say nothing of a pod, but its books do
 * (pod_resources.h). What it said last of each claim is kept, as far as it named just the claim's slices (reconcile.h).
 * Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/pod_resources.h"

struct claim_holders;

/* A container, by names. */
struct claim_holder {
	const char *pod_namespace, *pod, *container;
};

/* NULL: no memory. */
struct claim_holders *claim_holders_new(void);
struct claim_holders *claim_holders_free(struct claim_holders *holders); /* NULL is fine; returns NULL */

/* By that answer of the kubelet. Without memory it is not noted: by the next answer, then. */
void claim_holders_note(struct claim_holders *holders, const struct claim *claim,
			const struct pod_holder *holder, uint64_t answer);
/* That answer was gone through: who was not in it holds nothing. */
void claim_holders_end(struct claim_holders *holders, uint64_t answer);

/* False: it is not known, or nobody has it. The texts are good until the loop goes on. NULL holders know nobody. */
bool claim_holders_find(const struct claim_holders *holders, const struct claim *claim,
			struct claim_holder *ret);
