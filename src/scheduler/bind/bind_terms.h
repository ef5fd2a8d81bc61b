/* Settings, counters and the completion callback of bindings: for the binder (bind.h) and its jobs (bind_job.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct kube_client;

/* A value of 0 or NULL selects the default. */
struct bind_terms {
	struct kube_client *client; /* required; must outlive the binder */
	const char *component;      /* the source of the binder's events: "allot-scheduler" */
	uint64_t limit_ns; /* longest time of a binding, with its wait for the lock; default BIND_LIMIT_NS */
	int64_t lock_expiry_s; /* default NODE_LOCK_EXPIRY_S */
	unsigned at_once;      /* most nodes with calls under way; default BIND_AT_ONCE */
	/*
	 * The binder calls this before each write; NULL: it may always write. If the result is false, another replica leads, and
	 * the binding is left as it is.
	 */
	bool (*may_act)(void *data);
	void *data;
};

/* Less than the 30 s that kube-scheduler waits for an extender in HAMi's configuration. */
#define BIND_LIMIT_NS (UINT64_C(25) * 1000000000)
#define BIND_AT_ONCE 32

struct bind_counts {
	uint64_t succeeded, failed, cancelled;
	uint64_t conflicts;    /* writes that conflicted with another writer and were repeated */
	uint64_t locks_waited; /* waits for the lock of another pod */
	uint64_t locks_taken_over; /* locks taken that were abandoned or expired */
	unsigned nodes, waiting,
		under_way; /* current numbers: nodes, waiting pods, pods with calls under way */
};

/*
 * Reports the result of a binding by the code of err. 0: the pod is bound. ETIMEDOUT: unknown, because the server did not
 * answer in time. ECANCELED: left to another leader. Other codes: the pod is not bound, and everything that could be undone was
 * undone.
 */
typedef void (*bind_done)(void *data, const struct error *err);
