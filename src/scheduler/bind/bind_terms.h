/* Settings and callback of bindings, for the binder (bind.h) and its jobs (bind_job.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct kube_client;

/* A value of 0 or NULL selects the default. */
struct bind_terms {
	struct kube_client *client; /* required; must outlive the binder */
	const char *component;      /* source of the binder's events; default "allot-scheduler" */
	/* longest time of a binding, including its wait for the lock; default BIND_LIMIT_NS */
	uint64_t limit_ns;
	int64_t lock_expiry_s; /* default NODE_LOCK_EXPIRY_S */
	unsigned at_once;      /* how many nodes may have calls under way; default BIND_AT_ONCE */
	/* Asked before each write, unless NULL. False if another replica leads: then the job writes nothing more. */
	bool (*may_act)(void *data);
	void *data;
};

/* Less than the 30 s that kube-scheduler waits for an extender, as HAMi configures it. */
#define BIND_LIMIT_NS (UINT64_C(25) * 1000000000)
#define BIND_AT_ONCE 32

/*
 * Reports a result by the code of `err`: 0 if the pod is bound; ETIMEDOUT if that is unknown, for lack of an answer; ECANCELED
 * if another replica leads. With any other code, the pod is not bound, and writes are undone as far as possible.
 */
typedef void (*bind_done)(void *data, const struct error *err);
