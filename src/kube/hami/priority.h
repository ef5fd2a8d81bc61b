/*
 * HAMi's priority of a container: its pod asks for it as if it were a resource, by default nvidia.com/priority, 0: high,
 * 1: low, which is also meant where nothing is asked for. HAMi-core is told by CUDA_TASK_PRIORITY. Allot's own
 * priorities are -100 to 100, 0 where none is said, and a higher one goes first. Pure; thread safe.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "kube/hami/pod.h"

#define KUBE_PRIORITY_ENV "CUDA_TASK_PRIORITY"
/* What HAMi's high is: above the usual, with room on both sides for what an operator sets. */
#define KUBE_PRIORITY_HIGH 10
/* Of containers that were placed by use: everybody else goes before them. */
#define KUBE_PRIORITY_FILLER (-100)

/*
 * Allot's priority of the pod's container, by the limit of that name: 0 where it has none. -EINVAL, -ERANGE with the
 * limit and what would be right.
 */
int priority_read(const struct kube_pod *pod, size_t container, const char *resource, int *ret,
		  struct error *err);

/* Allot's priority in HAMi's words. */
const char *priority_env_text(int priority);
