/*
 * Holds back the bindings of a gang's pods until as many as the gang's size are requested, then begins all of them. While
 * a binding waits, kube-scheduler keeps the pod's other resources, such as host memory, so every pod has all it needs at the
 * start. A binding that waits too long fails with EAGAIN; the reservation of the pod stays. Pods outside gangs do not wait.
 * Not thread-safe.
 */
#pragma once

#include "scheduler/bind/bind.h"
#include "scheduler/bind/decision.h"
#include "scheduler/model/model.h"

struct gather;

struct gather_terms {
	struct model *model; /* required; must outlive the gather */
	uint64_t wait_ns;    /* longest wait */
	/* Begins a binding. If the result is 0, `done` is called once, later; otherwise never. */
	int (*start)(void *data, const struct decision *decision, bind_done done, void *of);
	void *data;
};

/* Returns 0 or -ENOMEM. */
int gather_new(const struct gather_terms *terms, struct gather **ret);
/* Drops waiting bindings without calling `done`. `gather` may be NULL; returns NULL. */
struct gather *gather_free(struct gather *gather);

/*
 * Takes a binding that extender_decide() has decided. The binding begins or waits; if it completes the gang, the waiting bindings
 * begin too. Copies the decision. `done` is called once, later: as by bind_start(), or with EAGAIN after the longest wait,
 * or with ECANCELED if the same pod was requested again. Returns the result of start(), -ENOMEM, or -EAGAIN
 * if the pod's reservation is lost.
 */
int gather_bind(struct gather *gather, const struct decision *decision, uint64_t now_ns,
		bind_done done, void *data);

/*
 * Begins bindings whose gang is complete now. Fails those that wait too long or have lost their reservation. Call about once a
 * second.
 */
void gather_advance(struct gather *gather, uint64_t now_ns);
/* Ends all waiting bindings with ECANCELED, because another replica may be the leader. */
void gather_cancel(struct gather *gather);

size_t gather_count(const struct gather *gather);
