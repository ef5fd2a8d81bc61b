/*
 * HAMi's priority of a container. The pod requests the priority like a resource, by default
 * nvidia.com/priority: 0 is high; 1 is low and the default. HAMi-core reads it from
 * CUDA_TASK_PRIORITY. Allot's own priorities are -100 to 100, by default 0; containers with a
 * higher one go first. Pure; thread safe.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "kube/hami/pod.h"

#define KUBE_PRIORITY_ENV "CUDA_TASK_PRIORITY"
/* HAMi's high priority: above the default, with room on both sides for the operator's own values. */
#define KUBE_PRIORITY_HIGH 10
/* The priority of opportunistic containers, which are placed by use. All others go first. */
#define KUBE_PRIORITY_OPPORTUNISTIC (-100)

/*
 * Reads allot's priority of a container from its limit of `resource`; 0 if it has none. Returns
 * -EINVAL or -ERANGE; the error names the limit and the valid values.
 */
int priority_read(const struct kube_pod *pod, size_t container, const char *resource, int *ret,
		  struct error *err);

/* Returns the value of KUBE_PRIORITY_ENV for an allot priority. */
const char *priority_env_text(int priority);
