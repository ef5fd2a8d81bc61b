/*
 * A claim is one container's right to shares of cards; a key identifies it. These keys belong to claims made for a container
 * that is known by name:
 *
 *     pod/<UID>/<container>                the pod's annotations say what the container gets (allocate_annotated.h)
 *     pod/<UID>/<container>/<device>       the kubelet named <device> in Allocate (allocate_vcuda.h). The container is a guess:
 *                                          the kubelet's list of pod resources may later name another holder of the device.
 *
 * In the key of an init container, "@" and the container's place in the pod follow the name, then "+" if it is a sidecar
 * (daemon/state/pod_stage.h). Pure; thread safe.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "daemon/state/pod_stage.h"
#include "daemon/state/tenant.h"
#include "kube/hami/pod.h"

struct pod_key {
	const char *uid, *container; /* point into `text`, so do not copy the struct */
	const char *device;          /* NULL: the key names no device */
	char text[TENANT_CLAIM_MAX];
};

/* Returns false if the key is of another kind. */
bool pod_key_parse(const char *key, struct pod_key *ret);
/* Makes the key of pod->container[container]. `device` may be NULL. Returns -EINVAL if the names are too long. */
int pod_key_make(const struct kube_pod *pod, size_t container, const char *device,
		 char ret_key[TENANT_CLAIM_MAX], struct error *err);
/* Returns true if the key names the container, with or without a device. */
bool pod_key_is_of(const char *key, const char *uid, const char *container);
