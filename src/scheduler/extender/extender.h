/*
 * The verbs of a scheduler extender (k8s.io/kube-scheduler/extender/v1), as functions of the model and the JSON that came:
 * no I/O, no clock. Answers are new, NULL: no memory. An extender that can't read what came says so in the answer's
 * "Error". The model's thread.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/bind/decision.h"
#include "scheduler/extender/filter_answer.h"
#include "scheduler/model/model.h"

/*
 * Every node that the pod fits, by names (nodeCacheCapable) or, where nodes came whole, as they came: these are judged by
 * what stands in them, as an autoscaler's nodes are not there yet. Why each other one does not, in HAMi's words:
 * "3/8 CardInsufficientMemory, 5/8 CardNotHealth"; where nobody's end would help, in FailedAndUnresolvableNodes.
 * Nothing is reserved, but, by names, for a pod whose gang has room: for all of the gang (extender_gang.h).
 * To be given up by filter_answer_give().
 */
struct filter_answer *extender_filter(struct model *model, struct call_args *args);

/*
 * [{"Host","Score"}], 0 to 10, by HAMi's node score or, with the policy "fragmentation", by the room that is lost: 10 for the
 * best of those asked about alone, so that it is taken whatever lies between; 0 to 9 for the others in proportion. As JSON, to
 * be freed.
 */
char *extender_prioritize(struct model *model, const struct call_args *args);

/*
 * The nodes on which the end of the victims would make room for the pod, with the victims that kube-scheduler has chosen, for
 * reasons of its own, and as few more of lower priority as that takes.
 */
json_t *extender_preempt(struct model *model, const json_t *args);

/*
 * For the verb bind: chooses the pod's cards on the node that is asked for, and reserves them. -EINVAL: the arguments can't be
 * read, or the pod's request; -ENOENT: no such pod or node is known; -ESTALE: the pod is another one by now, is bound, or
 * ending; -ENOSPC: the cards do not suffice any more, with the reasons; -EAGAIN: the lists have not come yet, or no room is kept for its
 * gang; -ENOMEM.
 * *ret is to be freed by decision_free().
 */
int extender_decide(struct model *model, const json_t *args, uint64_t now_ns, struct decision *ret,
		    struct error *err);
