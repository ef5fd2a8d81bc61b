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
#ifndef ALLOT_SCHED_BIND_H
#define ALLOT_SCHED_BIND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "kube/client.h"
#include "sched/decision.h"

struct binder;

/* 0, or NULL, stands for the default. */
struct bind_terms {
	struct kube_client *client; /* must be there, longer than the binder */
	const char *component;      /* whose events they are: "allot-scheduler" */
	uint64_t limit_ns;          /* of one binding, with its wait for the lock: BIND_LIMIT_NS */
	int64_t lock_expiry_s;      /* NODE_LOCK_EXPIRY_S */
	unsigned at_once;           /* nodes with calls under way: BIND_AT_ONCE */
	/* Asked before each write. false: somebody else is the leader, and the binding is left as it is. NULL: always. */
	bool (*may_act)(void *data);
	void *data;
};

/* Less than the 30 s that kube-scheduler waits for an extender in HAMi's configuration. */
#define BIND_LIMIT_NS (UINT64_C(25) * 1000000000)
#define BIND_AT_ONCE 32

struct bind_counts {
	uint64_t succeeded, failed, cancelled;
	uint64_t conflicts;                 /* somebody was faster, and it was tried again */
	uint64_t locks_waited;              /* for the lock of another pod */
	uint64_t locks_taken_over;          /* that were left, or had expired */
	unsigned nodes, waiting, under_way; /* as they are now; the pods of both kinds */
};

/* -ENOMEM. */
int binder_new(const struct bind_terms *terms, struct binder **ret);
/* Bindings under way are left as they are, and nobody is told: see binder_cancel(). NULL is fine; returns NULL. */
struct binder *binder_free(struct binder *binder);

/*
 * Of the result: code 0: the pod is bound. ETIMEDOUT: whether it is, the server did not say in time. ECANCELED: left to
 * another leader. Any other: it is not bound, and what could be undone has been.
 */
typedef void (*bind_done)(void *data, const struct error *err);

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

#endif
