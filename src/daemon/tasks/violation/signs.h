/*
 * Signs that a process which never registered is a tenant's (violation_policy.h), read from /proc. A few dozen
 * reads of small files each: not for every process at every census. Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "policy/safety/violation_policy.h"

struct node;

struct violation_signs signs_of(struct node *node, int pid);

/* Is it this process, one that this process descends from, or the first of all? */
bool signs_is_untouchable(int pid);

/*
 * Is the container that the process lives in one tenant's at most: no process of another has registered in
 * it? That of the daemon itself is nobody's.
 */
bool signs_has_own_container(struct node *node, const struct tenant *tenant, int pid);
