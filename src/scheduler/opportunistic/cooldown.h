/*
 * Cooldowns (opportunistic.h) outlive the scheduler that began them, because they are stored in an annotation of the node
 * (kube/own/cooldowns.h) in wall-clock time. Clocks can be wrong, so reading the annotation can only extend a cooldown, and
 * only up to OPPORTUNISTIC_COOLDOWN_MOST_NS from now. Removing the annotation ends all cooldowns. Pure, except for memory;
 * not thread-safe.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "scheduler/opportunistic/node_use.h"

struct inventory;

/* The time of both clocks at one moment: monotonic in ns, and wall clock in seconds since 1970. */
struct cooldown_now {
	uint64_t ns;
	int64_t wall_s;
};

/*
 * Reads the annotation into `use` of the inventory's cards. `text` is NULL if the annotation is missing. Returns -EINVAL if
 * it is malformed and changes nothing then, or -ENOMEM.
 */
int cooldown_hear(struct use *use, const char *text, const struct inventory *inventory,
		  struct cooldown_now now, struct error *err);
/* Makes the text of the annotation; free *ret with free(). *ret is NULL if no card has a cooldown. Returns 0 or -ENOMEM. */
int cooldown_tell(const struct use *use, const struct inventory *inventory, struct cooldown_now now,
		  char **ret);
