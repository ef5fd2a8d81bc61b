#include "scheduler/bind/bind_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/client/kube_event.h"
#include "kube/client/patch.h"
#include "kube/hami/annotations.h"
#include "kube/util/object.h"
#include "scheduler/bind/bind_annotations.h"

#define PATH_MAX_BYTES 640
/* time to undo a failed binding; short, because other pods wait for the node */
#define UNDO_LIMIT_NS (10 * NSEC_PER_SEC)
#define REFUSALS_MAX 2
/* limit of one call: a server that restarts may never answer */
#define CALL_LIMIT_NS (10 * NSEC_PER_SEC)

void job_start_step(struct bind_job *job, enum bind_step step)
{
	job->step = step;
	job_resume(job);
}

void job_send_event(struct bind_job *job, const struct error *err)
{
	const struct decision *d = &job->decision;
	const struct event_about about = {
		.kind = "Pod", .name = d->pod, .uid = d->uid, .in_namespace = d->pod_namespace
	};
	char text[ERROR_TEXT_MAX + 64];
	if (err->code)
		snprintf(text, sizeof(text), "%s", err->text);
	else
		bind_success_text(d, text, sizeof(text));
	event_send_as(job->terms->component, job->terms->client, &about, err->code != 0,
		      err->code ? BIND_FAIL : BIND_SUCCEED, text, NULL);
}

void job_finish(struct bind_job *job, const struct error *err)
{
	static const struct error none;
	job_send_event(job, err ? err : &none);
	job->on_end(job, err ? err : &none);
}

/* Undoes writes before it calls `on_end`, so that the callback finds no half-made binding. */
void job_fail(struct bind_job *job, const struct error *why)
{
	struct error err = *why;
	if (job->step >= BIND_UNDO_READ_POD) {
		log_warning("the failed binding of pod %s/%s to node %s could not be undone: %s; "
			    "if the node stays locked, its lock is taken over after lock_expiry",
			    job->decision.pod_namespace, job->decision.pod, job->decision.node,
			    why->text);
		err = job->why;
		if (job->may_be_bound)
			err.code = ETIMEDOUT;
		job_finish(job, &err);
		return;
	}
	if (err.code == ETIMEDOUT)
		err.code = EBUSY;
	if (!job->may_be_annotated && !job->may_be_locked && !job->may_be_bound) {
		job_finish(job, &err);
		return;
	}
	job->why = err;
	job->backoff.failures = 0;
	job->until_ns = clock_now_ns() + UNDO_LIMIT_NS;
	job_start_step(job, BIND_UNDO_READ_POD);
}

/* A pause that would exceed the job's time limit ends at the limit, for a last try. */
void job_retry_later(struct bind_job *job, uint64_t at_least_ns, uint64_t most_ns)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t left_ns = job->until_ns > now_ns ? job->until_ns - now_ns : 0;
	uint64_t wait_ns = backoff_next_ns(&job->backoff, at_least_ns);
	wait_ns = wait_ns < most_ns ? wait_ns : most_ns;
	job->on_wait(job, wait_ns < left_ns ? wait_ns : left_ns);
}

/* Returns the step from which to repeat a failed step: before a write is repeated, its object is read again. */
static enum bind_step read_step_of(enum bind_step step)
{
	switch (step) {
	case BIND_READ_HOLDER:
	case BIND_LOCK: return BIND_READ_NODE;
	case BIND_ANNOTATE:
	case BIND_BIND: return BIND_READ_POD;
	case BIND_UNDO_ANNOTATE: return BIND_UNDO_READ_POD;
	case BIND_UNDO_LOCK: return BIND_UNDO_READ_NODE;
	default: return step;
	}
}

/*
 * Whether the failed step may succeed if repeated. A server that has just started forbids everything until it has read its
 * access rules. But a policy may forbid a write for good, so a forbidden write is repeated only REFUSALS_MAX times.
 */
