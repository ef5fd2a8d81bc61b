/*
 * Why pods wait (why.h), for the pods that readers of the page see. The reasons are computed one after the other, and again
 * when the cluster has changed. They are limited to an allowance of a quarter of explain_limit, the limit of `allot explain`.
 * Call from the model's thread.
 */
#pragma once

#include "scheduler/model/model_inside.h"
#include "scheduler/util/allowance.h"

/* Most pods whose reasons are kept; beyond that, the pods that were not asked for the longest are forgotten. */
#define REASONS_MAX 512
/* A reason is not computed again within this time, whatever changes. */
#define REASONS_GOOD_NS (UINT64_C(3) * 1000000000)
/* Time limit of reasons_look(); the last explanation may exceed it. */
#define REASONS_MOST_NS (UINT64_C(5) * 1000000)

struct reasons;

struct reasons *reasons_new(void);                     /* NULL if memory runs out */
struct reasons *reasons_free(struct reasons *reasons); /* `reasons` may be NULL; returns NULL */

/*
 * Returns the pod's reason as JSON, valid until the next call of one of these functions. Returns NULL if it is not known yet;
 * it will then be computed.
 */
const char *reasons_of(struct reasons *reasons, const struct model_pod *pod, uint64_t now_ns);
/*
 * Computes reasons of pods that were asked for in the last seconds. `nodes` is the number of nodes, which an explanation
 * costs from the allowance. Returns true if a reason has changed.
 */
bool reasons_look(struct reasons *reasons, struct model *model, struct allowance *allowance,
		  size_t nodes, uint64_t now_ns);
