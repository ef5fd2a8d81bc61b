/*
 * The holder of a claim is the container that uses it. Records the holders of claims made from slices (slices.h). The kubelet's
 * Allocate call does not name the container, but the kubelet's list of pod resources does (pod_resources.h). A holder is
 * recorded only if its slices are exactly the claim's, and forgotten when a later list does not name it. Main thread only.
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
 * Records the claim's holder. `answer` is the number of the kubelet's list that names the holder. If out of memory, the holder
 * stays unknown until the next list.
 */
void claim_holders_note(struct claim_holders *holders, const struct claim *claim,
			const struct pod_holder *holder, uint64_t answer);
/* Forgets the holders that list number `answer` did not name. First call claim_holders_note() for each holder in that list. */
void claim_holders_end(struct claim_holders *holders, uint64_t answer);

/*
 * Returns false if the claim has no known holder or `holders` is NULL. Texts in *ret are valid until the event loop's next
 * iteration.
 */
bool claim_holders_find(const struct claim_holders *holders, const struct claim *claim,
			struct claim_holder *ret);
