/*
 * Cooldowns (opportunistic.h) outlive the scheduler that began them: they are kept in an annotation of the node
 * (kube/own/cooldowns.h), in wall-clock time. Reading it only ever makes a cooldown longer, and to no more than
 * OPPORTUNISTIC_COOLDOWN_MOST_NS from now, because clocks can be wrong. Removing the annotation ends all of them.
 * Pure but for memory; one thread.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "scheduler/opportunistic/use.h"

struct inventory;

/* Both clocks at one moment: the monotonic one, and the wall clock in seconds since 1970. */
struct cooldown_now {
	uint64_t ns;
	int64_t wall_s;
};

/* Reads the annotation (NULL: there is none) into `use` of `inventory`'s cards. -EINVAL: malformed, nothing changes; -ENOMEM. */
int cooldown_hear(struct use *use, const char *text, const struct inventory *inventory,
		  struct cooldown_now now, struct error *err);
/* What the annotation should be; *ret is NULL if no card has a cooldown, else free it with free(). -ENOMEM. */
int cooldown_tell(const struct use *use, const struct inventory *inventory, struct cooldown_now now,
		  char **ret);
