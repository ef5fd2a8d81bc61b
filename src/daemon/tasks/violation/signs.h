/*
 * Signs that an unregistered process belongs to a tenant (violation_policy.h), from /proc. Reads a few dozen files, so not
 * for every process at every census. Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "policy/safety/violation_policy.h"

struct node;

/* Reads the signs of a process. Stops at the first one; all others are NULL. */
struct violation_signs signs_of(struct node *node, int pid);

/* Returns true for this process, its ancestors and init. */
bool signs_is_untouchable(int pid);

/*
 * Does no other tenant's registered process share the container, so that it may be frozen because of this process? No for
 * this daemon's.
 */
bool signs_has_own_container(struct node *node, const struct tenant *tenant, int pid);
