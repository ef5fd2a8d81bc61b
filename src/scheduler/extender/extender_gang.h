/*
 * What the verbs say of a pod that is in a gang: it is placed when there is room for as many as the gang's size, which is kept
 * for all of them at once. Inside extender*.c alone.
 *
 * Two gangs that each have a part of what the other needs can't be: room is kept for all of a gang or for none of it, by
 * one thread. What kube-scheduler has taken for a gang whose other pods it can't place, such as memory of the machine, is
 * given back when the room for the gang is: after a time, and it is not kept again before others had theirs (gang.h).
 */
#pragma once

#include "scheduler/extender/extender_inside.h"

/* Why a pod may not go to a node where it fits: the gang's name. */
#define EXTENDER_RESERVED "is left to gang %.63s, which waits for room"

#define GANG_TEXT_MAX 512

enum gang_word {
	GANG_AS_ANY,  /* as a pod that is in none */
	GANG_AT_NODE, /* on `node` alone; elsewhere `text` is why not */
	GANG_NOT_NOW, /* on no node: nodes that it fits fail by `text`, the others by what they lack */
	GANG_NOT_SO, /* on no node, by `text` */
};

struct gang_answer {
	enum gang_word word;
	const char *node; /* the model's */
	char text[GANG_TEXT_MAX];
};

/* For filter, by names. Room may be kept from then on, for all of its gang. */
void extender_gang_filter(struct model *model, const struct ask *ask, json_t *names,
			  struct gang_answer *ret);

/* For bind. -EAGAIN: no room is kept for its gang; -ESTALE: it is on another node. */
int extender_gang_check(struct model *model, const struct model_pod *pod, const char *node,
			struct error *err);

/* Why a pod that is not bound waits for its gang, as it is now; nothing is looked for. false: it does not. */
bool extender_gang_why(const struct model_pod *pod, struct gang_answer *ret);

/* For preempt: would the end of all pods of lower priority make room for as many of its gang as are missing? */
bool extender_gang_may_preempt(struct model *model, const struct ask *ask, int32_t priority);
