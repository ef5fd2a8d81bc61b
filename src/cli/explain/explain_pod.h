/*
 * Explains a pod's GPUs from the Pod object: adds to allot-scheduler's explanation, or makes one if allot-scheduler gave none.
 * No I/O; allocates memory.
 */
#pragma once

#include <jansson.h>

/*
 * Adds to an explanation: "containers", the containers' names; "scheduled", kube-scheduler's message why it has not placed the
 * pod; and "bind_phase", the annotation KUBE_POD_BIND_PHASE.
 */
void explain_add_pod(json_t *explanation, const json_t *pod);

/*
 * Makes an explanation from the pod's annotations and events (an EventList; NULL if unknown), without requests and nodes. `why`
 * says why allot-scheduler gave none, and becomes the member "not_asked". Returns a new object; NULL if out of memory.
 */
json_t *explain_of_pod(const json_t *pod, const json_t *events, const char *why);

/* Compares the times of two events: below 0 if the first is earlier. An API server lists events by name, not by time. */
int explain_compare_events(const json_t *one, const json_t *other);
