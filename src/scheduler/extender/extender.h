/*
 * The verbs of a scheduler extender (k8s.io/kube-scheduler/extender/v1), as functions of the JSON arguments and the model: the
 * nodes, pods and reservations that allot-scheduler knows. No I/O, no clock. The caller owns each answer; NULL if memory runs
 * out. To malformed arguments, filter answers with "Error", prioritize with equal scores, preempt with no nodes. Not
 * thread-safe.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/bind/decision.h"
#include "scheduler/extender/filter_answer.h"
#include "scheduler/model/model.h"

/*
 * Returns the nodes that the pod fits: names (nodeCacheCapable), or Node objects if the call sent these. An autoscaler sends
 * Node objects of nodes that do not exist yet, so these are judged by their own content. A node that the pod does not fit gets
 * the reason in HAMi's words, "3/8 CardInsufficientMemory, 5/8 CardNotHealth". Nodes where evictions would not help go to
 * FailedAndUnresolvableNodes.
 *
 * Reserves nothing, with one exception: a call with node names reserves room for the pod's whole gang (extender_gang.h), if
 * there is enough. Release the answer with filter_answer_put().
 */
struct filter_answer *extender_filter(struct model *model, struct call_args *args);

/*
 * Returns [{"Host","Score"}] as text, which the caller frees. Scores are 0 to 10: HAMi's or, with the policy "fragmentation",
 * by the capacity that the pod would make unusable for other requests. Only the best node gets 10, so that it wins.
 */
char *extender_prioritize(struct model *model, const struct call_args *args);

/*
 * Returns the nodes where evictions would make room for the pod, with victims. The victims are those that kube-scheduler chose
 * for its own reasons, and as few further pods as needed. Further pods are opportunistic or of lower priority.
 */
json_t *extender_preempt(struct model *model, const json_t *args);

/*
 * For the verb bind: chooses the pod's cards on the named node and reserves them. Free *ret with decision_free(). Errors:
 *   -EINVAL  the arguments or the pod's request are malformed
 *   -ENOENT  the pod or the node is unknown
 *   -ESTALE  the pod was replaced, is bound already, or is terminating
 *   -ENOSPC  the cards no longer suffice; err gives the reasons
 *   -EAGAIN  the cluster's nodes and pods are still being read, or no room is reserved for the pod's gang
 *   -ENOMEM  memory ran out
 */
int extender_decide(struct model *model, const json_t *args, uint64_t now_ns, struct decision *ret,
		    struct error *err);
