/*
 * Which of our slices pods hold, according to the kubelet's pod-resources socket. A separate thread asks the kubelet. The answer
 * tells apart two claims in which no process lives: one whose pod computes on the CPU for an hour, and one whose pod is gone.
 */
#pragma once

#include "daemon/kubelet/devices/slices.h"

struct pod_resources;

/*
 * Starts the thread, which asks the kubelet only after pod_resources_ask(). Texts are copied; the caller keeps `slices` valid and
 * unchanged.
 */
int pod_resources_start(const char *socket, const char *resource, const struct slices *slices,
			struct pod_resources **ret, struct error *err);
/* Aborts a call that is under way. NULL is fine; returns NULL. */
struct pod_resources *pod_resources_stop(struct pod_resources *p);

/* Asks the kubelet, in the background. */
void pod_resources_ask(struct pod_resources *p);

/*
 * Reads into *ret the slices that pods hold according to the kubelet's last answer. Returns false if there was no answer within
 * the last minute.
 */
bool pod_resources_get(struct pod_resources *p, struct slice_set *ret);

/* A container that holds some of our devices, according to the kubelet's last answer. */
struct pod_holder {
	const char *pod_namespace, *pod, *container;
	const char *const *id; /* names of the devices, as in the kubelet's answer */
	size_t count;
};
typedef void (*pod_resources_holder)(void *data, const struct pod_holder *holder);
/*
 * Calls `each` for every holder. Returns false if there was no answer within the last minute, or if out of memory; then `each`
 * may have been called for some holders only.
 */
bool pod_resources_each(struct pod_resources *p, pod_resources_holder each, void *data);
/* Returns the number of answers so far. The list of pod_resources_each() changes only when this number does. */
uint64_t pod_resources_answers(struct pod_resources *p);
/*
 * Returns when the last answer was requested, as clock_now_ns(); 0 if there was none. The answer shows at least everything that
 * had happened by then.
 */
uint64_t pod_resources_time_ns(struct pod_resources *p);

/*
 * Adds the slices of a reply to *ret, skipping names that are not our slices. Returns -EPROTO if the reply is malformed. Pure,
 * but allocates.
 */
int pod_resources_read(const struct slices *slices, const char *resource, const uint8_t *data,
		       size_t size, struct slice_set *ret);
