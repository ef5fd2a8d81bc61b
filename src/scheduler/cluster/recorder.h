/*
 * Reports the results of filter calls (which nodes a pod fits) as Kubernetes events of the pods (filter_events.h), after the
 * call was answered. Call from the client's thread.
 *
 * kube-scheduler filters a waiting pod again and again. The pod has one event per reason, whose count grows, as by client-go's
 * recorder. The first call in which no node fits is reported at once, later ones after 5 s, 10 s, 20 s and so on, up
 * to RECORDER_INTERVAL_MAX_NS. Per second, at most RECORDER_PER_SECOND calls of all pods are reported, with at most about
 * RECORDER_NODES unfit nodes; each call may write several events. A call that is not reported does no harm: kube-scheduler
 * filters the pod again, and that call may be reported.
 */
#pragma once

#include <stdint.h>

#include "kube/client/kube_client.h"
#include "scheduler/bind/decision.h"
#include "scheduler/extender/filter_answer.h"

#define RECORDER_PODS_MOST 4096 /* only the latest pods are remembered */
#define RECORDER_PER_SECOND 20
#define RECORDER_NODES 20000 /* limit of unfit nodes, summed over the events of one second */
#define RECORDER_FIRST_NS UINT64_C(5000000000)
#define RECORDER_INTERVAL_MAX_NS UINT64_C(300000000000)

struct recorder;

/* `component` is the events' source; kept, not copied. Returns 0 or -ENOMEM. */
int recorder_new(struct kube_client *client, const char *component, struct recorder **ret);
/* `recorder` may be NULL; returns NULL. */
struct recorder *recorder_free(struct recorder *recorder);

/*
 * Stores how many nodes were fit and unfit. If none was fit, may send an event, and takes a reference to the answer for that.
 * Ignores a failed call, and a call with whole Node objects instead of names (call_args.h).
 */
void recorder_record_filter(struct recorder *recorder, struct filter_answer *answer);
/* Reports the chosen node, with HAMi's score of it. */
void recorder_record_placement(struct recorder *recorder, const struct decision *decision,
			       double score);

struct recorder_counts {
	uint64_t sent;
	uint64_t suppressed; /* failed filter calls and chosen nodes that got no event */
	unsigned pods;
};
struct recorder_counts recorder_counts(const struct recorder *recorder);
