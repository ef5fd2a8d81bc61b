/*
 * Holds back the bindings of a gang (pods that are placed together or not at all) until kube-scheduler has sent bind calls for
 * as many pods as the gang's size. Meanwhile kube-scheduler keeps the pods' other resources, such as host memory. A binding
 * that waits too long fails with EAGAIN, but the pod's GPUs stay reserved. Pods outside gangs do not wait. Not thread-safe.
 */
#pragma once

#include "scheduler/bind/bind.h"
#include "scheduler/bind/decision.h"
#include "scheduler/model/model.h"

struct gather;

struct gather_terms {
	struct model *model; /* required; must outlive the gather */
	uint64_t wait_ns;    /* longest wait of a binding for its gang */
	/* Starts a binding. Returns 0 if done(of, ...) will be called once, later; otherwise it is never called. */
	int (*start)(void *data, const struct decision *decision, bind_done done, void *of);
	void *data;
};

/* Returns 0 or -ENOMEM. */
int gather_new(const struct gather_terms *terms, struct gather **ret);
/* Drops waiting bindings without calling `done`. NULL is allowed; returns NULL. */
struct gather *gather_free(struct gather *gather);

/*
 * Starts a binding that extender_decide() decided, or keeps it until bind calls for the whole gang have come. Copies the
 * decision. `done` is called once, later: as by bind_start(), with EAGAIN after the longest wait, or with ECANCELED if a second
 * bind call for the pod arrives. Returns start()'s result, -ENOMEM, or -EAGAIN if the pod's reservation is lost.
 */
int gather_bind(struct gather *gather, const struct decision *decision, uint64_t now_ns,
		bind_done done, void *data);

/* Call about once a second. Starts permitted bindings; fails those that waited for wait_ns or lost their reservation. */
void gather_advance(struct gather *gather, uint64_t now_ns);
/* Ends all waiting bindings; `done` gets ECANCELED. Call when this replica no longer leads. */
void gather_cancel(struct gather *gather);

size_t gather_count(const struct gather *gather);
