/*
 * Explains why a pod is where it is, or why it waits: its request as understood, its shares, and for each node whether the
 * cards would serve the pod and what they lack. Uses the present state of the model only: no I/O, no clock, no reservations.
 * docs/reference/protocol.md describes the members. Call from the model's thread.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "scheduler/model/model.h"

struct model_pod;
struct model_node;

struct explain_ask {
	const char *pod_namespace, *pod;
	/* Examine this node only, with each card and its users; if NULL, all nodes that have cards. */
	const char *node;
};

/*
 * Explains the pod that `ask` names; *ret is a new object. Returns -ENOENT if no pod with that name requests cards, or no node
 * has the given name; -EAGAIN if the first lists are incomplete; or -ENOMEM.
 */
int explain_pod(struct model *model, const struct explain_ask *ask, json_t **ret, struct error *err);

/* Explains a pod that was found already. If `only` is NULL, examines all nodes. Returns 0 or -ENOMEM. */
int explain_known(struct model *model, struct model_pod *pod, const struct model_node *only,
		  json_t **ret, struct error *err);
