/*
 * Reads from /proc the signs that an unregistered process belongs to a tenant (violation_policy.h).
 * Each call reads a few dozen small files, so do not call it for every process at every census.
 * Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "policy/safety/violation_policy.h"

struct node;

/*
 * Reads the signs of a process. The reading stops at the first sign that is found; all others are
 * NULL.
 */
struct violation_signs signs_of(struct node *node, int pid);

/* Whether the process is this one, an ancestor of this one, or init. */
bool signs_is_untouchable(int pid);

/*
 * Whether the process is in a container that no other tenant's registered process shares. Then the
 * container may be frozen because of this process. False for the container of this daemon.
 */
bool signs_has_own_container(struct node *node, const struct tenant *tenant, int pid);
