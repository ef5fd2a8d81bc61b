/*
 * A binding in HAMi's protocol: the scheduler writes a pod's shares of GPUs into the annotation to-allocate and locks the node;
 * the node's daemon then ends the binding. When a container got its shares, they are removed from to-allocate. When to-allocate
 * has no shares any more, the annotation bind-phase becomes success (or failed if shares could not be given), and the node's
 * lock is released if the pod holds it. Writes apply only to the version that was read, and are retried after a conflict or a
 * lost answer. Main thread only.
 */
#pragma once

#include "kube/client/kube_client.h"
#include "kube/hami/find_allocating.h"
#include "kube/hami/pod.h"

#define BINDING_TIMEOUT_S 60 /* total time for retries; then binding_done gets the last error */

struct binding;

/* A callback: called once at the end of the binding, unless binding_drop() came first. err->code is 0 if all is written. */
typedef void (*binding_done)(void *data, const struct error *err);

/*
 * The container got the shares in `choice`: removes them from the pod's annotation `to-allocate`. `done` gets -ESTALE if
 * another pod now has the pod's name, or if the annotation does not hold exactly those shares. Returns NULL if out of memory.
 * `node` must stay valid; the rest is copied.
 */
struct binding *binding_take(struct kube_client *client, const char *node,
			     const struct choice *choice, binding_done done, void *data);
/* Records that the pod cannot get its shares. */
struct binding *binding_fail(struct kube_client *client, const char *node,
			     const struct kube_pod *pod, binding_done done, void *data);
/* Releases the node's lock if the pod still holds it after its binding. */
struct binding *binding_unlock(struct kube_client *client, const char *node,
			       const struct kube_pod *pod, binding_done done, void *data);
struct binding *binding_drop(struct binding *binding); /* NULL is allowed; returns NULL */
