/*
 * The parts of a Pod object that allot uses: names, containers in the order of their shares, and the annotations of HAMi's
 * protocol. pod_read() does not parse annotations, so an invalid annotation affects only its own pod. A pod does not change
 * after reading. Thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum pod_phase { POD_PENDING, POD_RUNNING, POD_ENDED /* succeeded or failed */, POD_UNKNOWN };

enum bind_phase { BIND_NONE, BIND_ALLOCATING, BIND_SUCCESS, BIND_FAILED, BIND_OTHER };

struct kube_pod {
	/* Strings of `object`, which the pod owns. */
	const char *uid, *name, *pod_namespace, *version;
	const char *node;                    /* spec.nodeName; "" if not bound yet */
	const char *vgpu_node;               /* the node that the scheduler chose; "" if none */
	const char *to_allocate, *allocated; /* annotations (shares.h), or NULL */
	const char *bind_time;               /* NULL if there is none */
	const char *created;                 /* RFC 3339, in whole seconds; "" if unknown */
	bool is_started;                     /* the kubelet has admitted or rejected the pod */
	enum pod_phase phase;
	enum bind_phase bind_phase;
	bool is_terminating;
	size_t init_containers, containers; /* `containers` includes init containers */
	const char **container;             /* names, init containers first; the array is owned */
	json_t *object;
};

/* Takes a reference to `object`, which must not change afterwards. -EINVAL if a field is missing, or -ENOMEM. */
int pod_read(json_t *object, struct kube_pod **ret, struct error *err);
struct kube_pod *pod_free(struct kube_pod *pod); /* NULL is allowed; returns NULL */

/* A copy without the members that allot does not use, for programs that keep many pods. NULL if out of memory. */
json_t *pod_copy_trimmed(const json_t *object);

const char *pod_annotation(const struct kube_pod *pod, const char *name);
/* Returns an index in pod->container, or pod->containers if there is none. */
size_t pod_find_container(const struct kube_pod *pod, const char *name);
/* `container` is an index in pod->container here and below. Returns NULL if there is none. */
const json_t *pod_container(const struct kube_pod *pod, size_t container);
/* A sidecar is an init container that runs beside all later containers. */
bool pod_is_sidecar(const struct kube_pod *pod, size_t container);
/* Returns NULL if there is no limit. */
const char *pod_limit(const struct kube_pod *pod, size_t container, const char *resource);

/* In seconds since 1970. -ENODATA if there is none, -EINVAL or -ERANGE if it is invalid. */
int pod_bind_time(const struct kube_pod *pod, int64_t *ret_s, struct error *err);

/* Returns the node that the pod is bound to, else the node that the scheduler chose; "" if there is neither. */
const char *pod_node(const struct kube_pod *pod);
