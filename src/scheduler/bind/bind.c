#include "scheduler/bind/bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kube/client/kube_client.h"
#include "kube/hami/annotations.h"
#include "scheduler/bind/bind_job.h"

enum slot {
	SLOT_NONE,
	SLOT_QUEUED,
	SLOT_HELD, /* may have a call under way */
};

/* The pods to be bound to one node; the first is being bound. Without pods, exists only while the node is locked. */
struct bind_node {
	struct binder *binder;
	char *name;
	TAILQ_HEAD(, bind_job) jobs;
	struct lock_observation observed_lock;
	struct alarm resume;
	struct alarm due; /* rings when the first waiting job's time limit is over */
	enum slot slot;   /* changed only by acquire_slot() and release_slot() */
	struct text_index_entry by_name;
	TAILQ_ENTRY(bind_node) link, slot_queue;
};

struct binder {
	struct bind_terms terms;
	unsigned active;
	TAILQ_HEAD(, bind_node) nodes;
	TAILQ_HEAD(, bind_node) slot_queue; /* nodes with SLOT_QUEUED */
	struct text_index by_name, by_uid;
};

/* Whether the node may have calls under way now. If not, queues it, and resume_node() is called when it gets a slot. */
static bool acquire_slot(struct bind_node *node)
{
	struct binder *b = node->binder;
	if (node->slot == SLOT_NONE && b->active < b->terms.at_once) {
		node->slot = SLOT_HELD;
		b->active++;
	} else if (node->slot == SLOT_NONE) {
		node->slot = SLOT_QUEUED;
		TAILQ_INSERT_TAIL(&b->slot_queue, node, slot_queue);
	}
	return node->slot == SLOT_HELD;
}

/* Passes the slot on to the next node. An alarm starts that node, because this function's caller is not finished yet. */
static void release_slot(struct bind_node *node)
{
	struct binder *b = node->binder;
	struct bind_node *next = NULL;
	if (node->slot == SLOT_QUEUED)
		TAILQ_REMOVE(&b->slot_queue, node, slot_queue);
	else if (node->slot == SLOT_HELD)
		next = TAILQ_FIRST(&b->slot_queue);
	b->active -= node->slot == SLOT_HELD && !next;
	node->slot = SLOT_NONE;
	if (!next)
		return;
	TAILQ_REMOVE(&b->slot_queue, next, slot_queue);
	next->slot = SLOT_HELD;
	alarm_set(kube_client_reactor(b->terms.client), &next->resume, 0);
}

static struct bind_node *drop_node(struct bind_node *node)
{
	struct reactor *reactor = kube_client_reactor(node->binder->terms.client);
	release_slot(node);
	alarm_clear(reactor, &node->resume);
	alarm_clear(reactor, &node->due);
	text_index_remove(&node->binder->by_name, &node->by_name);
	TAILQ_REMOVE(&node->binder->nodes, node, link);
	free(node->name);
	free(node);
	return NULL;
}

/* The first job is being bound, so the alarm is for the second, the first that waits. */
static void set_due(struct bind_node *node)
{
	struct reactor *reactor = kube_client_reactor(node->binder->terms.client);
	const struct bind_job *first = TAILQ_FIRST(&node->jobs);
	const struct bind_job *second = first ? TAILQ_NEXT(first, link) : NULL;
	uint64_t now_ns = clock_now_ns();
	if (second)
		alarm_set(reactor, &node->due,
			  second->until_ns > now_ns ? second->until_ns - now_ns : 0);
	else
		alarm_clear(reactor, &node->due);
}

static void remove_job(struct bind_node *node, struct bind_job *job)
{
	struct binder *b = node->binder;
	TAILQ_REMOVE(&node->jobs, job, link);
	text_index_remove(&b->by_uid, &job->by_uid);
}

static void report_result(struct binder *b, struct bind_job *job, const struct error *err)
{
	bind_done done = job->done;
	void *data = job->data;
	const struct error why = *err;
	job_free(job);
	done(data, &why);
}

