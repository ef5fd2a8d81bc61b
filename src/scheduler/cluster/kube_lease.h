/*
 * Finds out whether the kube-scheduler in this process's pod leads. The kube-schedulers elect their leader by a Lease, whose
 * holder begins with the hostname of the leader's pod. This module only reads that Lease. Call from the client's thread.
 */
#pragma once

#include <stdbool.h>

#include "kube/client/kube_client.h"

struct kube_lease;

/* Returns 0 or -ENOMEM. `client` must outlive the result. */
int kube_lease_start(struct kube_client *client, const char *in_namespace, const char *name,
		     struct kube_lease **ret);
/* `lease` may be NULL; returns NULL */
struct kube_lease *kube_lease_stop(struct kube_lease *lease);

/* Whether the Lease names the kube-scheduler in this pod as its holder, even if the Lease has expired. */
bool kube_lease_is_ours(const struct kube_lease *lease);
