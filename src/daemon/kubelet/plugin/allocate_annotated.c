#include "daemon/kubelet/plugin/allocate_annotated.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/kubelet/devices/allocate.h"
#include "daemon/kubelet/kube/binding.h"
#include "daemon/kubelet/kube/kube.h"
#include "daemon/kubelet/kube/node_object.h"
#include "daemon/kubelet/kube/pods.h"
#include "daemon/kubelet/plugin/annotated_request.h"
#include "daemon/kubelet/plugin/plugin_inside.h"
#include "kube/hami/find_allocating.h"

#define PATIENCE_NS (20 * NSEC_PER_SEC)

struct annotated_call {
	TAILQ_ENTRY(annotated_call) link;
	struct annotated *annotated;
	struct grpc_call *call; /* NULL if the kubelet has cancelled the call */
	uint64_t begun_ns;
	struct binding *binding;    /* NULL while the call waits for its pod */
	struct grpc_message *reply; /* sent once the binding is written; NULL if the call is refused */
	struct pod_container *assignment; /* for annotated.assignments, once the binding is written */
	char key[TENANT_CLAIM_MAX];
	bool is_new; /* the claim was made for this call */
	size_t id_count;
	char *id[]; /* owned */
};

struct annotated {
	struct plugin *plugin;
	struct loop_source *timer;
	TAILQ_HEAD(, annotated_call) calls;
	/* containers that got their shares, although the watch may still show these in the pod's annotation to-allocate */
	struct pod_container_list assignments;
};

static struct node_kube *kube_of(const struct annotated *b)
{
	return b->plugin->node->kube;
}

static struct annotated_call *call_free(struct annotated_call *c)
{
	binding_drop(c->binding);
	grpc_message_unref(c->reply);
	free(c->assignment);
	for (size_t i = 0; i < c->id_count; i++)
		free(c->id[i]);
	free(c);
	return NULL;
}

static void forget(struct annotated_call *c)
{
	TAILQ_REMOVE(&c->annotated->calls, c, link);
	call_free(c);
}

/* Answers with the error. The caller frees the struct once no write is in progress. */
static void refuse(struct annotated_call *c, int r, const struct error *err)
{
	c->annotated->plugin->refused++;
	if (c->call)
		plugin_refuse(c->call, "Allocate", r, err);
	c->call = NULL;
}

bool annotated_is_own_claim(const struct claim *claim)
{
	return !strncmp(claim_terms(claim)->claim.key, POD_KEY, strlen(POD_KEY));
}

/* CLAIM_WANTED if any container on the kubelet's list holds the device, even if the claim's key names another container. */
static enum claim_need need_by_books(struct plugin *plugin, const char *device)
{
	struct slice_set held;
	unsigned card, number;
	if (!plugin->pods || slice_parse(&plugin->slices, device, &card, &number, NULL) < 0)
		return CLAIM_UNWANTED;
	if (!pod_resources_get(plugin->pods, &held))
		return CLAIM_UNKNOWN;
	return slots_has(&held.card[card], number) ? CLAIM_WANTED : CLAIM_UNWANTED;
}

enum claim_need annotated_need(const struct annotated *b, const struct claim *claim)
{
	struct pod_key key;
	const struct node_pods *pods = node_kube_pods(kube_of(b));
	if (!pods_are_known(pods))
		return CLAIM_UNKNOWN;
	if (!pod_key_parse(claim_terms(claim)->claim.key, &key))
		return CLAIM_UNWANTED;
	const struct kube_pod *pod = pods_find(pods, key.uid);
	if (pod && pod->phase != POD_ENDED)
		return CLAIM_WANTED;
	return key.device ? need_by_books(b->plugin, key.device) : CLAIM_UNWANTED;
}

void annotated_sweep(struct annotated *b)
{
	struct claims *claims = b->plugin->node->claims;
	struct claim *next;
	for (struct claim *c = claims_first(claims); c; c = next) {
		char key[TENANT_CLAIM_MAX];
		struct error err;
		next = claims_next(c);
		if (!annotated_is_own_claim(c) || annotated_need(b, c) != CLAIM_UNWANTED ||
		    allocate_is_in_use(c))
			continue;
		strcpy(key, claim_terms(c)->claim.key);
		if (claims_release(claims, key, "its pod has ended", &err) < 0)
			log_warning("device plugin: %s", err.text);
	}
}

static bool has_ending(const struct annotated *b)
{
	const struct node_pods *pods = node_kube_pods(kube_of(b));
	struct claim *c = claims_first(b->plugin->node->claims);
	for (; c; c = claims_next(c)) {
		struct pod_key key;
		if (!annotated_is_own_claim(c) || !pod_key_parse(claim_terms(c)->claim.key, &key))
			continue;
		const struct kube_pod *pod = pods_find(pods, key.uid);
		if (!pod || pod->phase == POD_ENDED)
			return true;
	}
	return false;
}