static bool is_transient(struct bind_job *job, const struct error *err)
{
	bool is_write = read_step_of(job->step) != job->step && job->step != BIND_READ_HOLDER;
	if (err->code == EACCES)
		return !is_write || job->refusals++ < REFUSALS_MAX;
	return err->code == EAGAIN || err->code == EBUSY || err->code == ETIMEDOUT ||
	       err->code == ECONNREFUSED;
}

/* Handles the answer that the object does not exist. Returns true if the job has gone on or ended. */
static bool handle_missing(struct bind_job *job)
{
	const struct decision *d = &job->decision;
	struct error err;
	switch (job->step) {
	case BIND_READ_POD:
	case BIND_ANNOTATE:
	case BIND_BIND:
		job->may_be_annotated = job->may_be_bound = false;
		error_set(&err, ENOENT, "pod %s/%s: no longer exists", d->pod_namespace, d->pod);
		break;
	case BIND_READ_NODE:
	case BIND_LOCK:
		job->may_be_locked = false;
		error_set(&err, ENOENT, "node %s: no longer exists", d->node);
		break;
	case BIND_READ_HOLDER: bind_on_holder(job, NULL); return true;
	case BIND_UNDO_READ_POD:
	case BIND_UNDO_ANNOTATE:
		job->may_be_bound = false;
		job_start_step(job, BIND_UNDO_READ_NODE);
		return true;
	case BIND_UNDO_READ_NODE:
	case BIND_UNDO_LOCK: job_finish(job, &job->why); return true;
	default: return false;
	}
	job_fail(job, &err);
	return true;
}

static void handle_error(struct bind_job *job, const struct kube_answer *answer)
{
	struct error err = answer->err;
	if (answer->status == 404 && handle_missing(job))
		return;
	if (is_transient(job, &err) && clock_now_ns() < job->until_ns) {
		job->step = read_step_of(job->step);
		/* After a conflict a short pause suffices: the other client's write is complete. */
		job_retry_later(job, answer->retry_after_ns,
				answer->status == 409 ? 20 * NSEC_PER_MSEC : UINT64_MAX);
		return;
	}
	error_add(&err, 0, "pod %s/%s", job->decision.pod_namespace, job->decision.pod);
	job_fail(job, &err);
}

static bool is_of_node(enum bind_step step)
{
	return step == BIND_READ_NODE || step == BIND_LOCK || step == BIND_UNDO_READ_NODE ||
	       step == BIND_UNDO_LOCK;
}

static bool keep_version(struct bind_job *job, const json_t *object)
{
	const char *version = object_meta_text(object, "resourceVersion");
	char **kept = is_of_node(job->step) ? &job->node_version : &job->pod_version;
	free(*kept);
	*kept = version ? strdup(version) : NULL;
	return *kept != NULL;
}

static void answered(void *data, const struct kube_answer *answer)
{
	struct bind_job *job = data;
	struct error err;
	job->call = NULL;
	if (answer->err.code) {
		handle_error(job, answer);
		return;
	}
	if (job->step == BIND_BIND) {
		job_finish(job, NULL);
		return;
	}
	if (job->step != BIND_READ_HOLDER && !keep_version(job, answer->object)) {
		error_set(&err, EPROTO, "pod %s/%s: the API server's answer has no resourceVersion",
			  job->decision.pod_namespace, job->decision.pod);
		job_fail(job, &err);
		return;
	}
	switch (job->step) {
	case BIND_READ_POD: bind_on_pod(job, answer->object); break;
	case BIND_READ_NODE: bind_on_node(job, answer->object); break;
	case BIND_READ_HOLDER: bind_on_holder(job, answer->object); break;
	case BIND_LOCK:
		job->is_waiting_for_lock = false;
		job_start_step(job, BIND_ANNOTATE);
		break;
	case BIND_ANNOTATE: job_start_step(job, BIND_BIND); break;
	case BIND_UNDO_READ_POD: bind_undo_on_pod(job, answer->object); break;
	case BIND_UNDO_ANNOTATE: job_start_step(job, BIND_UNDO_READ_NODE); break;
	case BIND_UNDO_READ_NODE: bind_undo_on_node(job, answer->object); break;
	default: job_finish(job, &job->why); break;
	}
}

