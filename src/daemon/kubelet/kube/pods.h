/*
 * The pods of this node, kept up to date by a watch. The main thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kube/client/client.h"
#include "kube/client/watch.h"
#include "kube/hami/pod.h"

struct node_pods;

/* `changed`: a pod came, changed or went; may be NULL. `trouble` as in watch.h. NULL: no memory. */
struct node_pods *pods_start(struct kube_client *client, const char *node,
			     void (*changed)(void *data),
			     void (*trouble)(void *data, const struct error *err), void *data);
struct node_pods *pods_stop(struct node_pods *pods); /* NULL is fine; returns NULL */

/* All of them, in no order; valid until the loop goes on. */
const struct kube_pod *const *pods_all(const struct node_pods *pods, size_t *ret_count);
/* NULL: there is none. */
const struct kube_pod *pods_find(const struct node_pods *pods, const char *uid);
/* By its name: of what has no uid. NULL: there is none. */
const struct kube_pod *pods_find_named(const struct node_pods *pods, const char *pod_namespace,
				       const char *name);
/* Has a list been complete since the start? Until then nothing is known. */
bool pods_are_known(const struct node_pods *pods);
