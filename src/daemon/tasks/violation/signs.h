/*
 * Finds signs in /proc that an unregistered process belongs to a tenant (violation_policy.h). Reads a few dozen files, so call
 * it rarely. Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "policy/safety/violation_policy.h"

struct node;

/* Stops at the first sign that is found; all others are NULL. */
struct violation_signs signs_of(struct node *node, int pid);

/* Returns true for this process, its ancestors and init. */
bool signs_is_untouchable(int pid);

/* Returns true if neither another tenant's registered process nor this daemon is in the process's container. */
bool signs_has_own_container(struct node *node, const struct tenant *tenant, int pid);
