/* Defines the settings, counters and completion callback of bindings, for the binder (bind.h) and its jobs (bind_job.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct kube_client;

/* A value of 0 or NULL selects the default. */
struct bind_terms {
	struct kube_client *client; /* required; must outlive the binder */
	const char *component;      /* the source of the binder's events: "allot-scheduler" */
	/* longest time of a binding, including its wait for the lock; default BIND_LIMIT_NS */
	uint64_t limit_ns;
	int64_t lock_expiry_s; /* default NODE_LOCK_EXPIRY_S */
	unsigned at_once;      /* how many nodes may have calls under way; default BIND_AT_ONCE */
	/*
	 * Called before each write; if NULL, every write is allowed. Returns false if another replica leads; then the job makes
	 * no more writes and undoes none.
	 */
	bool (*may_act)(void *data);
	void *data;
};

/* Less than the 30 s that kube-scheduler waits for an extender, as HAMi configures it. */
#define BIND_LIMIT_NS (UINT64_C(25) * 1000000000)
#define BIND_AT_ONCE 32

struct bind_counts {
	uint64_t succeeded, failed, cancelled;
	uint64_t conflicts; /* writes that were repeated because another client had changed the object */
	uint64_t locks_waited;     /* waits for the lock of another pod */
	uint64_t locks_taken_over; /* locks taken that were abandoned or expired */
	/*
	 * Numbers at this moment: `nodes` counts the nodes that have pods to bind or are locked, `waiting` the pods that wait
	 * for another pod's binding, and `under_way` the pods being bound.
	 */
	unsigned nodes, waiting, under_way;
};

/*
 * Reports a binding's result by err's code: 0 if the pod is bound; ETIMEDOUT if no answer came in time, so the result is
 * unknown; ECANCELED if another replica leads and may finish the binding. With any other code, the pod is not bound, and all
 * writes are undone as far as possible.
 */
typedef void (*bind_done)(void *data, const struct error *err);
