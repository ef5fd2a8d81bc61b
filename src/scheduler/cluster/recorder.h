/*
 * Reports the results of filter calls to the pods by events (filter_events.h). The work is postponed until the answer to the
 * call has been sent. A waiting pod is filtered again and again. It has one event per reason, whose count grows, as in
 * client-go's recorder. The first event is written at once, the next after 5 s, 10 s, 20 s and so on, up to RECORDER_REST_NS.
 * For all pods together, at most RECORDER_PER_SECOND events about RECORDER_NODES nodes are written per second; a pod beyond
 * the limit is reported another time. Lost events do no harm. Call from the client's thread.
 */
#pragma once

#include <stdint.h>

#include "kube/client/kube_client.h"
#include "scheduler/bind/decision.h"
#include "scheduler/extender/filter_answer.h"

#define RECORDER_PODS_MOST 4096 /* most pods that are remembered: the latest ones */
#define RECORDER_PER_SECOND 20
#define RECORDER_NODES 20000 /* per second */
#define RECORDER_FIRST_NS UINT64_C(5000000000)
#define RECORDER_REST_NS UINT64_C(300000000000)

struct recorder;

/* Makes a recorder. `component` is the source of the events; it is kept, not copied. Returns 0 or -ENOMEM. */
int recorder_new(struct kube_client *client, const char *component, struct recorder **ret);
/* `recorder` may be NULL; returns NULL. */
struct recorder *recorder_free(struct recorder *recorder);

/* Reports the result of a filter call with node names. Takes a reference to the answer if needed. */
void recorder_filtered(struct recorder *recorder, struct filter_answer *answer);
/* Reports the node that was chosen. `score` is HAMi's score of the node. */
void recorder_placed(struct recorder *recorder, const struct decision *decision, double score);

struct recorder_counts {
	uint64_t told,
		kept_back; /* told: events that were sent; kept_back: results of filter calls that were not reported */
	unsigned pods; /* pods that are remembered */
};
struct recorder_counts recorder_counts(const struct recorder *recorder);