bool annotated_may_fit_soon(const struct annotated *b, uint64_t begun_ns)
{
	uint64_t waited_ns = clock_now_ns() - begun_ns;
	return waited_ns < ANNOTATED_LATE_NS || (waited_ns < ANNOTATED_ENDING_NS && has_ending(b));
}

bool annotated_may_change(int r, uint64_t begun_ns)
{
	uint64_t waited_ns = clock_now_ns() - begun_ns;
	switch (r) {
	case -EAGAIN: return waited_ns < PATIENCE_NS;
	case -EBUSY:
	case -ETIMEDOUT: return waited_ns < ANNOTATED_LATE_NS;
	default: return false;
	}
}

static bool is_open(const struct kube_pod *pod, size_t container)
{
	struct kube_shares shares;
	size_t count = 0;
	if (!pod->to_allocate || shares_parse_of(pod->to_allocate, pod->init_containers,
						 pod->containers, &shares, NULL) < 0)
		return false;
	shares_of(&shares, container, &count);
	shares_free(&shares);
	return count > 0;
}

/* A callback of choice_make(): true if the container has got the shares that annotation to-allocate may still show. */
static bool has_shares(void *data, const struct kube_pod *pod, size_t container)
{
	struct annotated *b = data;
	struct pod_container *g, *next;
	bool found = false;
	for (g = TAILQ_FIRST(&b->assignments); g; g = next) {
		const struct kube_pod *its = pods_find(node_kube_pods(kube_of(b)), g->uid);
		next = TAILQ_NEXT(g, link);
		if (!its || !is_open(its, g->container)) {
			TAILQ_REMOVE(&b->assignments, g, link);
			free(g);
			continue;
		}
		found |= pod_container_is(g, pod, container);
	}
	const struct annotated_call *c;
	TAILQ_FOREACH(c, &b->calls, link)
		found |= c->assignment && pod_container_is(c->assignment, pod, container);
	return found;
}

static int make_claim(struct annotated_call *c, const struct choice *choice, struct injection *ret,
		      struct error *err)
{
	struct node *node = c->annotated->plugin->node;
	struct claim_request request;
	struct claim *claim;
	char name[REGION_NAME_MAX];
	int r = annotated_request_make(node, choice, c->key, name, &request, err);
	if (r < 0)
		return r;
	r = allocate_request(node, &request, &claim, &c->is_new, err);
	return r < 0 ? r : injection_make(node->claims, claim, ret, err);
}

static void undo_allocation(struct annotated_call *c, const char *why)
{
	if (c->is_new)
		claims_undo(c->annotated->plugin->node->claims, c->key, why);
	c->is_new = false;
}

static void written(void *data, const struct error *err)
{
	struct annotated_call *c = data;
	struct plugin *plugin = c->annotated->plugin;
	c->binding = NULL;
	if (err->code) {
		log_warning("device plugin: Allocate fails: the GPUs that the container got can't be "
			    "recorded in its pod and node: %s",
			    err->text);
		undo_allocation(c, "its pod can't be annotated");
		if (c->reply)
			refuse(c, -err->code, err);
		forget(c);
		return;
	}
	if (c->assignment)
		TAILQ_INSERT_TAIL(&c->annotated->assignments, c->assignment, link);
	c->assignment = NULL;
	if (c->call && c->reply) {
		struct grpc_call *call = c->call;
		c->call = NULL;
		grpc_call_send(call, c->reply);
		grpc_call_end(call, GRPC_OK, NULL);
		plugin->allocations++;
		plugin->allocate_ns += clock_now_ns() - c->begun_ns;
	}
	forget(c);
}

/* Gives the container its shares, or fails the binding. Returns false if there is no room yet. */
static bool assign(struct annotated_call *c, const struct choice *choice)
{
	struct node_kube *kube = kube_of(c->annotated);
	cleanup_injection struct injection injection = { 0 };
	struct error err = { 0 };
	annotated_sweep(c->annotated);
	int r = make_claim(c, choice, &injection, &err);
	if (r >= 0) {
		c->assignment = pod_container_new(choice->pod, choice->container);
		c->reply = message_allocated(&injection, 1);
		c->binding = c->assignment && c->reply
				     ? binding_take(node_kube_client(kube), node_kube_name(kube),
						    choice, written, c)
				     : NULL;
		if (c->binding)
			return true;
		r = error_set_errno(&err, ENOMEM, "Allocate");
	}
	if (r == -ENOSPC && annotated_may_fit_soon(c->annotated, c->begun_ns))
		return false;
	undo_allocation(c, "its container can't be prepared");
	/* No binding was begun, so the container gets no shares: drop the answer. The failure is recorded below. */
	c->reply = grpc_message_unref(c->reply);
	free(c->assignment);
	c->assignment = NULL;
	error_add(&err, r, "pod %s/%s, container %s", choice->pod->pod_namespace, choice->pod->name,
		  choice->pod->container[choice->container]);
	refuse(c, r, &err);
	c->binding = binding_fail(node_kube_client(kube), node_kube_name(kube), choice->pod,
				  written, c);
	if (!c->binding)
		forget(c);
	return true;
}

