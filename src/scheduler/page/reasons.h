/*
 * Why pods wait (wait_summary.h), for the pods that readers of the page see. Computed one after the other, again after changes, within a
 * quarter of explain_limit (the limit of `allot explain`). Call from the model's thread.
 */
#pragma once

#include "scheduler/model/model_inside.h"
#include "scheduler/util/token_bucket.h"

/* reasons are kept for this many pods, those asked for last */
#define REASONS_MAX 512
/* A reason is not computed again within this time. */
#define REASONS_GOOD_NS (UINT64_C(3) * 1000000000)
/* Limit of reasons_refresh(); its last explanation may exceed it. */
#define REASONS_MOST_NS (UINT64_C(5) * 1000000)

struct reasons;

struct reasons *reasons_new(void);                     /* NULL if memory runs out */
struct reasons *reasons_free(struct reasons *reasons); /* `reasons` may be NULL; returns NULL */

/* Returns the reason as JSON, valid until the next call here. NULL: not known yet; it will be computed. */
const char *reasons_get(struct reasons *reasons, const struct model_pod *pod, uint64_t now_ns);
/*
 * Computes reasons that were asked for in the last seconds. `nodes`: what each costs of the allowance. True if a reason has
 * changed.
 */
bool reasons_refresh(struct reasons *reasons, struct model *model, struct token_bucket *bucket,
		     size_t nodes, uint64_t now_ns);
