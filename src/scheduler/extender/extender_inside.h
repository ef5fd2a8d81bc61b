/* Declares what the extender's verbs share. Internal to extender*.c. */
#pragma once

#include "kube/hami/pod.h"
#include "scheduler/extender/call_args.h"
#include "scheduler/model/model_inside.h"

/*
 * The pod of a call. The charge of an earlier attempt to place the pod is removed during the call, because new shares would
 * replace it.
 */
struct extender_call {
	struct kube_pod *pod;
	struct request request;
	struct error request_error;  /* code 0 if the request is valid */
	struct model_pod *suspended; /* the pod whose charge was removed; NULL if none */
};

/*
 * Begins a call. Returns 0, -ENOMEM, -EINVAL if `args` has no pod, or -EAGAIN if the cluster's nodes and pods are still
 * being read. A malformed request is no error here: see `request_error`.
 */
int extender_call_begin(struct model *model, const json_t *args, struct extender_call *ret,
			struct error *err);
void extender_call_end(struct extender_call *call);
int32_t extender_call_priority(const struct extender_call *call);

/*
 * Reads the cards of a call's whole Node object, and charges the pods that the model has on the node of this name. Returns
 * errors like inventory_read(). Free *ret with inventory_free().
 */
int inventory_of_object(struct model *model, const json_t *node, struct inventory *ret,
			struct error *err);
