/*
 * Decides whether a pod may take a node's lock (annotation hami.io/mutex.lock, kube/hami/node_lock.h). The lock is free, held by
 * this pod already, held by another pod that is being bound, or abandoned. Pure; thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/hami/node_lock.h"
#include "kube/hami/pod.h"

/*
 * Tracks a lock over several reads. A lock that stays unchanged for too long by our own clock expires, whatever time the lock
 * text names. So a lock with a wrong time or a malformed text expires as well.
 */
struct lock_sight {
	char text[NODE_LOCK_MAX]; /* "" if there was no lock */
	uint64_t since_ns;        /* when this text was first seen */
};

struct lock_question {
	const char *text;                /* the annotation; NULL if missing */
	const char *pod_namespace, *pod; /* the pod that wants the lock */
	int64_t now_s, expiry_s; /* now_s: seconds since 1970; expiry_s: lifetime of a lock */
	uint64_t now_ns;         /* of the monotonic clock */
};

enum lock_verdict {
	LOCK_FREE,
	LOCK_OWN,     /* the pod holds the lock from an earlier attempt */
	LOCK_EXPIRED, /* may be taken */
	LOCK_HELD,    /* held by another pod; may be taken only if lock_is_left() */
};

/* Judges a lock and writes it to *ret. *ret names no pod if the lock is free or malformed, or holds only a time. */
enum lock_verdict lock_judge(struct lock_sight *sight, const struct lock_question *question,
			     struct node_lock *ret);

/*
 * Returns true if the pod named by the lock no longer needs the lock. `holder` is that pod's current state; NULL if the pod does
 * not exist. A process that has just ended a binding may still release the lock itself. So after a binding that ended
 * the answer stays false until the lock has been unchanged for LOCK_GRACE_NS. Does not block.
 */
#define LOCK_GRACE_NS UINT64_C(2000000000)
bool lock_is_left(const struct kube_pod *holder, const char *node, uint64_t unchanged_ns);
