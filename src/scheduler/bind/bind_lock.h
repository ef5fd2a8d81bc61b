/* Decides whether a pod may take a node's lock (annotation hami.io/mutex.lock, kube/hami/node_lock.h). No I/O, no clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/hami/node_lock.h"
#include "kube/hami/pod.h"

/* A lock whose text is unchanged for too long by our own clock expires, even if the time in the text is wrong. */
struct lock_observation {
	char text[NODE_LOCK_MAX];
	uint64_t since_ns;
};

struct lock_query {
	const char *text;                /* the annotation; NULL if missing */
	const char *pod_namespace, *pod; /* the pod that wants the lock */
	int64_t now_s, expiry_s; /* now_s: seconds since 1970; expiry_s: lifetime of a lock */
	uint64_t now_ns;         /* of the monotonic clock */
};

enum lock_state {
	LOCK_FREE,
	LOCK_OWN,     /* the pod holds the lock from an earlier attempt */
	LOCK_EXPIRED, /* may be taken */
	LOCK_HELD,    /* another pod has the lock; may be taken only if lock_is_abandoned() */
};

/* Updates *observed_lock. *ret is the parsed lock; it names no pod if the lock is free, malformed, or only a time. */
enum lock_state lock_check(struct lock_observation *observed_lock, const struct lock_query *query,
			   struct node_lock *ret);

/*
 * Whether `holder`, the pod that holds the lock (NULL if gone), no longer needs it. If the holder runs or its binding has
 * ended, its device plugin or scheduler may still release the lock: then false until the lock is unchanged for LOCK_GRACE_NS.
 */
#define LOCK_GRACE_NS UINT64_C(2000000000)
bool lock_is_abandoned(const struct kube_pod *holder, const char *node, uint64_t unchanged_ns);