static char *lock_patch(const struct bind_job *job, bool is_taken)
{
	struct node_lock lock = { .since_s = (int64_t)time(NULL) };
	char text[NODE_LOCK_MAX];
	snprintf(lock.pod_namespace, sizeof(lock.pod_namespace), "%s", job->decision.pod_namespace);
	snprintf(lock.pod, sizeof(lock.pod), "%s", job->decision.pod);
	node_lock_format(&lock, text);
	const struct patch_pair pair = { KUBE_NODE_LOCK, is_taken ? text : NULL };
	return patch_metadata(&pair, 1, NULL, 0, job->node_version);
}

/* If the step has no body, *ret is unchanged. Returns false if memory runs out. */
static bool make_body(struct bind_job *job, char **ret)
{
	switch (job->step) {
	case BIND_LOCK: *ret = lock_patch(job, true); break;
	case BIND_ANNOTATE:
		*ret = bind_pod_patch(&job->decision, job->shares, (int64_t)time(NULL),
				      job->pod_version);
		break;
	case BIND_BIND: *ret = bind_body(&job->decision, job->pod_version); break;
	case BIND_UNDO_ANNOTATE: *ret = bind_failed_patch(job->pod_version); break;
	case BIND_UNDO_LOCK: *ret = lock_patch(job, false); break;
	default: return true;
	}
	return *ret != NULL;
}

static void make_path(const struct bind_job *job, char path[PATH_MAX_BYTES])
{
	const struct decision *d = &job->decision;
	if (is_of_node(job->step))
		snprintf(path, PATH_MAX_BYTES, "/api/v1/nodes/%s", d->node);
	else if (job->step == BIND_READ_HOLDER)
		snprintf(path, PATH_MAX_BYTES, "%s", job->holder);
	else
		snprintf(path, PATH_MAX_BYTES, "/api/v1/namespaces/%s/pods/%s%s", d->pod_namespace,
			 d->pod, job->step == BIND_BIND ? "/binding" : "");
}

static void note_write(struct bind_job *job)
{
	job->may_be_locked |= job->step == BIND_LOCK;
	job->may_be_annotated |= job->step == BIND_ANNOTATE;
	job->may_be_bound |= job->step == BIND_BIND;
}

void job_resume(struct bind_job *job)
{
	struct error err;
	char path[PATH_MAX_BYTES];
	cleanup_free char *body = NULL;
	make_path(job, path);
	bool is_made = make_body(job, &body);
	if (body && job->terms->may_act && !job->terms->may_act(job->terms->data)) {
		error_set(&err, ECANCELED,
			  "pod %s/%s: another replica became the leader and binds it",
			  job->decision.pod_namespace, job->decision.pod);
		job->on_end(job, &err);
		return;
	}
	struct kube_request request = { .method = "GET", .path = path, .timeout_ns = CALL_LIMIT_NS };
	if (body) {
		request.method = job->step == BIND_BIND ? "POST" : "PATCH";
		request.type = job->step == BIND_BIND ? KUBE_JSON : KUBE_MERGE_PATCH;
		request.body = body;
	}
	note_write(job);
	if (is_made)
		job->call = kube_call_start(job->terms->client, &request, NULL, answered, job);
	if (!job->call) {
		error_set_errno(&err, ENOMEM, "pod %s/%s: binding", job->decision.pod_namespace,
				job->decision.pod);
		job_fail(job, &err);
	}
}

struct bind_job *job_new(const struct bind_terms *terms, const struct decision *decision,
			 uint64_t until_ns)
{
	struct bind_job *job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	*job = (struct bind_job){ .terms = terms, .until_ns = until_ns };
	if (decision_copy(decision, &job->decision) < 0)
		return job_free(job);
	job->shares = shares_format(&job->decision.shares);
	return job->shares ? job : job_free(job);
}

struct bind_job *job_free(struct bind_job *job)
{
	if (!job)
		return NULL;
	kube_call_drop(job->call);
	decision_free(&job->decision);
	free(job->shares);
	free(job->pod_version);
	free(job->node_version);
	free(job->holder);
	free(job);
	return NULL;
}
