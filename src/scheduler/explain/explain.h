/*
 * Explains why a pod is where it is, or why it waits: its request, its shares, and for each node whether the GPUs (cards) would
 * serve the pod and what they lack. Uses only the model's present state: does no I/O, reads no clock, and reserves nothing.
 * docs/reference/protocol.md lists the members of the JSON result. Call from the model's thread.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "scheduler/model/model.h"

struct model_pod;
struct model_node;

struct explain_query {
	const char *pod_namespace, *pod;
	/* examine only this node, with each card and the pods on it; NULL: all nodes with cards */
	const char *node;
};

/* *ret is a new object. -ENOENT: no such node, or no such pod with GPU requests; -EAGAIN: the cluster is still being read. */
int explain_pod(struct model *model, const struct explain_query *query, json_t **ret,
		struct error *err);

/* `only` is the only node to examine; NULL: all nodes with cards. Returns 0 or -ENOMEM. */
int explain_known(struct model *model, struct model_pod *pod, const struct model_node *only,
		  json_t **ret, struct error *err);
