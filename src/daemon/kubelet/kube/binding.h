/*
 * The node's end of a binding: what a container got is taken off its pod's to-allocate; with the last of it
 * the bind-phase becomes success, or failed when something could not be given; then the node's lock is
 * released, if the pod holds it. Each write is for the object as it was read, and is tried again where
 * somebody was faster or the server is away. The main thread.
 */
#pragma once

#include "kube/client/client.h"
#include "kube/hami/choice.h"
#include "kube/hami/pod.h"

#define BINDING_TIMEOUT_S 60 /* of trying, in all */

struct binding;

/* err->code is 0 when everything is written. Called once, unless the binding is dropped before. */
typedef void (*binding_done)(void *data, const struct error *err);

/*
 * A container has what `choice` says. -ESTALE, to `done`: the pod is another one now, or its to-allocate no
 * longer has those shares. NULL: no memory. `node` must stay valid; of the rest copies are made.
 */
struct binding *binding_take(struct kube_client *client, const char *node,
			     const struct choice *choice, binding_done done, void *data);
/* The pod can't have what it was to get. */
struct binding *binding_fail(struct kube_client *client, const char *node,
			     const struct kube_pod *pod, binding_done done, void *data);
/* The pod's binding has ended, and its lock was left: only that is released, if it is the pod's. */
struct binding *binding_unlock(struct kube_client *client, const char *node,
			       const struct kube_pod *pod, binding_done done, void *data);
struct binding *binding_drop(struct binding *binding); /* NULL is fine; returns NULL */
