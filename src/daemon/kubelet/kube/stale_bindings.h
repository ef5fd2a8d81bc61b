/*
 * A binding is a scheduler's assignment of GPU shares to a pod (binding.h), during which the pod holds the node's lock. Ends
 * bindings that are stuck, so that the scheduler can go on:
 *     - A pod still waits for its shares, although its bind-time is more than CHOICE_BIND_LIMIT_S ago. The pod gets
 *       bind-phase failed and an event, and the node's lock is released.
 *     - A pod's binding has ended, but the pod still holds the lock, because a daemon died before it released the lock.
 *       The lock is released.
 * Main thread only.
 */
#pragma once

#include "daemon/kubelet/kube/node_object.h"
#include "daemon/kubelet/kube/pods.h"

struct stale_bindings;

/* `node`, `object` and `pods` must stay valid. Returns NULL if out of memory. */
struct stale_bindings *stale_bindings_start(struct kube_client *client, const char *node,
					    const struct node_object *object,
					    const struct node_pods *pods);
/* NULL is allowed; returns NULL */
struct stale_bindings *stale_bindings_stop(struct stale_bindings *g);
/* Checks every pod. Call when pods have changed, and periodically. */
void stale_bindings_check(struct stale_bindings *g);