int annotated_check_pods(const struct annotated *b, struct error *err)
{
	struct node_kube *kube = kube_of(b);
	if (pods_are_known(node_kube_pods(kube)))
		return 0;
	return error_set(err, EAGAIN,
			 "the pods of node %s could not be read from the API server in time, so "
			 "the pod that these GPUs are for is unknown: allotd's log says why",
			 node_kube_name(kube));
}

static int choose(struct annotated_call *c, struct choice *ret, struct error *err)
{
	struct node_kube *kube = kube_of(c->annotated);
	struct node_lock lock;
	struct choice_query q = { .node = node_kube_name(kube),
				  .now_s = (int64_t)time(NULL),
				  .id = (const char *const *)c->id,
				  .id_count = c->id_count,
				  .has_shares = has_shares,
				  .data = c->annotated };
	int r = annotated_check_pods(c->annotated, err);
	if (r < 0)
		return r;
	q.pod = pods_all(node_kube_pods(kube), &q.pod_count);
	r = node_object_lock(node_kube_object(kube), &lock, err);
	if (r < 0 && r != -ENOENT)
		return r;
	q.lock = r >= 0 ? &lock : NULL;
	return choice_make(&q, ret, err);
}

/* Returns false if the call must wait. */
static bool try_call(struct annotated_call *c)
{
	struct choice choice;
	struct error err = { 0 };
	int r = choose(c, &choice, &err);
	if (annotated_may_change(r, c->begun_ns))
		return false;
	if (r < 0) {
		refuse(c, r == -EAGAIN ? -ENODEV : r, &err);
		forget(c);
		return true;
	}
	bool is_over = assign(c, &choice);
	shares_free(&choice.shares);
	return is_over;
}

static void retry_calls(void *data, uint32_t events)
{
	struct annotated *b = data;
	struct annotated_call *c, *next;
	bool waits = false;
	for (c = TAILQ_FIRST(&b->calls); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->binding)
			continue;
		if (!c->call)
			forget(c);
		else
			waits |= !try_call(c);
	}
	if (waits)
		loop_arm(b->timer, ANNOTATED_LOOK_NS, 0);
}

/* The kubelet has cancelled its call, so the pod fails to start. A write to the pod goes on; the claim ends with the pod. */
static void call_cancelled(void *data, struct grpc_call *call)
{
	struct annotated_call *c = data;
	c->call = NULL;
}

static struct annotated_call *new_call(struct annotated *b,
				       const struct message_container *container)
{
	struct annotated_call *c = calloc(1, sizeof(*c) + container->count * sizeof(*c->id));
	if (!c)
		return NULL;
	c->annotated = b;
	c->begun_ns = clock_now_ns();
	for (; c->id_count < container->count; c->id_count++)
		if (!(c->id[c->id_count] = strdup(container->ids[c->id_count])))
			return call_free(c);
	return c;
}

int annotated_allocate(struct annotated *b, struct grpc_call *call,
		       const struct message_request *request, struct error *err)
{
	struct annotated_call *c = new_call(b, &request->container[0]);
	if (!c)
		return error_set_errno(err, ENOMEM, "request");
	c->call = call;
	grpc_call_keep(call, call_cancelled, c);
	TAILQ_INSERT_TAIL(&b->calls, c, link);
	/* Handle the call in the timer's handler: a call must not be answered within its own handler. */
	loop_arm(b->timer, 0, 0);
	return 0;
}

int annotated_start(struct plugin *plugin, struct annotated **ret, struct error *err)
{
	struct annotated *b = calloc(1, sizeof(*b));
	if (!b)
		return error_set_errno(err, ENOMEM, "device plugin");
	b->plugin = plugin;
	TAILQ_INIT(&b->calls);
	TAILQ_INIT(&b->assignments);
	int r = loop_add_timer(plugin->node->loop, retry_calls, b, &b->timer);
	if (r < 0) {
		free(b);
		return error_set_errno(err, -r, "can't make a timer");
	}
	*ret = b;
	return 0;
}

struct annotated *annotated_stop(struct annotated *b)
{
	struct pod_container *g;
	if (!b)
		return NULL;
	while (!TAILQ_EMPTY(&b->calls))
		forget(TAILQ_FIRST(&b->calls));
	while ((g = TAILQ_FIRST(&b->assignments))) {
		TAILQ_REMOVE(&b->assignments, g, link);
		free(g);
	}
	loop_remove(b->timer);
	free(b);
	return NULL;
}
