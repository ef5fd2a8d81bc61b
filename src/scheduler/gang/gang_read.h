/*
 * Reads from annotations or labels which gang a pod belongs to (left), and how many pods the gang has (right). Names outside
 * allot.dev are those of Kubernetes or of other schedulers:
 *
 *     allot.dev/gang, or batch.kubernetes.io/job-name                allot.dev/gang-size
 *     scheduling.x-k8s.io/pod-group                                  allot.dev/gang-size
 *     pod-group.scheduling.sigs.k8s.io/name                          pod-group.scheduling.sigs.k8s.io/min-available
 *     scheduling.volcano.sh/group-name, scheduling.k8s.io/group-name scheduling.volcano.sh/group-min-member
 *     gang.scheduling.koordinator.sh/name                            gang.scheduling.koordinator.sh/min-available
 *     kueue.x-k8s.io/pod-group-name                                  kueue.x-k8s.io/pod-group-total-count
 *
 * allot.dev/gang-size goes with every name and overrides other sizes. A Job's pods are a gang only with it. Other objects, such
 * as a PodGroup, are not read. Pure; thread-safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

#define GANG_SIZE_MAX 4096
#define GANG_NAME_MAX 253

/* The strings belong to the pod or are constant. */
struct gang_annotations {
	const char *name; /* NULL if the pod is in no gang */
	const char *by;   /* the annotation or label that names the gang */
	unsigned size;    /* 0 if no size is named */
};

/*
 * Returns -EINVAL if name or size is malformed, or there is a size without a name; `err` says what would be right. *ret is
 * written even then, with the name, or "" if the name is malformed or missing.
 */
int gang_read(const json_t *pod, struct gang_annotations *ret, struct error *err);

/* Whether the pod may not be scheduled yet (spec.schedulingGates). */
bool gang_is_gated(const json_t *pod);
