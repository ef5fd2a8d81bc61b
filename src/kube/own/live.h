/*
 * Annotations of allot that users write to a pod to change the terms of its containers while they run.
 *
 *     allot.dev/memory: 8GiB               for all containers of the pod that have GPUs
 *     trainer.allot.dev/memory: 8GiB,4GiB  only for the container "trainer", which has two GPUs
 *
 * A value is either for all of a container's GPUs, or a list separated by commas with one value per GPU, in the order in which
 * the container got them. A container's own annotation takes precedence over the pod's. (The container's name stands before the
 * domain, because a DNS label always fits there; behind the '/' it may be too long.) Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/pod.h"

#define LIVE_VALUES_MAX 16

/* memories, cores and limits are the numbers of values in the arrays below; 0 if not given. */
struct kube_live {
	size_t memories, cores, limits;
	uint64_t memory_bytes[LIVE_VALUES_MAX];
	double cores_pct[LIVE_VALUES_MAX]; /* 0 means no guarantee */
	double limit_pct[LIVE_VALUES_MAX];
	const char *on_full; /* owned by the kube_pod; NULL if not given */
	/* apply only to processes that start after the annotation was written; owned by the kube_pod; NULL if not given */
	const char *sharing, *group;
	bool has_priority;
	int priority;
};

/*
 * Reads what the pod's annotations say about the container. Errors name the annotation. An unknown name in the domain
 * allot.dev, or a name for a container that does not exist, is an error too, because the user wanted to change something.
 */
int live_read(const struct kube_pod *pod, const char *container, struct kube_live *ret,
	      struct error *err);

/* Reads only `sharing` and `group`, which matter when the container starts. Ignores errors in other annotations. */
int live_read_sharing(const struct kube_pod *pod, const char *container, struct kube_live *ret,
		      struct error *err);

struct kube_live_floor {
	uint64_t memory_mib; /* rounded up; 0 if not given */
	unsigned cores_pct;  /* rounded up; 0 if not given or no guarantee */
};

/*
 * The memory and cores that each of the container's `count` GPUs must offer. If the annotations name a value for each GPU, the
 * largest one counts for all of them. Zeros if a node would reject the annotations.
 */
struct kube_live_floor live_floor(const struct kube_pod *pod, const char *container, size_t count);

/* All of the pod's annotations in the domain allot.dev, for comparisons. The caller frees the text. NULL if out of memory. */
char *live_text(const struct kube_pod *pod);
