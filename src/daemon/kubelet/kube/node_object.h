/*
 * Watches this node's Node object, writes the wanted annotations and labels to it, and restores them if others change them.
 * Answers a scheduler's handshake, and knows the node's lock. Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "daemon/kubelet/kube/wanted.h"
#include "kube/client/kube_client.h"
#include "kube/client/watch.h"
#include "kube/hami/node_lock.h"

struct node_object;

/*
 * Starts to watch the Node object of the node `name`, which must outlive the result. `trouble` is as in watch.h. Returns NULL
 * if out of memory.
 */
struct node_object *node_object_start(struct kube_client *client, const char *name,
				      void (*trouble)(void *data, const struct error *err),
				      void *data);
/*
 * node_object_withdraw() starts to remove the annotations that we published, so that no pod is placed here while no daemon
 * runs. It returns false if there is nothing to remove or no call can be made. After true, node_object_has_withdrawn() is true
 * once the API server has answered or could not be reached.
 */
bool node_object_withdraw(struct node_object *object);
bool node_object_has_withdrawn(const struct node_object *object);
struct node_object *node_object_stop(struct node_object *object); /* NULL is fine; returns NULL */

/*
 * Sets the annotations and labels that the Node object is to have from now on. Takes over the contents of *wanted, and leaves
 * it empty.
 */
void node_object_want(struct node_object *object, struct wanted *wanted);

/* Returns the uid of the Node object as last seen; NULL if none was seen. */
const char *node_object_uid(const struct node_object *object);

/* Reads the node's lock as last seen. Returns -ENOENT if there is none; -EINVAL if it is malformed. */
int node_object_lock(const struct node_object *object, struct node_lock *ret, struct error *err);
