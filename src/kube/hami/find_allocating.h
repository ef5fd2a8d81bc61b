/*
 * Finds the pod and container for which the kubelet calls Allocate. The call has only device ids, which the kubelet picks
 * freely. The container's shares are in the annotations of the pod that the scheduler is binding to this node. Pure; thread
 * safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/node_lock.h"
#include "kube/hami/pod.h"
#include "kube/hami/shares.h"

/* The scheduler has given up a binding that is older than this. */
#define CHOICE_BIND_LIMIT_S 300

struct choice_query {
	const char *node;
	const struct kube_pod *const *pod; /* the node's pods, in any order */
	size_t pod_count;
	const struct node_lock *lock; /* NULL if the node is not locked */
	int64_t now_s;
	/* ages beyond which a lock or a binding does not count; 0 means NODE_LOCK_EXPIRY_S or CHOICE_BIND_LIMIT_S */
	int64_t lock_expiry_s, bind_limit_s;
	const char *const *id; /* picked by the kubelet: "<UUID>-<n>" */
	size_t id_count;
	/* whether the container already has its shares, although `pod` still lists them as open; NULL: never true */
	bool (*has_shares)(void *data, const struct kube_pod *pod, size_t container);
	void *data;
};

struct choice {
	const struct kube_pod *pod;
	size_t container;               /* index in pod->container, and in the shares */
	const struct kube_share *share; /* the container's shares: points into `shares` */
	size_t share_count;
	/* the ids that the kubelet picked belong to the same GPUs as the shares */
	bool cards_agree;
	/* all shares still to be allocated to the pod; free with shares_free() */
	struct kube_shares shares;
};

/*
 * Whether the pod is being bound to the node and has shares that the kubelet has not asked for yet. False if the binding began
 * more than CHOICE_BIND_LIMIT_S ago, or its time is invalid. Some schedulers write no time; then there is no time limit.
 */
bool choice_is_open(const struct kube_pod *pod, const char *node, int64_t now_s);

/*
 * Chooses the pod that holds the node's lock or, if no valid lock names a pod, the only pod that is being bound to this node.
 * The container is the first in the pod that has shares to be allocated (KUBE_POD_TO_ALLOCATE), because the kubelet calls for
 * the containers in their order.
 *
 * After these errors a later try may succeed, because the watch of pods may be late:
 *
 *   -EAGAIN     no pod is known to wait, the lock's pod is not known or not allocating, or no share is open. Or the pod's
 *               annotation is out of date: the first open shares in it belong to a container that already has them (has_shares)
 *   -EBUSY      several pods wait and no lock names one, or the lock's pod has ended or is ending
 *   -ETIMEDOUT  the binding began too long ago
 *
 * Other errors: -EINVAL if the annotation is invalid or contradicts the call, or if the lock's pod is on another node; and
 * -ENOMEM.
 */
int choice_make(const struct choice_query *query, struct choice *ret, struct error *err);
