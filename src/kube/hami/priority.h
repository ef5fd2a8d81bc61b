/*
 * HAMi's priority of a container. The pod requests it like a resource, by default nvidia.com/priority: 0 is high, and 1 is low
 * and the default. HAMi-core reads it from CUDA_TASK_PRIORITY. Allot's own priorities are -100 to 100, by default 0; a higher one
 * goes first. Pure; thread safe.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "kube/hami/pod.h"

#define KUBE_PRIORITY_ENV "CUDA_TASK_PRIORITY"
/* HAMi's high: above the default, with room on both sides for what an operator sets. */
#define KUBE_PRIORITY_HIGH 10
/* Of opportunistic containers, which are placed by use: all others go first. */
#define KUBE_PRIORITY_OPPORTUNISTIC (-100)

/*
 * Allot's priority of the pod's container, from its limit `resource`; 0 if it has none. -EINVAL, -ERANGE: the error names the
 * limit and the values that are allowed.
 */
int priority_read(const struct kube_pod *pod, size_t container, const char *resource, int *ret,
		  struct error *err);

/* Allot's priority in HAMi's words. */
const char *priority_env_text(int priority);
