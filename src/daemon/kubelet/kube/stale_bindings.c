#include "daemon/kubelet/kube/stale_bindings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/kubelet/kube/binding.h"
#include "kube/client/kube_event.h"
#include "kube/hami/find_allocating.h"

/*
 * Only a node's lock older than this is released. For a younger one, the last write may still be in progress, or the watch may
 * show an earlier pod of the same name.
 */
#define LOCK_LEFT_S 5
/* A failed write is tried again after this many runs of check_due(), which together take BINDING_TIMEOUT_S. */
#define RETRY_CHECKS (BINDING_TIMEOUT_S / LOCK_LEFT_S)

/*
 * A pod whose binding (assignment of GPU shares) was declared failed. It stays in `cases` while the watch shows the binding as
 * overdue (is_over()), so that the binding is declared failed only once.
 */
struct stale_binding {
	char *uid;
	struct binding *binding; /* the write that declares the failure; NULL if it has ended */
	unsigned checks_left;    /* if the write has failed: checks until the next try; else 0 */
	LIST_ENTRY(stale_binding) link;
};

struct stale_bindings {
	struct kube_client *client;
	const char *node;
	const struct node_object *object;
	const struct node_pods *pods;
	struct binding *unlocking; /* the write that releases the lock; NULL if there is none */
	struct alarm again;        /* the next check of the node's lock and of failed writes */
	LIST_HEAD(, stale_binding) cases;
};

static void drop(struct stale_binding *c)
{
	LIST_REMOVE(c, link);
	binding_drop(c->binding);
	free(c->uid);
	free(c);
}

static struct stale_binding *find(struct stale_bindings *g, const char *uid)
{
	struct stale_binding *c;
	LIST_FOREACH(c, &g->cases, link)
		if (!strcmp(c->uid, uid))
			return c;
	return NULL;
}

static bool is_over(const struct kube_pod *pod)
{
	int64_t since_s;
	return pod->phase == POD_PENDING && !pod->is_terminating &&
	       pod->bind_phase == BIND_ALLOCATING && pod->to_allocate &&
	       pod->to_allocate[strspn(pod->to_allocate, ";")] &&
	       pod_bind_time(pod, &since_s, NULL) >= 0 &&
	       (int64_t)time(NULL) - since_s > CHOICE_BIND_LIMIT_S;
}

static void written(void *data, const struct error *err)
{
	struct stale_binding *c = data;
	c->binding = NULL;
	if (!err->code)
		return;
	log_warning("a pod whose GPU shares the kubelet did not ask for can't be marked as failed "
		    "(bind-phase): %s; trying again",
		    err->text);
	c->checks_left = RETRY_CHECKS;
}

static void release_binding(struct stale_bindings *g, const struct kube_pod *pod)
{
	struct stale_binding *c = calloc(1, sizeof(*c));
	if (!c)
		return;
	*c = (struct stale_binding){ .uid = strdup(pod->uid) };
	LIST_INSERT_HEAD(&g->cases, c, link);
	c->binding = c->uid ? binding_fail(g->client, g->node, pod, written, c) : NULL;
	if (!c->binding) {
		drop(c);
		return;
	}
	log_warning(
		"pod %s/%s: bound more than %d s ago, but the kubelet has not asked for the pod's "
		"GPU shares: setting the pod's bind-phase to failed and releasing the node's lock",
		pod->pod_namespace, pod->name, CHOICE_BIND_LIMIT_S);
	event_send(
		g->client, &(struct event_about){ "Pod", pod->name, pod->uid, pod->pod_namespace },
		true, "BindingGivenUp",
		"the kubelet did not ask for this pod's GPU shares in time: its bind-phase is set to "
		"failed, and the node's lock is released for other pods",
		g->node);
}

static void write_again(struct stale_bindings *g)
{
	struct stale_binding *c;
	LIST_FOREACH(c, &g->cases, link) {
		const struct kube_pod *pod = pods_find(g->pods, c->uid);
		if (!c->checks_left || --c->checks_left || !pod || !is_over(pod))
			continue;
		c->binding = binding_fail(g->client, g->node, pod, written, c);
		if (!c->binding)
			c->checks_left = 1; /* out of memory */
	}
}

static bool has_ended(const struct kube_pod *pod)
{
	return pod->phase == POD_ENDED || pod->bind_phase == BIND_SUCCESS ||
	       pod->bind_phase == BIND_FAILED;
}

static void unlocked(void *data, const struct error *err)
{
	struct stale_bindings *g = data;
	g->unlocking = NULL;
	if (err->code)
		log_warning("node %s: its lock, left by a pod whose binding has ended, can't be "
			    "released: %s; trying again",
			    g->node, err->text);
}

static void check_lock(struct stale_bindings *g)
{
	size_t count;
	const struct kube_pod *const *pod = pods_all(g->pods, &count), *holder = NULL;
	struct node_lock lock;
	if (g->unlocking || node_object_lock(g->object, &lock, NULL) < 0 ||
	    !node_lock_is_expired(&lock, time(NULL), LOCK_LEFT_S))
		return;
	for (size_t i = 0; i < count && !holder; i++)
		if (node_lock_is_of(&lock, pod[i]->pod_namespace, pod[i]->name))
			holder = pod[i];
	if (!holder || !has_ended(holder))
		return;
	g->unlocking = binding_unlock(g->client, g->node, holder, unlocked, g);
	if (g->unlocking)
		log_warning(
			"node %s: the node's lock is held by pod %s/%s, whose binding has ended: releasing the lock",
			g->node, holder->pod_namespace, holder->name);
}

static void check_due(void *data)
{
	struct stale_bindings *g = data;
	write_again(g);
	check_lock(g);
	alarm_set(kube_client_reactor(g->client), &g->again, LOCK_LEFT_S * NSEC_PER_SEC);
}

struct stale_bindings *stale_bindings_start(struct kube_client *client, const char *node,
					    const struct node_object *object,
					    const struct node_pods *pods)
{
	struct stale_bindings *g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	*g = (struct stale_bindings){ .client = client, .node = node, .object = object, .pods = pods };
	LIST_INIT(&g->cases);
	g->again = (struct alarm){ .handler = check_due, .data = g };
	alarm_set(kube_client_reactor(client), &g->again, LOCK_LEFT_S * NSEC_PER_SEC);
	return g;
}

struct stale_bindings *stale_bindings_stop(struct stale_bindings *g)
{
	if (!g)
		return NULL;
	while (!LIST_EMPTY(&g->cases))
		drop(LIST_FIRST(&g->cases));
	alarm_clear(kube_client_reactor(g->client), &g->again);
	binding_drop(g->unlocking);
	free(g);
	return NULL;
}

void stale_bindings_check(struct stale_bindings *g)
{
	size_t count;
	const struct kube_pod *const *pod = pods_all(g->pods, &count);
	struct stale_binding *c, *next;
	for (c = LIST_FIRST(&g->cases); c; c = next) {
		const struct kube_pod *of = pods_find(g->pods, c->uid);
		next = LIST_NEXT(c, link);
		/* Drop a case once its write has ended and the binding is no longer overdue. */
		if (!c->binding && (!of || !is_over(of)))
			drop(c);
	}
	for (size_t i = 0; i < count; i++)
		if (is_over(pod[i]) && !find(g, pod[i]->uid))
			release_binding(g, pod[i]);
}
