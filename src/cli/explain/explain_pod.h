/* Adds facts from the Pod object to allot-scheduler's explanation, or makes an explanation from that object alone. No I/O. */
#pragma once

#include <jansson.h>

/* Adds "containers" (names), "scheduled" (why kube-scheduler has not placed the pod), "bind_phase" (an annotation). */
void explain_add_pod(json_t *explanation, const json_t *pod);

/*
 * Makes an explanation from the pod's annotations and events (an EventList; NULL if unknown), without requests and nodes.
 * `why`, the reason why allot-scheduler gave none, becomes the member "not_asked". Returns a new object; NULL if out of memory.
 */
json_t *explain_of_pod(const json_t *pod, const json_t *events, const char *why);

/* Compares the times of two events: below 0 if the first is earlier. An API server lists events by name, not by time. */
int explain_compare_events(const json_t *one, const json_t *other);
