/*
 * A decision: the node and the cards that a pod gets. bind.h carries decisions out. A decision owns all its data and has no
 * pointers into the model.
 */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kube/hami/shares.h"

/* Owns its strings. A zeroed structure is an empty decision. */
struct decision {
	char *pod_namespace, *pod, *uid, *node;
	/*
	 * Written to the to-allocate and allocated annotations. If count is 0, the pod needs no card and is only bound, without
	 * lock and annotations.
	 */
	struct kube_shares shares;
};

/* Frees the strings and leaves an empty decision. */
static inline void decision_free(struct decision *decision)
{
	free(decision->pod_namespace);
	free(decision->pod);
	free(decision->uid);
	free(decision->node);
	shares_free(&decision->shares);
	*decision = (struct decision){ 0 };
}
#define cleanup_decision cleanup(decision_free)

/* Copies a decision. Returns 0 or -ENOMEM; on -ENOMEM *ret is not written. */
static inline int decision_copy(const struct decision *from, struct decision *ret)
{
	size_t count = from->shares.count;
	struct decision to = { .pod_namespace = strdup(from->pod_namespace),
			       .pod = strdup(from->pod),
			       .uid = strdup(from->uid),
			       .node = strdup(from->node),
			       .shares = from->shares };
	to.shares.share = calloc(count + 1, sizeof(*to.shares.share));
	if (!to.pod_namespace || !to.pod || !to.uid || !to.node || !to.shares.share) {
		decision_free(&to);
		return -ENOMEM;
	}
	if (count)
		memcpy(to.shares.share, from->shares.share, count * sizeof(*to.shares.share));
	*ret = to;
	return 0;
}
