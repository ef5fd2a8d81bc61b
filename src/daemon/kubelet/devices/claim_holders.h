/*
 * Which container holds each claim that was made by slices. Allocate names no pod, but the kubelet's list of pod resources
 * does (pod_resources.h). A holder is recorded only if its slices are exactly the claim's (reconcile.h), and forgotten when
 * an answer of the kubelet no longer names it. Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/pod_resources.h"

struct claim_holders;

struct claim_holder {
	const char *pod_namespace, *pod, *container;
};

struct claim_holders *claim_holders_new(void);
/* NULL is allowed; returns NULL */
struct claim_holders *claim_holders_free(struct claim_holders *holders);

/*
 * Records the holder from the kubelet's answer number `answer`. If out of memory, the holder stays unknown until the next
 * answer.
 */
void claim_holders_note(struct claim_holders *holders, const struct claim *claim,
			const struct pod_holder *holder, uint64_t answer);
/* Forgets the holders that answer number `answer` did not name. Call after claim_holders_note() for all others. */
void claim_holders_end(struct claim_holders *holders, uint64_t answer);

/*
 * Returns false if the claim has no known holder or `holders` is NULL. Texts in *ret are valid until the loop's next turn.
 */
bool claim_holders_find(const struct claim_holders *holders, const struct claim *claim,
			struct claim_holder *ret);
