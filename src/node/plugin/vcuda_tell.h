/*
 * What a pod got in gpu-manager's vocabulary, written to its annotations, where gpu-manager's scheduler counts what is taken
 * of a node: tencent.com/predicate-gpu-idx-N, the cards' numbers, and gpu-assigned. In the background, once: who has what is
 * decided by claims, not by this. Main thread only.
 */
#ifndef ALLOT_NODE_PLUGIN_VCUDA_TELL_H
#define ALLOT_NODE_PLUGIN_VCUDA_TELL_H

#include "kube/client.h"
#include "kube/vcuda.h"
#include "node/claims/claims.h"

#define VCUDA_TELL_MAX 64 /* containers of a pod */

struct vcuda_telling {
	const struct kube_pod *pod;
	struct claim *const *claim; /* of each container, init containers aside; NULL: it has none */
	size_t count;
	bool is_assigned; /* every container has what it asks for */
};

/* The cards' numbers, as "0,1"; false: they do not fit. Pure. */
bool vcuda_tell_cards(const struct claim *claim, char *ret, size_t size);
void vcuda_tell(struct kube_client *client, const struct vcuda_telling *telling);

#endif
