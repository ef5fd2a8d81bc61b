/*
 * Keys of claims that were made for a pod's container by name:
 *
 *     pod/<UID>/<container>                what it gets stands in its pod's annotations (allocate_annotated.h)
 *     pod/<UID>/<container>/<device>       and it has that device by the kubelet's books (vcuda.h): who holds it is known
 *                                          there, whoever was thought to be meant when it was made
 *
 * Behind the name of an init container stands when it runs: daemon/state/pod_stage.h. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "daemon/state/pod_stage.h"
#include "daemon/state/tenant.h"
#include "kube/hami/pod.h"

struct pod_key {
	const char *uid, *container; /* within `text`: it is not to be copied */
	const char *device;          /* NULL: it names none */
	char text[TENANT_CLAIM_MAX];
};

/* False: it is another's key. */
bool pod_key_parse(const char *key, struct pod_key *ret);
/* Of a container by its place in pod->container. `device` may be NULL. -EINVAL: they are too long. */
int pod_key_make(const struct kube_pod *pod, size_t container, const char *device,
		 char ret_key[TENANT_CLAIM_MAX], struct error *err);
/* Is it that container's, of whatever device? */
bool pod_key_is_of(const char *key, const char *uid, const char *container);
