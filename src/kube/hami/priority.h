/*
 * HAMi's priority of a container, requested like a resource (nvidia.com/priority): 0 is high, 1 (the default) low. HAMi-core
 * reads it from CUDA_TASK_PRIORITY. Allot's own priorities are -100 to 100, by default 0, the highest first. Pure; thread safe.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "kube/hami/pod.h"

#define KUBE_PRIORITY_ENV "CUDA_TASK_PRIORITY"
/* HAMi's high priority on allot's scale: above the default 0, with room above it for other priorities. */
#define KUBE_PRIORITY_HIGH 10
/* The lowest, for containers placed by measured use instead of a guarantee (opportunistic.h). */
#define KUBE_PRIORITY_OPPORTUNISTIC (-100)

/*
 * Sets *ret to the allot priority that matches a container's limit of `resource`; 0 if there is no limit. On -EINVAL or
 * -ERANGE, the error names the limit and its valid values.
 */
int priority_read(const struct kube_pod *pod, size_t container, const char *resource, int *ret,
		  struct error *err);

/* Returns the value of KUBE_PRIORITY_ENV for an allot priority. */
const char *priority_env_text(int priority);
