/*
 * One binding: its calls, one after the other.
 *
 *     read the pod -> read the node [-> read the lock's pod] -> lock -> annotate -> bind
 *     (failed)     -> read the pod -> bind-phase=failed -> read the node -> unlock
 *
 * What was read before a write that somebody was faster with is read again. The client's thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/text_index.h"
#include "kube/hami/pod.h"
#include "kube/util/backoff.h"
#include "scheduler/bind/bind_lock.h"
#include "scheduler/bind/bind_terms.h"
#include "scheduler/bind/decision.h"

enum bind_step {
	BIND_READ_POD,
	BIND_READ_NODE,
	BIND_READ_HOLDER, /* the pod that the lock names */
	BIND_LOCK,
	BIND_ANNOTATE,
	BIND_BIND,
	/* It has failed: */
	BIND_UNDO_READ_POD,
	BIND_UNDO_ANNOTATE,
	BIND_UNDO_READ_NODE,
	BIND_UNDO_LOCK,
};

struct bind_job {
	const struct bind_terms *terms; /* with no defaults left */
	struct bind_counts *counts;
	struct lock_sight *sight; /* the node's */
	struct decision decision; /* owned */
	char *shares;             /* the decision's, as text */
	/* Both may free the job, and are the last that it does. */
	void (*ended)(struct bind_job *job, const struct error *err);
	void (*waits)(struct bind_job *job,
		      uint64_t in_ns); /* no call is under way: job_go_on() after that time */
	void *owner;
	bind_done done; /* the owner's, as these */
	void *data;
	struct text_index_entry by_uid;
	TAILQ_ENTRY(bind_job) link;

	enum bind_step step;
	struct kube_call *call;
	struct backoff backoff;
	uint64_t until_ns;
	char *pod_version, *node_version; /* as they were read, or written, last */
	char *holder;      /* the path of the pod that holds the lock; NULL: nobody is named */
	unsigned refusals; /* of writes, by whoever says what we may do */
	bool is_waiting_for_lock;
	bool may_be_annotated, may_be_locked, may_be_bound; /* a write was begun */
	struct error why;                                   /* while it is undone */
};

/* `until_ns`: when to give up, by the monotonic clock. NULL: no memory. */
struct bind_job *job_new(const struct bind_terms *terms, const struct decision *decision,
			 uint64_t until_ns);
/* A call under way is dropped. NULL is fine; returns NULL. */
struct bind_job *job_free(struct bind_job *job);

/* Begins its next call. */
void job_go_on(struct bind_job *job);

/* What has come of it, for whoever looks at the pod. Of code 0: it is bound. */
void job_tell_event(struct bind_job *job, const struct error *err);

/* ---- between bind_job.c, which makes the calls, and bind_steps.c, which decides on their results ---- */

/* Each is the last that is done with a job for now: job_finish() and job_fail() may free it. */
void job_go(struct bind_job *job, enum bind_step step);
/* `err` NULL: the pod is bound. */
void job_finish(struct bind_job *job, const struct error *err);
/* As job_finish(), after what was written is undone. */
void job_fail(struct bind_job *job, const struct error *why);
/* Until the step is done again: longer each time, within these bounds. */
void job_rest(struct bind_job *job, uint64_t at_least_ns, uint64_t most_ns);

/* What was read: the pod, the node, the pod that its lock names (NULL: it is gone); and, to undo it, the first two again. */
void bind_pod_came(struct bind_job *job, json_t *object);
void bind_node_came(struct bind_job *job, const json_t *object);
void bind_holder_came(struct bind_job *job, json_t *object);
void bind_failed_pod_came(struct bind_job *job, json_t *object);
void bind_failed_node_came(struct bind_job *job, const json_t *object);
