/*
 * What a Pod object itself tells of its GPUs: beside what allot-scheduler explains, and in its place where that can't be asked.
 * Pure but for memory.
 */
#pragma once

#include <jansson.h>

/* Adds "containers", their names, "scheduled", kube-scheduler's words, and "bind_phase" to an explanation. */
void explain_add_pod(json_t *explanation, const json_t *pod);

/*
 * An explanation of the pod's annotations and events (an EventList; NULL: not known) alone: without what it asks for, and
 * without nodes. `why` the scheduler was not heard stands in "not_asked". A new object; NULL: no memory.
 */
json_t *explain_of_pod(const json_t *pod, const json_t *events, const char *why);
