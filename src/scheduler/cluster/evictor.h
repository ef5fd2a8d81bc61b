/*
 * Evicts opportunistic pods (opportunistic.h) that have had too little compute for too long, and pods whose room a pod of
 * higher priority needs. Uses the eviction API (policy/v1), which respects disruption budgets, a few pods at a time. The
 * controllers of the evicted pods create new ones, which are placed where there is room. An event of the pod says why it was
 * evicted, and an annotation of the node says which cards are closed to opportunistic pods. Call from the client's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client/kube_client.h"
#include "scheduler/model/model.h"

struct evictor;
struct sched_audit;

struct evictor_terms {
	struct kube_client *client; /* the client and the model must outlive the evictor */
	struct model *model;
	/* Source of the events; kept, not copied; if NULL, allot-scheduler. */
	const char *component;
	/* How long opportunistic pods may lack compute; if 0, no pod is evicted for that reason. */
	uint64_t patience_ns;
	struct sched_audit *audit; /* NULL if off */
	/* Called before each check; returns false if another replica leads. */
	bool (*may_act)(void *data);
	void *data;
};

/* Limits evictions to one per second on average, with bursts of up to this many. */
#define EVICTOR_AT_ONCE 8

struct evictor_counts {
	uint64_t evicted;
	uint64_t refused; /* refused by a disruption budget */
	uint64_t failed;
};

/* Returns 0 or -ENOMEM. */
int evictor_start(const struct evictor_terms *terms, struct evictor **ret);
/* Abandons evictions under way. `evictor` may be NULL; returns NULL. */
struct evictor *evictor_stop(struct evictor *evictor);

/* Returns the numbers of evictions so far; all are 0 if `evictor` is NULL. */
struct evictor_counts evictor_counts(const struct evictor *evictor);
