/* Shared by webhook_guard.c and webhook_mounts.c: what is done about a part of a pod that can bypass the library. */
#pragma once

#include <stdbool.h>

#include "scheduler/webhook/webhook.h"

struct webhook_work;

/*
 * Treats `what`, a part of the pod that can bypass the library, as the operator configured (`guard`). Returns true if the
 * caller must rewrite that part; sets *ret_r to an error if the pod is denied. `right` says what to do instead.
 */
bool webhook_decide(struct webhook_work *w, enum webhook_guard guard, const char *what,
		    const char *right, int *ret_r);
