/*
 * Which pod, and which container of it, a kubelet's Allocate is for. The call names only device ids, of
 * which the kubelet picks any; what is to be given is in the annotations of the pod that the scheduler is
 * binding to this node. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/node_lock.h"
#include "kube/hami/pod.h"
#include "kube/hami/shares.h"

/* A binding that began longer ago was given up by its scheduler. */
#define CHOICE_BIND_LIMIT_S 300

struct choice_question {
	const char *node;                  /* this one's name */
	const struct kube_pod *const *pod; /* of this node, in any order */
	size_t pod_count;
	const struct node_lock *lock; /* NULL: the node is not locked */
	int64_t now_s;
	int64_t lock_expiry_s, bind_limit_s; /* 0: as the protocol has them */
	const char *const *id;               /* that the kubelet picked: "<UUID>-<n>" */
	size_t id_count;
	/* Has the container got its shares, though `pod` still shows them as open? NULL: none has. */
	bool (*is_given)(void *data, const struct kube_pod *pod, size_t container);
	void *data; /* for is_given() */
};

struct choice {
	const struct kube_pod *pod;     /* one of the question's */
	size_t container;               /* its place in pod->container, and in the shares */
	const struct kube_share *share; /* what it is given: within `shares` */
	size_t share_count;
	/* Do the ids lie on just the cards that the scheduler chose? The kubelet is free not to. */
	bool cards_agree;
	struct kube_shares shares; /* all that is to be allocated to the pod; by shares_free() */
};

/* Is the pod bound to the node, or being bound, and has the kubelet yet to ask for shares of it? */
bool choice_is_open(const struct kube_pod *pod, const char *node, int64_t now_s);

/*
 * The pod that holds the node's lock; without one, the only pod that is being bound here. The container is
 * the first that has shares still: the kubelet calls in that order.
 * A watch may be behind, so the next look may tell otherwise after
 * -EAGAIN: no pod is known to wait, or its next container was given its shares;
 * -EBUSY: several pods wait and no lock says which, or the lock's pod ends;
 * -ETIMEDOUT: the binding began too long ago.
 * -EINVAL: annotation and call disagree, or the annotation is broken; -ENOMEM. Each with both sides in the error.
 */
int choice_make(const struct choice_question *question, struct choice *ret, struct error *err);
