/*
 * How the verbs treat a gang's pod: the pod is placed only when as many pods as the gang's size have room. Then the room for
 * all of them is reserved at once. Internal to extender*.c.
 *
 * Two gangs cannot deadlock by each holding half of what it needs: one thread makes all reservations, and for a whole gang or
 * not at all. kube-scheduler may keep other resources, such as host memory, for some pods of a gang although it cannot place
 * the others. It frees these when the gang's reservations expire. A pause follows (gang_backoff_ns()).
 */
#pragma once

#include "scheduler/extender/extender_inside.h"

/* Why a pod may not use a node that it fits. %s is the gang for which the node is kept (backfill_reservation.h). */
#define EXTENDER_RESERVED "is reserved for gang %.63s, which has waited long for room"
/* Why a pod may not use a node whose room is kept for another pod: %s/%s is its namespace and name. */
#define EXTENDER_NOMINATED "is reserved for pod %.63s/%.128s, for which other pods are evicted"

#define GANG_TEXT_MAX 512

enum gang_filter_result {
	GANG_FILTER_ALONE, /* treat the pod like one outside a gang */
	GANG_FILTER_NODE,  /* accept only `node`; `text` is the reason for all others */
	/* accept no node; `text` is the reason for nodes that the pod fits; other nodes keep their own reasons */
	GANG_FILTER_NO_ROOM,
	GANG_FILTER_REJECT, /* accept no node; `text` is the reason for all nodes */
};

struct gang_answer {
	enum gang_filter_result result;
	const char *node; /* owned by the model */
	char text[GANG_TEXT_MAX];
};

/* Answers a filter call that sends node names, not Node objects. May reserve room for the whole gang. */
void extender_gang_filter(struct model *model, const struct extender_call *call, json_t *names,
			  struct gang_answer *ret);

/* For bind. Returns 0; -EAGAIN if no room is reserved for the gang; -ESTALE if the reservation is on another node. */
int extender_gang_check(struct model *model, const struct model_pod *pod, const char *node,
			struct error *err);

/* Writes why an unbound pod waits for its gang, as of the last search for room; false if it waits for something else. */
bool extender_gang_why(const struct model_pod *pod, struct gang_answer *ret);

/*
 * Whether evictions of pods below `priority`, and of opportunistic pods, may help this pod. Always true outside gangs. If room
 * is searched for a whole gang, evictions help only if they would make room for all its pods.
 */
bool extender_gang_may_preempt(struct model *model, const struct extender_call *call,
			       int32_t priority);
