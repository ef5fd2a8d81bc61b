/*
 * Why a pod is where it is, or waits: what it asks for as it was understood, what it has, and of each node whether its cards
 * would serve it, and what they lack. From the model alone, as it is now: no I/O, no clock, and nothing is reserved.
 * docs/reference/protocol.md has the members. The model's thread.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "scheduler/model/model.h"

struct model_pod;
struct model_node;

struct explain_ask {
	const char *pod_namespace, *pod;
	const char *node; /* that one alone, card by card, with who is on each; NULL: all that have cards */
};

/*
 * *ret is a new object. -ENOENT: there is no such pod that asks for cards, or no such node; -EAGAIN: the lists have not come
 * yet; -ENOMEM.
 */
int explain_pod(struct model *model, const struct explain_ask *ask, json_t **ret, struct error *err);

/* The same of a pod that was found; `only`: NULL: all nodes. -ENOMEM. */
int explain_known(struct model *model, struct model_pod *pod, const struct model_node *only,
		  json_t **ret, struct error *err);
