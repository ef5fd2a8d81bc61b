/* Shared by webhook_guard.c and webhook_mounts.c: what is done about a part of a pod that can bypass the library. */
#pragma once

#include <stdbool.h>

#include "scheduler/webhook/webhook.h"

struct webhook_work;

/*
 * Treats a part of the pod (`what`) that can bypass the library as `guard` says. `right` says what the user should do instead.
 * True if the caller must rewrite the part. Sets *ret_r to an error if the pod is denied.
 */
bool webhook_decide(struct webhook_work *w, enum webhook_guard guard, const char *what,
		    const char *right, int *ret_r);
