/*
 * Tells which of our slices (slices.h) are held by pods. A thread asks the kubelet's pod-resources socket. The answer
 * distinguishes a claim (a container's right to slices) whose pod runs without GPU processes from one whose pod is gone.
 */
#pragma once

#include "daemon/kubelet/devices/slices.h"

struct pod_resources;

/*
 * Starts the thread, which asks the kubelet only after pod_resources_request(). Copies `socket` and `resource`; `slices` must
 * stay valid and unchanged.
 */
int pod_resources_start(const char *socket, const char *resource, const struct slices *slices,
			struct pod_resources **ret, struct error *err);
/* Aborts a call in progress. NULL is allowed; returns NULL. */
struct pod_resources *pod_resources_stop(struct pod_resources *p);

/* Asks the kubelet in the background. */
void pod_resources_request(struct pod_resources *p);

/*
 * Sets *ret to the slices that pods hold according to the kubelet's last answer. Returns false if there is none, or it is
 * older than a minute.
 */
bool pod_resources_get(struct pod_resources *p, struct slice_set *ret);

/* A container that holds some of our devices. */
struct pod_holder {
	const char *pod_namespace, *pod, *container;
	const char *const *id; /* names of the devices */
	size_t count;
};
typedef void (*pod_resources_holder)(void *data, const struct pod_holder *holder);
/*
 * Calls `each` for every holder. Returns false if there is no answer of the last minute, or if out of memory; `each` may then
 * have been called for some holders.
 */
bool pod_resources_each(struct pod_resources *p, pod_resources_holder each, void *data);
/* Returns the number of answers so far. While it stays equal, pod_resources_each() visits the same list. */
uint64_t pod_resources_answers(struct pod_resources *p);
/*
 * Returns when the last answer was requested, as clock_now_ns(); 0: none. The answer includes everything that happened before
 * that time.
 */
uint64_t pod_resources_time_ns(struct pod_resources *p);

/*
 * Sets *ret to the slices that pods hold according to a reply of the kubelet; skips other devices. Returns -EPROTO if the reply
 * is malformed. Pure, but allocates.
 */
int pod_resources_read(const struct slices *slices, const char *resource, const uint8_t *data,
		       size_t size, struct slice_set *ret);
