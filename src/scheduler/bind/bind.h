/*
 * Carries out decisions: takes the node's lock, annotates the pod, creates the Binding and writes the event. By the node's
 * lock, a device plugin finds the pod of an Allocate call. The plugin releases the lock when the pod's last container has its
 * shares. So a node binds one pod at a time, in order of arrival; nodes do not wait for each other.
 *
 *     binder --- node n1 --- pod a: calls under way        at most bind_terms.at_once nodes have calls under way
 *            |           `-- pod b, pod c: wait
 *            `-- node n2 --- pod d: waits until the lock of another scheduler's pod is released
 *
 * Every write names the version of the object that was read, and the Binding names the version of the annotated pod. The server
 * refuses a write if the object has changed since, so no other client's write is lost. Call from the client's thread.
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
/* Abandons bindings without calling `done` (binder_cancel() calls it). NULL is allowed; returns NULL. */
struct binder *binder_free(struct binder *binder);

/* Copies the decision. Returns 0 and later calls `done` once; or -EALREADY if the pod is being bound, or -ENOMEM. */
int bind_start(struct binder *binder, const struct decision *decision, bind_done done, void *data);

bool bind_is_in_progress(const struct binder *binder, const char *uid);

struct bind_status {
	const char *node;
	unsigned before;  /* number of pods ahead in the node's queue */
	const char *lock; /* text of the awaited lock (node_lock.h); NULL if none */
	uint64_t left_ns; /* time until the binding fails */
};
/* Tells what a pod's binding waits for; false if the pod is not being bound. Strings are valid until the next call. */
bool bind_get_status(const struct binder *binder, const char *uid, struct bind_status *ret);

/* Ends all bindings; `done` gets ECANCELED. Call when this replica no longer leads: the next leader may bind the pods. */
void binder_cancel(struct binder *binder);

/* Call when a watch reports the node: a binding that waits for the node's lock goes on if the lock is free. */
void binder_node_changed(struct binder *binder, const json_t *node);
