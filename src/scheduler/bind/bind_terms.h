/* Settings, counters and the completion callback of bindings: for the binder (bind.h) and its jobs (bind_job.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct kube_client;

/* 0, or NULL, stands for the default. */
struct bind_terms {
	struct kube_client *client; /* must be there, longer than the binder */
	const char *component;      /* the source of its events: "allot-scheduler" */
	uint64_t limit_ns;          /* of one binding, with its wait for the lock: BIND_LIMIT_NS */
	int64_t lock_expiry_s;      /* NODE_LOCK_EXPIRY_S */
	unsigned at_once;           /* nodes with calls under way: BIND_AT_ONCE */
	/* Asked before each write. False: another process leads, and the binding stays as it is. NULL: always true. */
	bool (*may_act)(void *data);
	void *data;
};

/* Less than the 30 s that kube-scheduler waits for an extender in HAMi's configuration. */
#define BIND_LIMIT_NS (UINT64_C(25) * 1000000000)
#define BIND_AT_ONCE 32

struct bind_counts {
	uint64_t succeeded, failed, cancelled;
	uint64_t conflicts;                 /* another writer was faster, and it was tried again */
	uint64_t locks_waited;              /* for the lock of another pod */
	uint64_t locks_taken_over;          /* that were left, or had expired */
	unsigned nodes, waiting, under_way; /* as they are now; the pods of both kinds */
};

/*
 * Code 0: the pod is bound. ETIMEDOUT: unknown, as the server did not answer in time. ECANCELED: left to another leader.
 * Any other: it is not bound, and all that could be undone has been.
 */
typedef void (*bind_done)(void *data, const struct error *err);
