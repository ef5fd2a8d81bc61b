/*
 * What allot reads of a Pod object: names, containers in the order of their shares, and the annotations of
 * HAMi's protocol, which stay text until somebody needs one: a broken one is that pod's fault alone.
 * Thread safe; a pod does not change once it is read.
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
	/* All of `object`, which is owned. */
	const char *uid, *name, *pod_namespace, *version;
	const char *node;                    /* spec.nodeName; "": none yet */
	const char *vgpu_node;               /* the scheduler's choice; "": none */
	const char *to_allocate, *allocated; /* shares.h; NULL: there is none */
	const char *bind_time;               /* NULL: there is none */
	const char *created;                 /* RFC 3339, in whole seconds; "": not known */
	bool is_started;                     /* the kubelet has let it in, or refused it */
	enum pod_phase phase;
	enum bind_phase bind_phase;
	bool is_ending;                     /* it has a deletion timestamp */
	size_t init_containers, containers; /* `containers`: of both kinds */
	const char **container;             /* their names, init containers first; owned */
	json_t *object;
};

/* A reference to `object` is taken, which nobody may change then. -EINVAL with what it lacks; -ENOMEM. */
int pod_read(json_t *object, struct kube_pod **ret, struct error *err);
struct kube_pod *pod_free(struct kube_pod *pod); /* NULL is fine; returns NULL */

/*
 * Of a Pod object what is worth keeping of many: names, annotations but for kubectl's copy of the whole,
 * containers with their resources, phase, times. A new object; NULL: no memory.
 */
json_t *pod_essence(const json_t *object);

/* NULL: it has none of that name. */
const char *pod_annotation(const struct kube_pod *pod, const char *name);
/* The place of a container of that name in `container`; `containers`: none has it. */
size_t pod_find_container(const struct kube_pod *pod, const char *name);
/* By its place in `container`. NULL: it has no such place. */
const json_t *pod_container(const struct kube_pod *pod, size_t container);
/* Is it an init container that goes on beside all that come after it? */
bool pod_is_sidecar(const struct kube_pod *pod, size_t container);
/* What the limits of a container, by its place in `container`, say of a resource. NULL: nothing. */
const char *pod_limit(const struct kube_pod *pod, size_t container, const char *resource);

/* Of the annotation, in seconds since 1970. -ENODATA: there is none; -EINVAL with what is wrong. */
int pod_bind_time(const struct kube_pod *pod, int64_t *ret_s, struct error *err);

/* What the scheduler gave, be it on its way or there; "": the name of neither. */
const char *pod_node(const struct kube_pod *pod);
