/*
 * Ends bindings that are stuck, so that the scheduler can go on. Two cases:
 *   - A pod's bind-time is too old and it still waits for its shares: it gets bind-phase failed and an event, and the node's
 *     lock is released.
 *   - The node's lock belongs to a pod whose binding has ended, because a daemon died between the two writes: it is released.
 * The main thread.
 */
#pragma once

#include "daemon/kubelet/kube/node_object.h"
#include "daemon/kubelet/kube/pods.h"

struct stale_bindings;

/* `node`, `object` and `pods` must stay valid. NULL: out of memory. */
struct stale_bindings *stale_bindings_start(struct kube_client *client, const char *node,
					    const struct node_object *object,
					    const struct node_pods *pods);
struct stale_bindings *stale_bindings_stop(struct stale_bindings *g); /* NULL is fine; returns NULL */
/* Checks every pod. To be called when pods have changed, and now and then. */
void stale_bindings_check(struct stale_bindings *g);
