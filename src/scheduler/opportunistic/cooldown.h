/*
 * Cards that are shut to opportunistic pods (opportunistic.h), past the end of whoever shut them: as an annotation of their node (kube/own/shuts.h),
 * by the clock on the wall. What is read there only ever shuts a card for longer, and for no longer than OPPORTUNISTIC_COOLDOWN_MOST_NS
 * from now, as clocks go wrong. Where somebody takes the annotation away all cards are open again. Pure but for memory; one thread.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "scheduler/opportunistic/use.h"

struct inventory;

/* Both clocks at one moment: ours, and what people's says, in seconds since 1970. */
struct cooldown_now {
	uint64_t ns;
	int64_t wall_s;
};

/* The annotation as it is now; NULL: there is none. `use` is of `inventory`'s cards. -EINVAL: it can't be read, and is as what it was; -ENOMEM. */
int cooldown_hear(struct use *use, const char *text, const struct inventory *inventory,
		  struct cooldown_now now, struct error *err);
/* What it is to be. *ret NULL: there is nothing to be said of any card; else to be freed by free(). -ENOMEM. */
int cooldown_tell(const struct use *use, const struct inventory *inventory, struct cooldown_now now,
		  char **ret);
