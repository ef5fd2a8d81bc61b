/*
 * This node's Node object: watched; what is wanted on it is put there, and back when somebody changes it; a
 * scheduler's handshake is answered; its lock and cordon are known. The main thread.
 */
#pragma once

#include <stdbool.h>

#include "daemon/kubelet/kube/wanted.h"
#include "kube/client/client.h"
#include "kube/client/watch.h"
#include "kube/hami/node_lock.h"

struct node_object;

/* `name`: of the node, and valid as long as this. `trouble` as in watch.h. NULL: no memory. */
struct node_object *node_object_start(struct kube_client *client, const char *name,
				      void (*trouble)(void *data, const struct error *err),
				      void *data);
/*
 * Takes back what was published, so that no pod is placed here while no daemon is. false: there is nothing to take back. It has
 * withdrawn once the API server has answered, or could not be asked.
 */
bool node_object_withdraw(struct node_object *object);
bool node_object_has_withdrawn(const struct node_object *object);
struct node_object *node_object_stop(struct node_object *object); /* NULL is fine; returns NULL */

/* What is to stand there from now on; its contents are taken over, and *wanted is empty then. */
void node_object_want(struct node_object *object, struct wanted *wanted);

/* Of the Node object as last seen; NULL: there is none, as far as is known. */
const char *node_object_uid(const struct node_object *object);

/* The node's lock as it was last seen. -ENOENT: there is none; -EINVAL: it is broken. */
int node_object_lock(const struct node_object *object, struct node_lock *ret, struct error *err);
