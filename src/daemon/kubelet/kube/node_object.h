/*
 * This node's Node object (Kubernetes): watches it, writes the desired annotations and labels, and restores them if another
 * writer changes them. Also answers a scheduler's handshake, and reads the node's lock, both of which are annotations. Main
 * thread only.
 */
#pragma once

#include <stdbool.h>

#include "daemon/kubelet/kube/desired_metadata.h"
#include "kube/client/kube_client.h"
#include "kube/client/watch.h"
#include "kube/hami/node_lock.h"

struct node_object;

/*
 * Starts to watch. `name` must outlive the result; `trouble` is called like `failed` in struct watch_handlers. Returns NULL if
 * out of memory.
 */
struct node_object *node_object_start(struct kube_client *client, const char *name,
				      void (*trouble)(void *data, const struct error *err),
				      void *data);
/*
 * Starts to remove our annotations, so that no pod is placed here without a daemon. False if there is nothing to remove or no
 * call can be made. After true, node_object_has_withdrawn() tells when the API server has answered or could not be reached.
 */
bool node_object_withdraw(struct node_object *object);
bool node_object_has_withdrawn(const struct node_object *object);
/* NULL is allowed; returns NULL */
struct node_object *node_object_stop(struct node_object *object);

/* Sets the annotations and labels that the Node object must have. Takes the contents of *desired and empties it. */
void node_object_set_desired(struct node_object *object, struct desired_metadata *desired);

/* Returns the uid as last seen; NULL if the object was not seen. */
const char *node_object_uid(const struct node_object *object);

/* Reads the node's lock as last seen. Returns -ENOENT if there is none, -EINVAL if it is malformed. */
int node_object_lock(const struct node_object *object, struct node_lock *ret, struct error *err);
