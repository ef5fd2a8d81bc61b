/*
 * A node's lock (annotation hami.io/mutex.lock). Its value "<RFC 3339 time>,<namespace>,<pod>" names the pod that is being
 * bound; older schedulers write only the time. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* size of a Kubernetes name (at most 253 bytes), with its NUL */
#define KUBE_NAME_MAX 254
#define NODE_LOCK_MAX 560      /* size of the annotation's value, with its NUL */
#define NODE_LOCK_EXPIRY_S 300 /* an older lock does not count; HAMi's default */

struct node_lock {
	int64_t since_s;
	char pod_namespace[KUBE_NAME_MAX]; /* "" if the lock names no pod; `pod` likewise */
	char pod[KUBE_NAME_MAX];
};

/* On -EINVAL, the error names the invalid part. */
int node_lock_parse(const char *text, struct node_lock *ret, struct error *err);
void node_lock_format(const struct node_lock *lock, char text[NODE_LOCK_MAX]);

/* A lock whose time is in the future is not expired, because machines' clocks differ. */
bool node_lock_is_expired(const struct node_lock *lock, int64_t now_s, int64_t expiry_s);
bool node_lock_is_of(const struct node_lock *lock, const char *pod_namespace, const char *pod);
