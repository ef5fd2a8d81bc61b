/*
 * Stores cooldowns in a node's annotation (kube/own/node_cards.h), so that they outlive the scheduler. In a cooldown, a card
 * takes no opportunistic pods (opportunistic.h). The annotation has wall-clock times, which may be wrong. So reading it never
 * shortens a cooldown, and extends one to at most OPPORTUNISTIC_COOLDOWN_MOST_NS from now. Removing the annotation ends all
 * cooldowns. No I/O and no clock; not thread-safe.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "scheduler/opportunistic/node_use.h"

struct inventory;

/* One moment by both clocks: ns by the monotonic clock, wall_s in seconds since 1970. */
struct cooldown_now {
	uint64_t ns;
	int64_t wall_s;
};

/*
 * Reads the annotation `text` (NULL: missing) into `use`. Returns 0, -ENOMEM, or -EINVAL if `text` is malformed; then no
 * cooldown changes.
 */
int cooldown_load(struct use *use, const char *text, const struct inventory *inventory,
		  struct cooldown_now now, struct error *err);
/*
 * Makes the annotation's text; the caller frees it. It is NULL if no card was in a cooldown in the last
 * OPPORTUNISTIC_FORGIVE_NS. Returns 0 or -ENOMEM.
 */
int cooldown_format(const struct use *use, const struct inventory *inventory,
		    struct cooldown_now now, char **ret);
