/*
 * Does the kube-scheduler beside us lead? Where each replica is a kube-scheduler with an allot-scheduler in one pod, the
 * kube-schedulers agree on a leader by a Lease of theirs, whose holder begins with the pod's hostname. This module
 * only reads it. Call it from the client's thread.
 */
#pragma once

#include <stdbool.h>

#include "kube/client/client.h"

struct kube_lease;

/* -ENOMEM. `client` must be there longer. */
int kube_lease_start(struct kube_client *client, const char *in_namespace, const char *name,
		     struct kube_lease **ret);
struct kube_lease *kube_lease_stop(struct kube_lease *lease); /* NULL is fine; returns NULL */

/* As far as is known: by the holder's name, however old. */
bool kube_lease_is_ours(const struct kube_lease *lease);