/* Starts the next job. Calls the ended job's callback last, because it may start another binding. */
static void job_ended(struct bind_job *job, const struct error *err)
{
	struct bind_node *node = job->owner;
	struct binder *b = node->binder;
	remove_job(node, job);
	release_slot(node);
	if (!TAILQ_EMPTY(&node->jobs))
		alarm_set(kube_client_reactor(b->terms.client), &node->resume, 0);
	else if (!node->observed_lock.text[0])
		drop_node(node);
	else
		alarm_clear(kube_client_reactor(b->terms.client), &node->due);
	report_result(b, job, err);
}

/*
 * If a later pod in the queue holds the lock that the first job waits for, moves that pod to the front. This happens after a
 * scheduler died while it bound the pod. Returns whether it moved a pod.
 */
static bool move_holder_first(struct bind_node *node)
{
	struct bind_job *first = TAILQ_FIRST(&node->jobs), *job;
	struct node_lock lock;
	if (first->call || node_lock_parse(node->observed_lock.text, &lock, NULL) < 0)
		return false;
	TAILQ_FOREACH(job, &node->jobs, link)
		if (node_lock_is_of(&lock, job->decision.pod_namespace, job->decision.pod))
			break;
	if (!job || job == first)
		return false;
	TAILQ_REMOVE(&node->jobs, job, link);
	TAILQ_INSERT_HEAD(&node->jobs, job, link);
	return true;
}

static void job_waiting(struct bind_job *job, uint64_t in_ns)
{
	struct bind_node *node = job->owner;
	release_slot(node);
	bool is_urgent = job->is_waiting_for_lock && move_holder_first(node);
	alarm_set(kube_client_reactor(node->binder->terms.client), &node->resume,
		  is_urgent ? 0 : in_ns);
}

static void resume_node(void *data)
{
	struct bind_node *node = data;
	struct bind_job *first = TAILQ_FIRST(&node->jobs);
	if (!first) {
		release_slot(node);
		return;
	}
	set_due(node);
	if (!first->call && acquire_slot(node))
		job_resume(first);
}

/* Fails the second job, the first that waits, if its time is up. Later jobs have later limits. */
static void fail_expired(void *data)
{
	struct bind_node *node = data;
	struct binder *b = node->binder;
	struct bind_job *first = TAILQ_FIRST(&node->jobs);
	struct bind_job *job = first ? TAILQ_NEXT(first, link) : NULL;
	struct error err;
	if (!job || job->until_ns > clock_now_ns()) {
		set_due(node);
		return;
	}
	error_set(&err, EBUSY,
		  "node %s: the binding of pod %s/%s, which is ahead in the queue, did not end within %llu s "
		  "(bind_limit); kube-scheduler tries again",
		  node->name, first->decision.pod_namespace, first->decision.pod,
		  (unsigned long long)(b->terms.limit_ns / NSEC_PER_SEC));
	remove_job(node, job);
	set_due(node);
	job_send_event(job, &err);
	report_result(b, job, &err);
}

static struct bind_node *add_node(struct binder *b, const char *name)
{
	struct bind_node *node = calloc(1, sizeof(*node));
	char *copy = strdup(name);
	if (!node || !copy) {
		free(node);
		free(copy);
		return NULL;
	}
	*node = (struct bind_node){ .binder = b, .name = copy };
	node->resume = (struct alarm){ .handler = resume_node, .data = node };
	node->due = (struct alarm){ .handler = fail_expired, .data = node };
	TAILQ_INIT(&node->jobs);
	TAILQ_INSERT_TAIL(&b->nodes, node, link);
	text_index_add(&b->by_name, &node->by_name, copy, node);
	return node;
}

