/*
 * Carries decisions out: node lock, annotations of the pod, Binding, event. A device plugin finds the pod that an
 * Allocate is for by the node's lock, and releases that when the last container has its shares, so a node takes one
 * pod after the other, in the order in which they came; nodes do not wait for each other.
 *
 *     binder --- node n1 --- pod a: calls under way        at most so many nodes have calls under way at once
 *            |           `-- pod b, pod c: wait
 *            `-- node n2 --- pod d: waits until the lock of another scheduler's pod is released
 *
 * Every write is for the object as it was read, and the Binding for the pod as it was annotated: whoever was faster is
 * not overwritten. The client's thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "scheduler/bind/bind_terms.h"
#include "scheduler/bind/decision.h"

struct binder;

/* -ENOMEM. */
int binder_new(const struct bind_terms *terms, struct binder **ret);
/* Bindings under way are left as they are, and nobody is told: see binder_cancel(). NULL is fine; returns NULL. */
struct binder *binder_free(struct binder *binder);

/*
 * Of the decision a copy is made. `done` is called once, and not before this returns. -EALREADY: the pod's binding is under
 * way; -ENOMEM.
 */
int bind_start(struct binder *binder, const struct decision *decision, bind_done done, void *data);

bool bind_is_under_way(const struct binder *binder, const char *uid);

/* What a pod's binding waits for; texts are the binder's, until it is called next. */
struct bind_view {
	const char *node;
	unsigned before;  /* pods that are bound to that node first */
	const char *lock; /* that it waits for, as node_lock.h has it; NULL: none */
	uint64_t left_ns; /* until it is given up */
};
/* false: no binding of that pod is under way. */
bool bind_look(const struct binder *binder, const char *uid, struct bind_view *ret);

/* Somebody else may be the leader: ends all, with ECANCELED. */
void binder_cancel(struct binder *binder);

/* A node as a watch shows it: whoever waits for its lock learns at once that it was released. */
void binder_node_seen(struct binder *binder, const json_t *node);

struct bind_counts binder_counts(const struct binder *binder);
