/*
 * Carries out decisions: takes the node lock, annotates the pod, creates the Binding and writes the event. A device plugin uses
 * the node's lock to find the pod of an Allocate call, and releases the lock when the last container has its shares. So a node
 * binds one pod at a time, in order of arrival. Different nodes do not wait for each other.
 *
 *     binder --- node n1 --- pod a: calls under way        at most bind_terms.at_once nodes have calls under way
 *            |           `-- pod b, pod c: wait
 *            `-- node n2 --- pod d: waits until the lock of another scheduler's pod is released
 *
 * Every write names the version of the object that was read, and the Binding names the annotated version of the pod. So no
 * write of another client is overwritten. Call from the client's thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "scheduler/bind/bind_terms.h"
#include "scheduler/bind/decision.h"

struct binder;

/* Returns 0 or -ENOMEM. */
int binder_new(const struct bind_terms *terms, struct binder **ret);
/* Abandons bindings under way without calling `done`; see binder_cancel(). `binder` may be NULL; returns NULL. */
struct binder *binder_free(struct binder *binder);

/*
 * Starts a binding and copies the decision. On success returns 0, and `done` is called once, after this function has returned.
 * Returns -EALREADY if the pod's binding is under way, or -ENOMEM.
 */
int bind_start(struct binder *binder, const struct decision *decision, bind_done done, void *data);

bool bind_is_under_way(const struct binder *binder, const char *uid);

/* Describes what a pod's binding waits for. The strings belong to the binder and are valid until its next call. */
struct bind_view {
	const char *node;
	unsigned before;  /* number of pods ahead in the node's queue */
	const char *lock; /* text of the awaited lock (node_lock.h); NULL if none */
	uint64_t left_ns; /* time until the binding fails */
};
/* Describes the binding of the pod `uid`. Returns false if no binding of that pod is under way. */
bool bind_look(const struct binder *binder, const char *uid, struct bind_view *ret);

/* Ends all bindings with ECANCELED, because another replica may be the leader. */
void binder_cancel(struct binder *binder);

/* Call when a watch reports a node, so that a binding that waits for the node's lock sees its release at once. */
void binder_node_seen(struct binder *binder, const json_t *node);

struct bind_counts binder_counts(const struct binder *binder);
