#include "scheduler/bind/bind_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "kube/hami/annotations.h"
#include "kube/util/sanitize.h"
#include "scheduler/bind/bind_annotations.h"

/* The watch may report a released lock late, so a job that waits for the lock also reads it this often. */
#define LOCK_READ_INTERVAL_NS (2 * NSEC_PER_SEC)

static const char *annotation(const json_t *object, const char *name)
{
	const json_t *meta = json_object_get(object, "metadata");
	return json_string_value(json_object_get(json_object_get(meta, "annotations"), name));
}

void bind_on_pod(struct bind_job *job, json_t *object)
{
	struct kube_pod *pod = NULL;
	struct error err;
	int r = pod_read(object, &pod, &err);
	bool is_bound = r >= 0 && *pod->node;
	bool is_annotated = r >= 0 && (!job->decision.shares.count ||
				       bind_is_annotated(&job->decision, job->shares, pod));
	if (r >= 0)
		r = bind_check_pod(&job->decision, pod, &err);
	pod_free(pod);
	if (r >= 0 && is_bound && !is_annotated)
		r = error_set(
			&err, ESTALE,
			"pod %s/%s: is already bound to node %s, with other GPU shares: only one scheduler may serve this pod",
			job->decision.pod_namespace, job->decision.pod, job->decision.node);
	if (r < 0)
		job_fail(job, &err);
	else if (is_bound)
		job_finish(job, NULL); /* bound by an earlier call, whose answer was lost */
	else if (!job->decision.shares.count)
		job_start_step(job, BIND_BIND);
	else
		job_start_step(job, job->may_be_locked ? BIND_ANNOTATE : BIND_READ_NODE);
}

/* If the pod is bound after all, the job succeeds. If annotations say that it is being bound, annotates the failure. */
void bind_undo_on_pod(struct bind_job *job, json_t *object)
{
	struct kube_pod *pod = NULL;
	bool is_ours = pod_read(object, &pod, NULL) >= 0 && !strcmp(pod->uid, job->decision.uid) &&
		       (!job->decision.shares.count ||
			bind_is_annotated(&job->decision, job->shares, pod));
	bool is_bound = is_ours && !strcmp(pod->node, job->decision.node);
	bool is_open = is_ours && !*pod->node && pod->bind_phase == BIND_ALLOCATING;
	pod_free(pod);
	if (is_bound && job->may_be_bound) {
		job_finish(job, NULL);
		return;
	}
	job->may_be_bound = false;
	job_start_step(job, is_open ? BIND_UNDO_ANNOTATE : BIND_UNDO_READ_NODE);
}

static void wait_for_lock(struct bind_job *job, const struct node_lock *lock)
{
	const struct decision *d = &job->decision;
	struct error err;
	job->is_waiting_for_lock = true;
	job->step = BIND_READ_NODE;
	if (clock_now_ns() < job->until_ns) {
		job_retry_later(job, 0, LOCK_READ_INTERVAL_NS);
		return;
	}
	error_set(&err, EBUSY,
		  "node %s: %s%s%s%s holds the node's lock (" KUBE_NODE_LOCK
		  " is '%.200s') and did not release it within %llu s (bind_limit)",
		  d->node, lock && *lock->pod ? "pod " : "an unknown client",
		  lock && *lock->pod ? lock->pod_namespace : "", lock && *lock->pod ? "/" : "",
		  lock && *lock->pod ? lock->pod : "", job->observed_lock->text,
		  (unsigned long long)(job->terms->limit_ns / NSEC_PER_SEC));
	error_sanitize(&err, 0);
	job_fail(job, &err);
}

static void take_over(struct bind_job *job, const char *why)
{
	log_info("node %s: lock '%s' %s: taken over for pod %s/%s", job->decision.node,
		 job->observed_lock->text, why, job->decision.pod_namespace, job->decision.pod);
	job_start_step(job, BIND_LOCK);
}

static int name_holder(struct bind_job *job, const struct node_lock *lock)
{
	free(job->holder);
	if (asprintf(&job->holder, "/api/v1/namespaces/%s/pods/%s", lock->pod_namespace,
		     lock->pod) < 0)
		job->holder = NULL;
	return job->holder ? 0 : -ENOMEM;
}

/* Whether the name needs no escapes in a path. */
static bool is_plain(const char *name)
{
	return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == strlen(name);
}

/* Before allotd stops, it removes KUBE_NODE_REGISTER. Then it serves only pods that already held the lock. */
static int check_cards(const struct decision *d, const json_t *node, struct error *err)
{
	const char *cards = annotation(node, KUBE_NODE_REGISTER);
	for (size_t i = 0; i < d->shares.count; i++)
		if (!cards || !strstr(cards, d->shares.share[i].card))
			return error_set(
				err, ESTALE,
				"node %s: no longer offers GPU %s: its allotd is stopping, or the GPU was removed",
				d->node, d->shares.share[i].card);
	return 0;
}

void bind_on_node(struct bind_job *job, const json_t *object)
{
	const struct decision *d = &job->decision;
	struct error err;
	if (check_cards(d, object, &err) < 0) {
		job_fail(job, &err);
		return;
	}
	struct node_lock lock;
	const struct lock_query query = { .text = annotation(object, KUBE_NODE_LOCK),
					  .pod_namespace = d->pod_namespace,
					  .pod = d->pod,
					  .now_s = (int64_t)time(NULL),
					  .expiry_s = job->terms->lock_expiry_s,
					  .now_ns = clock_now_ns() };
	switch (lock_check(job->observed_lock, &query, &lock)) {
	case LOCK_FREE:
	case LOCK_OWN: job_start_step(job, BIND_LOCK); return;
	case LOCK_EXPIRED: take_over(job, "has expired"); return;
	case LOCK_HELD: break;
	}
	if (is_plain(lock.pod_namespace) && is_plain(lock.pod) && name_holder(job, &lock) >= 0)
		job_start_step(job, BIND_READ_HOLDER);
	else
		wait_for_lock(job, &lock);
}

/* Takes the lock over if the pod that holds it (`object`; NULL if gone) no longer needs it; otherwise waits. */
void bind_on_holder(struct bind_job *job, json_t *object)
{
	struct kube_pod *pod = NULL;
	struct node_lock lock = { 0 };
	bool is_read = !object || pod_read(object, &pod, NULL) >= 0;
	bool is_abandoned = is_read &&
			    lock_is_abandoned(pod, job->decision.node,
					      clock_now_ns() - job->observed_lock->since_ns);
	pod_free(pod);
	if (is_abandoned) {
		take_over(job, "belongs to a pod that no longer needs it");
		return;
	}
	node_lock_parse(job->observed_lock->text, &lock, NULL);
	wait_for_lock(job, &lock);
}

void bind_undo_on_node(struct bind_job *job, const json_t *object)
{
	const char *text = annotation(object, KUBE_NODE_LOCK);
	struct node_lock lock;
	if (text && node_lock_parse(text, &lock, NULL) >= 0 &&
	    node_lock_is_of(&lock, job->decision.pod_namespace, job->decision.pod))
		job_start_step(job, BIND_UNDO_LOCK);
	else
		job_finish(job, &job->why);
}
