/*
 * The node's part of ending a binding in HAMi's protocol. When a container has got its shares, they are removed from the pod's
 * annotation to-allocate. When no shares are left there, the bind-phase becomes success; if shares could not be given, it becomes
 * failed. Then the node's lock is released, if the pod holds it. Each write applies to the object version that was read. A write
 * is retried after a conflict, or if the server is unreachable. Main thread only.
 */
#pragma once

#include "kube/client/kube_client.h"
#include "kube/hami/find_allocating.h"
#include "kube/hami/pod.h"

#define BINDING_TIMEOUT_S 60 /* total time for retries */

struct binding;

/* Called once when the writes have ended, unless binding_drop() comes first. err->code is 0 if everything was written. */
typedef void (*binding_done)(void *data, const struct error *err);

/*
 * Records that a container got its shares of `choice`. `done` gets -ESTALE if another pod has that name now, or if the pod's
 * to-allocate no longer has those shares. Returns NULL if out of memory. `node` must stay valid; everything else is copied.
 */
struct binding *binding_take(struct kube_client *client, const char *node,
			     const struct choice *choice, binding_done done, void *data);
/* Records that the pod cannot get its shares. */
struct binding *binding_fail(struct kube_client *client, const char *node,
			     const struct kube_pod *pod, binding_done done, void *data);
/* Releases the node's lock if the pod still holds it after the pod's binding has ended. */
struct binding *binding_unlock(struct kube_client *client, const char *node,
			       const struct kube_pod *pod, binding_done done, void *data);
struct binding *binding_drop(struct binding *binding); /* NULL is fine; returns NULL */