int bind_start(struct binder *b, const struct decision *decision, bind_done done, void *data)
{
	if (text_index_find(&b->by_uid, decision->uid))
		return -EALREADY;
	struct bind_job *job = job_new(&b->terms, decision, clock_now_ns() + b->terms.limit_ns);
	struct bind_node *node = text_index_find(&b->by_name, decision->node);
	if (job && !node)
		node = add_node(b, decision->node);
	if (!job || !node) {
		job_free(job);
		return -ENOMEM;
	}
	job->observed_lock = &node->observed_lock;
	job->on_end = job_ended;
	job->on_wait = job_waiting;
	job->owner = node;
	job->done = done;
	job->data = data;
	bool is_first = TAILQ_EMPTY(&node->jobs);
	bool is_waited_for = !is_first && TAILQ_FIRST(&node->jobs)->is_waiting_for_lock;
	TAILQ_INSERT_TAIL(&node->jobs, job, link);
	text_index_add(&b->by_uid, &job->by_uid, job->decision.uid, job);
	if (is_first || (is_waited_for && move_holder_first(node)))
		alarm_set(kube_client_reactor(b->terms.client), &node->resume, 0);
	else
		set_due(node);
	return 0;
}

bool bind_is_in_progress(const struct binder *b, const char *uid)
{
	return text_index_find(&b->by_uid, uid) != NULL;
}

bool bind_get_status(const struct binder *b, const char *uid, struct bind_status *ret)
{
	const struct bind_job *job = text_index_find(&b->by_uid, uid), *other;
	if (!job)
		return false;
	const struct bind_node *node = job->owner;
	const struct bind_job *first = TAILQ_FIRST(&node->jobs);
	uint64_t now_ns = clock_now_ns();
	struct bind_status view = { .node = node->name };
	if (first->is_waiting_for_lock && node->observed_lock.text[0])
		view.lock = node->observed_lock.text;
	for (other = first; other != job; other = TAILQ_NEXT(other, link))
		view.before++;
	if (job->until_ns > now_ns)
		view.left_ns = job->until_ns - now_ns;
	*ret = view;
	return true;
}

void binder_cancel(struct binder *b)
{
	struct bind_node *node;
	struct error err;
	while ((node = TAILQ_FIRST(&b->nodes))) {
		struct bind_job *job = TAILQ_FIRST(&node->jobs);
		if (!job) {
			drop_node(node);
			continue;
		}
		error_set(&err, ECANCELED,
			  "pod %s/%s: not bound, since this replica of allot-scheduler no longer leads; "
			  "kube-scheduler tries again",
			  job->decision.pod_namespace, job->decision.pod);
		remove_job(node, job);
		if (TAILQ_EMPTY(&node->jobs))
			drop_node(node);
		report_result(b, job, &err);
	}
}

void binder_node_changed(struct binder *b, const json_t *object)
{
	const json_t *meta = json_object_get(object, "metadata");
	const char *name = json_string_value(json_object_get(meta, "name"));
	struct bind_node *node = name ? text_index_find(&b->by_name, name) : NULL;
	if (!node)
		return;
	const char *lock = json_string_value(
		json_object_get(json_object_get(meta, "annotations"), KUBE_NODE_LOCK));
	struct bind_job *job = TAILQ_FIRST(&node->jobs);
	if (job && job->is_waiting_for_lock && !job->call && !lock)
		alarm_set(kube_client_reactor(b->terms.client), &node->resume, 0);
	else if (!job && !lock)
		drop_node(node);
}

int binder_new(const struct bind_terms *terms, struct binder **ret)
{
	struct binder *b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->terms = *terms;
	if (!b->terms.component)
		b->terms.component = "allot-scheduler";
	if (!b->terms.limit_ns)
		b->terms.limit_ns = BIND_LIMIT_NS;
	if (!b->terms.lock_expiry_s)
		b->terms.lock_expiry_s = NODE_LOCK_EXPIRY_S;
	if (!b->terms.at_once)
		b->terms.at_once = BIND_AT_ONCE;
	TAILQ_INIT(&b->nodes);
	TAILQ_INIT(&b->slot_queue);
	*ret = b;
	return 0;
}

struct binder *binder_free(struct binder *b)
{
	struct bind_node *node;
	struct bind_job *job;
	if (!b)
		return NULL;
	while ((node = TAILQ_FIRST(&b->nodes))) {
		while ((job = TAILQ_FIRST(&node->jobs))) {
			remove_job(node, job);
			job_free(job);
		}
		drop_node(node);
	}
	free(b);
	return NULL;
}
