/* Shared by the extender's verbs. Internal to extender*.c. */
#pragma once

#include "kube/hami/pod.h"
#include "scheduler/extender/call_args.h"
#include "scheduler/model/model_inside.h"

/*
 * The pod of a call. During the call, the pod's charge from an earlier attempt is removed, because the new assignment would
 * replace that charge.
 */
struct ask {
	struct kube_pod *pod;
	struct request request;
	struct error broken;      /* code 0 if the request is valid */
	struct model_pod *lifted; /* NULL if the pod has no charge */
};

/*
 * Begins a call. Returns 0, -EINVAL if `args` has no pod, -EAGAIN before the watch's first lists are complete, or -ENOMEM. A
 * malformed request of the pod is no error here; see `broken`.
 */
int ask_begin(struct model *model, const json_t *args, struct ask *ret, struct error *err);
void ask_end(struct ask *ask);
int32_t ask_priority(const struct ask *ask);

/*
 * Reads the cards of a whole Node object from a call and adds the usage that the model knows. Errors as inventory_read(). Free
 * *ret with inventory_free().
 */
int asked_inventory(struct model *model, const json_t *node, struct inventory *ret,
		    struct error *err);
