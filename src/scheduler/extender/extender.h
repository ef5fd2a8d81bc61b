/*
 * The verbs of a scheduler extender (k8s.io/kube-scheduler/extender/v1), as functions of the model and the JSON arguments,
 * without I/O or clock. Each answer is a new object, or NULL if memory runs out. If the arguments are malformed, the answer says
 * so in "Error". Call from the model's thread only.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/bind/decision.h"
#include "scheduler/extender/filter_answer.h"
#include "scheduler/model/model.h"

/*
 * Returns the nodes that the pod fits: as names (nodeCacheCapable), or as whole nodes if the call sent whole nodes. Whole nodes
 * are judged by their own content, because the nodes of an autoscaler do not exist yet. For each other node, the answer gives the
 * reason in HAMi's words: "3/8 CardInsufficientMemory, 5/8 CardNotHealth". If evicting pods would not help, the node goes to
 * FailedAndUnresolvableNodes. The call reserves nothing, with one exception: if nodes came as names and the pod's gang has
 * room, the call reserves room for the whole gang (extender_gang.h). Release the answer with filter_answer_give().
 */
struct filter_answer *extender_filter(struct model *model, struct call_args *args);

/*
 * Returns [{"Host","Score"}] as JSON text; the caller frees the text. Scores are 0 to 10, by HAMi's node score or, with the
 * policy "fragmentation", by the room that is lost. Only the best candidate gets 10, so that it wins even by a small
 * difference; the others get 0 to 9 in proportion.
 */
char *extender_prioritize(struct model *model, const struct call_args *args);

/*
 * Returns the nodes on which evictions would make room for the pod, each with its victims. The victims are those that
 * kube-scheduler has chosen for its own reasons, and the fewest further pods of lower priority that are needed.
 */
json_t *extender_preempt(struct model *model, const json_t *args);

/*
 * For the verb bind: chooses the pod's cards on the named node and reserves them. Free *ret with decision_free(). Errors:
 *   -EINVAL  the arguments or the pod's request are malformed
 *   -ENOENT  the pod or the node is unknown
 *   -ESTALE  the pod was replaced, is bound already, or is terminating
 *   -ENOSPC  the cards no longer suffice; err gives the reasons
 *   -EAGAIN  the watch's first lists are incomplete, or no room is reserved for the pod's gang
 *   -ENOMEM  memory ran out
 */
int extender_decide(struct model *model, const json_t *args, uint64_t now_ns, struct decision *ret,
		    struct error *err);
