/*
 * A node's lock (annotation hami.io/mutex.lock): "<RFC 3339 time>,<namespace>,<pod>" names the pod that is
 * being bound to the node; older schedulers write the time alone. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A name in Kubernetes has 253 bytes at most. */
#define KUBE_NAME_MAX 254
#define NODE_LOCK_MAX 560      /* bytes of the annotation's value */
#define NODE_LOCK_EXPIRY_S 300 /* as HAMi has it where nobody says otherwise */

struct node_lock {
	int64_t since_s;
	char pod_namespace[KUBE_NAME_MAX]; /* "", and pod too: nobody is named */
	char pod[KUBE_NAME_MAX];
};

/* -EINVAL with the part that is wrong. */
int node_lock_parse(const char *text, struct node_lock *ret, struct error *err);
void node_lock_format(const struct node_lock *lock, char text[NODE_LOCK_MAX]);

/* A lock of the future (clocks differ between machines) has not expired. */
bool node_lock_is_expired(const struct node_lock *lock, int64_t now_s, int64_t expiry_s);
bool node_lock_is_of(const struct node_lock *lock, const char *pod_namespace, const char *pod);
