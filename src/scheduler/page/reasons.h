/*
 * Why pods that wait do so (why.h), for those that readers of the page see: looked at one after the other, and again when the
 * cluster has changed, by an allowance, a quarter of what `allot explain` has (explain_limit). The model's thread.
 */
#pragma once

#include "scheduler/model/model_inside.h"
#include "scheduler/util/allowance.h"

#define REASONS_MAX 512 /* pods; of more, those that nobody saw for longest are forgotten */
#define REASONS_GOOD_NS (UINT64_C(3) * 1000000000) /* so long one stands, whatever has changed */
#define REASONS_MOST_NS (UINT64_C(5) * 1000000)    /* at a time, but for one that takes longer */

struct reasons;

struct reasons *reasons_new(void);                     /* NULL: out of memory */
struct reasons *reasons_free(struct reasons *reasons); /* NULL is fine; returns NULL */

/* The pod's, as JSON, which stands until the next call of these; NULL: not known yet, it will be looked at. */
const char *reasons_of(struct reasons *reasons, const struct model_pod *pod, uint64_t now_ns);
/* Looks at pods that were asked for since a second or so. `nodes`: how many there are. True: some are looked at anew. */
bool reasons_look(struct reasons *reasons, struct model *model, struct allowance *allowance,
		  size_t nodes, uint64_t now_ns);
