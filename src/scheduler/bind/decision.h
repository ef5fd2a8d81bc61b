/* A decision: the node and the GPUs (cards) that a pod gets. Owns its data: no pointers into the model. */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kube/hami/shares.h"

/* A zeroed struct is an empty decision. */
struct decision {
	char *pod_namespace, *pod, *uid, *node;
	/* If count is 0, the pod needs no GPU, and is bound without a lock and without annotations. */
	struct kube_shares shares;
};

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

/* Returns 0, or -ENOMEM without writing *ret. */
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
