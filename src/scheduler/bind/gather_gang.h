/*
 * Holds back the bindings of a gang (pods that are placed together or not at all; gang/pod_gang.h). Once bind calls have come
 * for as many pods as the gang's size, starts all these bindings. While a binding waits, kube-scheduler keeps the pod's other
 * resources, such as host memory. A binding that waits too long fails with EAGAIN, but the pod's GPUs stay reserved. Pods
 * outside gangs do not wait. Not thread-safe.
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
 * Accepts a binding that extender_decide() decided; copies the decision. Starts the binding, or keeps it until bind calls for
 * the whole gang have come. `done` is called once, later: as by bind_start(), with EAGAIN after the longest wait, or with
 * ECANCELED if a second bind call for the pod arrives. Returns start()'s result, -ENOMEM, or -EAGAIN if the pod's reservation
 * is lost.
 */
int gather_bind(struct gather *gather, const struct decision *decision, uint64_t now_ns,
		bind_done done, void *data);

/*
 * Starts the waiting bindings that model_bind_permit() permits; fails those that waited for wait_ns or lost their reservation.
 * Call about once a second.
 */
void gather_advance(struct gather *gather, uint64_t now_ns);
/* Ends all waiting bindings; `done` gets ECANCELED. Call when this replica ceases to lead. */
void gather_cancel(struct gather *gather);

size_t gather_count(const struct gather *gather);
