/*
 * Which gang a pod belongs to, pods that are placed together or not at all, and how many that are, as it says by annotations
 * or labels. All these names are of other schedulers' but the first:
 *
 *     allot.dev/gang, or batch.kubernetes.io/job-name                allot.dev/gang-size
 *     scheduling.x-k8s.io/pod-group                                  allot.dev/gang-size
 *     pod-group.scheduling.sigs.k8s.io/name                          pod-group.scheduling.sigs.k8s.io/min-available
 *     scheduling.volcano.sh/group-name, scheduling.k8s.io/group-name scheduling.volcano.sh/group-min-member
 *     gang.scheduling.koordinator.sh/name                            gang.scheduling.koordinator.sh/min-available
 *     kueue.x-k8s.io/pod-group-name                                  kueue.x-k8s.io/pod-group-total-count
 *
 * allot.dev/gang-size goes with any of them, and before their own; a Job's pods are a gang only where it is there. What
 * objects beside the pods say, such as a PodGroup, is not asked. Pure; thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

#define GANG_SIZE_MAX 4096
#define GANG_NAME_MAX 253

/* Texts are the pod's, or constant. */
struct gang_said {
	const char *name; /* NULL: it is in none */
	const char *by;   /* the annotation or label that says so */
	unsigned size;    /* 0: nothing is said */
};

/*
 * -EINVAL: a name or a size that can't be one, with what would be right; or a size without a name. *ret is written all the
 * same, with the name, or "" where it can't be read.
 */
int gang_read(const json_t *pod, struct gang_said *ret, struct error *err);

/* Nobody may schedule it yet (spec.schedulingGates). */
bool gang_is_gated(const json_t *pod);
