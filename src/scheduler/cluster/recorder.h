/*
 * Tells pods what filter found, by events (filter_events.h), off its path: what is to be told is kept until the answer is on its
 * way. A pod that waits is asked about again and again: it has one event a reason, whose count grows, as client-go's recorder
 * has it; and it is told at once, after 5 s, 10, 20 and so on up to RECORDER_REST_NS, whatever comes between. All pods
 * together are told RECORDER_PER_SECOND at most, and of RECORDER_NODES nodes; who finds no room is told another time. An event
 * that is lost is nobody's concern. The client's thread.
 */
#pragma once

#include <stdint.h>

#include "kube/client/client.h"
#include "scheduler/bind/decision.h"
#include "scheduler/extender/filter_answer.h"

#define RECORDER_PODS_MOST 4096 /* that something is remembered of: the last ones */
#define RECORDER_PER_SECOND 20
#define RECORDER_NODES 20000 /* a second */
#define RECORDER_FIRST_NS UINT64_C(5000000000)
#define RECORDER_REST_NS UINT64_C(300000000000)

struct recorder;

/* `component`: whose events they are; kept. -ENOMEM. */
int recorder_new(struct kube_client *client, const char *component, struct recorder **ret);
/* NULL is fine; returns NULL. */
struct recorder *recorder_free(struct recorder *recorder);

/* What filter answered to a call by names of nodes; a reference is taken where it is needed. */
void recorder_filtered(struct recorder *recorder, struct filter_answer *answer);
/* The node that was taken, of which `score` is HAMi's. */
void recorder_placed(struct recorder *recorder, const struct decision *decision, double score);

struct recorder_counts {
	uint64_t told, kept_back; /* writes to the server; occasions that were not told */
	unsigned pods;            /* that something is remembered of */
};
struct recorder_counts recorder_counts(const struct recorder *recorder);
