/* What the extender's verbs share. Inside extender*.c alone. */
#pragma once

#include "kube/hami/pod.h"
#include "scheduler/extender/call_args.h"
#include "scheduler/model/model_inside.h"

/*
 * Who asks, while a call lasts: what the pod has by now, of an earlier try, is lifted, as it would be given back for what it is
 * to get.
 */
struct ask {
	struct kube_pod *pod;
	struct request request;
	struct error broken;      /* code 0: the request can be read */
	struct model_pod *lifted; /* NULL: it has nothing */
};

/* -EINVAL: there is no pod in it; -EAGAIN: the lists have not come; -ENOMEM. A broken request is no fault of the call's. */
int ask_begin(struct model *model, const json_t *args, struct ask *ret, struct error *err);
void ask_end(struct ask *ask);
int32_t ask_priority(const struct ask *ask);

/*
 * The cards of a node that came whole, as it says of itself, with what the model knows to be used of them. As inventory_read();
 * to be freed by inventory_free().
 */
int asked_inventory(struct model *model, const json_t *node, struct inventory *ret,
		    struct error *err);
