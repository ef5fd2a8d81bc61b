/* The pods of this node, kept up to date by a watch. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "kube/client/kube_client.h"
#include "kube/client/watch.h"
#include "kube/hami/pod.h"

struct node_pods;

/*
 * `changed` (may be NULL) is called when a pod was added, changed or removed. `trouble` is called like `failed` in struct
 * watch_handlers. Returns NULL if out of memory.
 */
struct node_pods *pods_start(struct kube_client *client, const char *node,
			     void (*changed)(void *data),
			     void (*trouble)(void *data, const struct error *err), void *data);
struct node_pods *pods_stop(struct node_pods *pods); /* NULL is allowed; returns NULL */

/* Returns all pods in no particular order; valid until the event loop's next iteration. */
const struct kube_pod *const *pods_all(const struct node_pods *pods, size_t *ret_count);
/* Find a pod by its uid, or by name for callers that do not know the uid. NULL if there is none. */
const struct kube_pod *pods_find(const struct node_pods *pods, const char *uid);
const struct kube_pod *pods_find_named(const struct node_pods *pods, const char *pod_namespace,
				       const char *name);
/* Remembers a container of a pod, also after the pod is gone. Free it with free(). */
struct pod_container {
	TAILQ_ENTRY(pod_container) link;
	size_t container; /* its index in the pod */
	char uid[];
};
TAILQ_HEAD(pod_container_list, pod_container);
/* NULL if out of memory */
struct pod_container *pod_container_new(const struct kube_pod *pod, size_t container);
bool pod_container_is(const struct pod_container *c, const struct kube_pod *pod, size_t container);

/* True once a complete list was received. Before that, pods may be missing. */
bool pods_are_known(const struct node_pods *pods);
