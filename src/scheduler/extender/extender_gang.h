/*
 * How the verbs treat a gang's pod: the pod is placed only when as many pods as the gang's size have room, which is then
 * reserved for all at once. Internal to extender*.c.
 *
 * Two gangs cannot block each other with half of what each needs: one thread reserves for a whole gang or not at all.
 * kube-scheduler may keep other resources, such as host memory, for a gang whose other pods it cannot place; it frees them when
 * the gang's reservations expire. The gang gets new reservations only after a pause (gang_backoff_ns()).
 */
#pragma once

#include "scheduler/extender/extender_inside.h"

/* Why a pod may not use a node that it fits; followed by the gang with the backfill reservation. */
#define EXTENDER_RESERVED "is left to gang %.63s, which waits for room"

#define GANG_TEXT_MAX 512

enum gang_filter_result {
	GANG_FILTER_ALONE, /* treat the pod like one outside a gang */
	GANG_FILTER_NODE,  /* accept `node` only; `text` is the reason for all other nodes */
	/* accept no node; `text` is the reason for nodes that the pod fits, others have their own */
	GANG_FILTER_NO_ROOM,
	GANG_FILTER_REJECT, /* accept no node; `text` is the reason for all */
};

struct gang_answer {
	enum gang_filter_result result;
	const char *node; /* string of the model */
	char text[GANG_TEXT_MAX];
};

/* Answers a filter call with names. May reserve room for the whole gang. */
void extender_gang_filter(struct model *model, const struct extender_call *call, json_t *names,
			  struct gang_answer *ret);

/*
 * For bind: whether the pod may be bound to the node. 0; -EAGAIN: no room is reserved for the gang; -ESTALE: the pod's
 * reservation is on another node.
 */
int extender_gang_check(struct model *model, const struct model_pod *pod, const char *node,
			struct error *err);

/* Writes why an unbound pod waits for its gang, without searching room again. False if it does not wait. */
bool extender_gang_why(const struct model_pod *pod, struct gang_answer *ret);

/*
 * Returns true if the end of all opportunistic pods and of all pods of lower priority would make room for the missing pods of the
 * gang, or if the pod is in no gang. Otherwise no pod may be evicted for it.
 */
bool extender_gang_may_preempt(struct model *model, const struct extender_call *call,
			       int32_t priority);
