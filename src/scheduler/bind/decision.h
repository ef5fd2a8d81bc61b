/*
 * Which cards of which node a pod is to have: what was decided, and is carried out by bind.h. Plain data of its own:
 * nothing of the model is pointed to.
 */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kube/hami/shares.h"

/* All texts are owned. Of zeros: there is none. */
struct decision {
	char *pod_namespace, *pod, *uid, *node;
	/*
	 * For to-allocate and allocated. Its count is 0 for a pod that asks for no card: such a one is only bound, without
	 * lock and annotations.
	 */
	struct kube_shares shares;
};

/* Leaves none. */
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

/* -ENOMEM: *ret is none. */
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
