/*
 * Which of our slices pods hold, by the kubelet's books: its pod-resources socket, asked by a thread of its own. So a
 * claim that no process lives in, as its pod works on the processor for an hour, is told from one whose pod is
 * gone.
 */
#pragma once

#include "daemon/kubelet/devices/slices.h"

struct pod_resources;

/* Nothing is asked before pod_resources_ask(). Texts are copied; `slices` stays the caller's, and is not changed. */
int pod_resources_start(const char *socket, const char *resource, const struct slices *slices,
			struct pod_resources **ret, struct error *err);
/* Gives up a call under way. NULL is fine; returns NULL. */
struct pod_resources *pod_resources_stop(struct pod_resources *p);

/* Asks, in the background. */
void pod_resources_ask(struct pod_resources *p);

/* What the kubelet said last. False: it has not said anything in the last minute. */
bool pod_resources_get(struct pod_resources *p, struct slice_set *ret);

/* A container that holds some of our devices, by the kubelet's last answer. */
struct pod_holder {
	const char *pod_namespace, *pod, *container;
	const char *const *id; /* of the devices, as the kubelet has them */
	size_t count;
};
typedef void (*pod_resources_holder)(void *data, const struct pod_holder *holder);
/* Tells all of them. False: as above, or no memory; then not all may have been told. */
bool pod_resources_each(struct pod_resources *p, pod_resources_holder each, void *data);
/* Answers so far: while it is the same, nothing is new. */
uint64_t pod_resources_answers(struct pod_resources *p);
/* When the last answer was asked for: clock_now_ns(); 0: there is none. What was before that, it has. */
uint64_t pod_resources_time_ns(struct pod_resources *p);

/* Adds the slices of a reply; names that are none of ours are left out. -EPROTO. Pure but for memory. */
int pod_resources_read(const struct slices *slices, const char *resource, const uint8_t *data,
		       size_t size, struct slice_set *ret);
