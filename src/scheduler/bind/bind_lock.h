/*
 * May a pod take a node's lock (annotation hami.io/mutex.lock, kube/hami/node_lock.h)? A lock is free, the pod's own
 * already, of another pod that is being bound, or left behind. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/hami/node_lock.h"
#include "kube/hami/pod.h"

/*
 * A lock over several looks. How long it has stood unchanged by our own clock bounds what the time in it says: a
 * lock of a clock that goes wrong, or one that nobody can read, ends as well.
 */
struct lock_sight {
	char text[NODE_LOCK_MAX]; /* "": there was none */
	uint64_t since_ns;        /* when this text was seen first */
};

struct lock_question {
	const char *text;                /* the annotation; NULL: there is none */
	const char *pod_namespace, *pod; /* that wants the lock */
	int64_t now_s, expiry_s;         /* seconds since 1970; seconds */
	uint64_t now_ns;                 /* of the monotonic clock */
};

enum lock_verdict {
	LOCK_FREE,
	LOCK_OWN,     /* the pod has it: of a try before this one */
	LOCK_EXPIRED, /* may be taken */
	LOCK_HELD,    /* unless its pod needs it no more: lock_is_left() */
};

/* *ret: the lock; nobody is named where it is free, broken, or only a time. */
enum lock_verdict lock_judge(struct lock_sight *sight, const struct lock_question *question,
			     struct node_lock *ret);

/*
 * Does the pod that the lock names need it no more? `holder`: as it is now; NULL: there is no such pod. Whoever has
 * just ended a binding may be about to release the lock: for LOCK_GRACE_NS that is left to it.
 */
#define LOCK_GRACE_NS UINT64_C(2000000000)
bool lock_is_left(const struct kube_pod *holder, const char *node, uint64_t unchanged_ns);
