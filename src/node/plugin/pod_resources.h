/*
 * Which of our slices pods hold, by the kubelet's books: its pod-resources socket, asked by a thread of its own. So a
 * claim that no process lives in, as its pod works on the processor for an hour, is told from one whose pod is
 * gone.
 */
#ifndef ALLOT_NODE_PLUGIN_POD_RESOURCES_H
#define ALLOT_NODE_PLUGIN_POD_RESOURCES_H

#include "node/plugin/slices.h"

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

/* Adds the slices of a reply; names that are none of ours are left out. -EPROTO. Pure but for memory. */
int pod_resources_read(const struct slices *slices, const char *resource, const uint8_t *data,
		       size_t size, struct slice_set *ret);

#endif
