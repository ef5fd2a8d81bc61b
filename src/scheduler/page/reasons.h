/*
 * Computes why pods wait (wait_summary.h), for the pods that readers of the web page see. Reasons are computed one by one, and
 * again after changes. Together they use at most a quarter of explain_limit, the rate limit of `allot explain`. Call from the
 * model's thread.
 */
#pragma once

#include "scheduler/model/model_inside.h"
#include "scheduler/util/token_bucket.h"

/* Reasons are cached for the REASONS_MAX pods whose reasons were requested last. */
#define REASONS_MAX 512
/* A reason is not computed again for at least this time, even if the model changes. */
#define REASONS_GOOD_NS (UINT64_C(3) * 1000000000)
/* Time limit of one reasons_refresh(); only its last explanation may exceed the limit. */
#define REASONS_MOST_NS (UINT64_C(5) * 1000000)

struct reasons;

struct reasons *reasons_new(void);                     /* NULL if memory runs out */
struct reasons *reasons_free(struct reasons *reasons); /* `reasons` may be NULL; returns NULL */

/*
 * Returns the reason as JSON, valid until the next call of this module. NULL if a later reasons_refresh() has to compute it
 * first.
 */
const char *reasons_get(struct reasons *reasons, const struct model_pod *pod, uint64_t now_ns);
/*
 * Computes missing or outdated reasons that reasons_get() was asked for in the last 8 s. Each takes `nodes` tokens (at least
 * 100) from the bucket; none is computed while the bucket is empty. True if a reason has changed.
 */
bool reasons_refresh(struct reasons *reasons, struct model *model, struct token_bucket *bucket,
		     size_t nodes, uint64_t now_ns);
