/*
 * Bindings that nobody ends: a pod whose bind-time is too old while it still waits for its shares gets
 * bind-phase failed and an event, and the node's lock is released, so that its scheduler and others go on. So is a
lock of a pod whose binding has ended: a daemon that died between the two writes has left it.
 * The main thread.
 */
#pragma once

#include "daemon/kubelet/kube/node_object.h"
#include "daemon/kubelet/kube/pods.h"

struct giving_up;

/* `node`, `object` and `pods` must stay valid. NULL: no memory. */
struct giving_up *giving_up_start(struct kube_client *client, const char *node,
				  const struct node_object *object, const struct node_pods *pods);
struct giving_up *giving_up_stop(struct giving_up *g); /* NULL is fine; returns NULL */
/* Looks at every pod: now and then, and when pods have changed. */
void giving_up_look(struct giving_up *g);
