/*
 * What people write to a pod to change the terms of its containers while they run: annotations of allot's own.
 *
 *     allot.dev/memory: 8GiB               of all containers of the pod that have GPUs
 *     trainer.allot.dev/memory: 8GiB,4GiB  of the container "trainer" alone, which has two GPUs
 *
 * Values are one for all of a container's GPUs, or one for each, by commas, in the order in which it was given them. A
 * container's own annotation goes before the pod's. (A container's name is a label of DNS, so that it always fits
 * before the domain; behind the '/' it may be too long.) Pure but for memory; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/hami/pod.h"

#define LIVE_VALUES_MAX 16

/* Of each: how many values there are; none: nothing is said. */
struct kube_live {
	size_t memories, cores, limits;
	uint64_t memory_bytes[LIVE_VALUES_MAX];
	double cores_pct[LIVE_VALUES_MAX]; /* 0: no guarantee */
	double limit_pct[LIVE_VALUES_MAX];
	const char *on_full;         /* the pod's text; NULL: nothing is said */
	const char *sharing, *group; /* of what starts from here on; the pod's texts, or NULL */
	bool has_priority;
	int priority; /* -100 to 100 */
};

/*
 * What the pod says of the container. -EINVAL, -ERANGE with the annotation and what would be right; also for a name of
 * our domain that is none of these, or of a container that the pod does not have: it was meant to change something.
 */
int live_read(const struct kube_pod *pod, const char *container, struct kube_live *ret,
	      struct error *err);

/* The same of `sharing` and `group` alone, for who makes a container: whatever else the pod says. */
int live_read_sharing(const struct kube_pod *pod, const char *container, struct kube_live *ret,
		      struct error *err);

/* The least that a container gets of each of its GPUs. */
struct kube_live_floor {
	uint64_t memory_mib; /* rounded up; 0: nothing is said */
	unsigned cores_pct;  /* rounded up; 0: nothing is said, or no guarantee */
};

/*
 * The most that the pod asks of any of the container's GPUs, of which there are `count`. Zeros where a node would refuse what
 * is said, and leave the container as it was made.
 */
struct kube_live_floor live_floor(const struct kube_pod *pod, const char *container, size_t count);

/* All that live_read() goes by: while it is the same, nothing was changed. NULL: no memory; by free(). */
char *live_text(const struct kube_pod *pod);
