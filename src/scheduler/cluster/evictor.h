/*
 * Evicts opportunistic pods (which borrow unused compute; opportunistic.h) that lacked compute for too long, and pods whose GPU
 * shares another pod needs (model_displace.c). Uses the eviction API (policy/v1), which respects disruption budgets. Each
 * evicted pod gets an event with the reason. Call from the client's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client/kube_client.h"
#include "scheduler/model/model.h"

struct evictor;
struct sched_audit;

struct evictor_terms {
	struct kube_client *client; /* must outlive the evictor, as must the model */
	struct model *model;
	/* Source of the events; kept, not copied; if NULL, allot-scheduler. */
	const char *component;
	/* how long an opportunistic pod may lack compute; 0: for ever, so only a pod of higher priority causes evictions */
	uint64_t patience_ns;
	struct sched_audit *audit; /* NULL if off */
	/* called once a second, before victims are chosen; false: another replica leads, so choose none */
	bool (*may_act)(void *data);
	void *data;
};

/* The evictor evicts at most one pod per second on average, and at most this many at once. */
#define EVICTOR_AT_ONCE 8

struct evictor_counts {
	uint64_t evicted;
	uint64_t refused; /* refused by a disruption budget */
	uint64_t failed;
};

/* Returns 0 or -ENOMEM. */
int evictor_start(const struct evictor_terms *terms, struct evictor **ret);
/* Abandons evictions under way. NULL is allowed; returns NULL. */
struct evictor *evictor_stop(struct evictor *evictor);

/* All are 0 if `evictor` is NULL. */
struct evictor_counts evictor_counts(const struct evictor *evictor);
