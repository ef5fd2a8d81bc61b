/*
 * Binds one pod by a sequence of API calls. After a write conflict, reads the object again. Call from the client's thread.
 *
 *     read the pod -> read the node [-> read the pod that holds the lock] -> lock the node -> annotate the pod -> bind
 *     (failed)     -> read the pod -> bind-phase=failed -> read the node -> unlock
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
	/* steps that undo a failed binding */
	BIND_UNDO_READ_POD,
	BIND_UNDO_ANNOTATE,
	BIND_UNDO_READ_NODE,
	BIND_UNDO_LOCK,
};

struct bind_job {
	const struct bind_terms *terms;         /* with defaults filled in */
	struct lock_observation *observed_lock; /* the node's lock as last seen, and since when */
	struct decision decision;               /* owned */
	char *shares;                           /* the decision's shares, as text */
	/*
	 * Callbacks of the owner, which may free the job, so the job does nothing after calling one. After on_wait(), the owner
	 * calls job_resume() when in_ns has passed.
	 */
	void (*on_end)(struct bind_job *job, const struct error *err);
	void (*on_wait)(struct bind_job *job, uint64_t in_ns);
	void *owner;
	bind_done done; /* this and the next three fields are for the owner only */
	void *data;
	struct text_index_entry by_uid;
	TAILQ_ENTRY(bind_job) link;

	enum bind_step step;
	struct kube_call *call;
	struct backoff backoff;
	uint64_t until_ns;
	char *pod_version, *node_version; /* versions as last read or written */
	char *holder; /* API path of the pod that holds the lock; NULL if the lock names no pod */
	unsigned refusals; /* number of writes that the server answered with "forbidden" */
	bool is_waiting_for_lock;
	/* whether the write that annotates, locks or binds was sent, so that it may have taken effect */
	bool may_be_annotated, may_be_locked, may_be_bound;
	struct error why; /* during the undo steps: why the binding failed */
};

/* Creates a job that fails at `until_ns` of the monotonic clock. Returns NULL if memory runs out. */
struct bind_job *job_new(const struct bind_terms *terms, const struct decision *decision,
			 uint64_t until_ns);
/* Also drops the job's API call, if one is under way. NULL is allowed; returns NULL. */
struct bind_job *job_free(struct bind_job *job);

void job_resume(struct bind_job *job);

/* Writes the pod's event about the result; the pod is bound if err->code is 0. */
void job_send_event(struct bind_job *job, const struct error *err);

/* Between bind_job.c, which makes the calls, and bind_steps.c, which decides on their results: */

/* Begins a step. This and the next functions may free the job, so do not use it afterwards. */
void job_start_step(struct bind_job *job, enum bind_step step);
/* Ends the job. `err` is NULL if the pod is bound. */
void job_finish(struct bind_job *job, const struct error *err);
/* Undoes what was written, then ends the job as job_finish() does. */
void job_fail(struct bind_job *job, const struct error *why);
/* Repeats the step after a pause from at_least_ns to most_ns, which grows with each repetition (backoff.h). */
void job_retry_later(struct bind_job *job, uint64_t at_least_ns, uint64_t most_ns);

/* Handle an object that a step read. bind_on_holder() gets the pod that holds the lock, or NULL if that pod is gone. */
void bind_on_pod(struct bind_job *job, json_t *object);
void bind_on_node(struct bind_job *job, const json_t *object);
void bind_on_holder(struct bind_job *job, json_t *object);
void bind_undo_on_pod(struct bind_job *job, json_t *object);
void bind_undo_on_node(struct bind_job *job, const json_t *object);
