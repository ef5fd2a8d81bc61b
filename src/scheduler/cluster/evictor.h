/*
 * Sends opportunistic pods (opportunistic.h) away from cards where they have had too little for too long, and pods whose room another of higher
 * priority needs: by the eviction API (policy/v1), which keeps to disruption budgets, a few at a time. Their controllers make them anew, and they are placed where there is room; an event
 * of the pod says why it went, and its node which cards are shut. The client's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client/client.h"
#include "scheduler/model/model.h"

struct evictor;
struct sched_audit;

struct evictor_terms {
	struct kube_client *client; /* as the model, longer than the evictor */
	struct model *model;
	const char *component;       /* whose events they are; kept; NULL: allot-scheduler */
	uint64_t patience_ns;        /* of opportunistic pods; 0: none is evicted */
	struct sched_audit *audit;   /* NULL: off */
	bool (*may_act)(void *data); /* asked before each look: false: another leads */
	void *data;
};

/* On average one a second is asked for, and so many at once. */
#define EVICTOR_AT_ONCE 8

struct evictor_counts {
	uint64_t evicted;
	uint64_t refused; /* by a disruption budget */
	uint64_t failed;
};

/* -ENOMEM. */
int evictor_start(const struct evictor_terms *terms, struct evictor **ret);
/* What is under way is left as it is. NULL is fine; returns NULL. */
struct evictor *evictor_stop(struct evictor *evictor);

/* NULL: of none. */
struct evictor_counts evictor_counts(const struct evictor *evictor);
