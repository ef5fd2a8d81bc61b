/*
 * Tells which of our slices (slices.h) are held by pods. A thread asks the kubelet's pod-resources socket. A claim (a
 * container's right to slices) may have no process, although its pod still exists. The kubelet's answer shows such pods too.
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

/* Sets *ret to the slices that pods hold. False if the kubelet has not answered, or not within the last minute. */
bool pod_resources_get(struct pod_resources *p, struct slice_set *ret);

/* A container that holds some of our devices. */
struct pod_holder {
	const char *pod_namespace, *pod, *container;
	const char *const *id; /* names of the devices */
	size_t count;
};
typedef void (*pod_resources_holder)(void *data, const struct pod_holder *holder);
/*
 * Calls `each` for every holder; `each` must not call functions of this header, which take the same lock. First sets
 * *ret_answer and *ret_time_ns to the values that pod_resources_answers() and pod_resources_time_ns() have for this answer.
 * Returns false if no answer is younger than a minute. Also returns false if out of memory, perhaps after some calls.
 */
bool pod_resources_each(struct pod_resources *p, pod_resources_holder each, void *data,
			uint64_t *ret_answer, uint64_t *ret_time_ns);
/* Returns the number of answers so far. While it stays equal, pod_resources_each() visits the same list. */
uint64_t pod_resources_answers(struct pod_resources *p);
/* When the last answer was requested, as clock_now_ns(); 0: none. The answer includes all that happened before. */
uint64_t pod_resources_time_ns(struct pod_resources *p);

/* *ret: slices that pods hold according to the kubelet's reply; skips other devices. -EPROTO if malformed. Allocates memory. */
int pod_resources_read(const struct slices *slices, const char *resource, const uint8_t *data,
		       size_t size, struct slice_set *ret);
