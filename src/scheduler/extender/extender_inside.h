/* The types and functions that the extender's verbs share. Internal to extender*.c. */
#pragma once

#include "kube/hami/pod.h"
#include "scheduler/extender/call_args.h"
#include "scheduler/model/model_inside.h"

/* The pod of a call. GPUs that an earlier attempt has reserved for the pod count as free: new shares would replace them. */
struct extender_call {
	struct kube_pod *pod;
	struct request request;
	struct error request_error;  /* code 0 if the request is valid */
	struct model_pod *suspended; /* the pod whose charge was removed; NULL if none */
};

/* -EINVAL: `args` has no pod; -EAGAIN: the cluster is still being read. For a malformed request, see request_error. */
int extender_call_begin(struct model *model, const json_t *args, struct extender_call *ret,
			struct error *err);
void extender_call_end(struct extender_call *call);
int32_t extender_call_priority(const struct extender_call *call);

/* Reads a Node object's cards, and charges the model's pods on this node. Errors as of inventory_read(). Free *ret. */
int inventory_of_object(struct model *model, const json_t *node, struct inventory *ret,
			struct error *err);
