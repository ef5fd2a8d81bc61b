#include "daemon/kubelet/kube/binding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "kube/client/patch.h"
#include "kube/hami/annotations.h"
#include "kube/hami/node_lock.h"
#include "kube/util/backoff.h"
#include "kube/util/object.h"

#define PATH_MAX_BYTES 640
#define REFUSALS_MAX 3

enum step { STEP_READ_POD, STEP_WRITE_POD, STEP_READ_NODE, STEP_WRITE_NODE };

struct binding {
	struct kube_client *client;
	const char *node;
	binding_done done;
	void *data;
	bool is_failure;
	char *uid, *name, *pod_namespace;
	size_t container;          /* index of the container in its pod; unset if is_failure */
	struct kube_shares shares; /* the assigned devices; the member `containers` is 0 */
	enum step step;
	/* a write to the pod may have succeeded although its answer was lost */
	bool may_be_written;
	unsigned refusals;
	json_t *object; /* the Pod or Node object as last read */
	struct kube_call *call;
	struct alarm again;
	struct backoff backoff;
	uint64_t until_ns;
};

static void begin(void *data);

static const char *annotation(const json_t *object, const char *name)
{
	const json_t *meta = json_object_get(object, "metadata");
	return json_string_value(json_object_get(json_object_get(meta, "annotations"), name));
}

static void finish(struct binding *b, const struct error *why)
{
	const struct error err = why ? *why : (struct error){ 0 };
	binding_done done = b->done;
	void *data = b->data;
	binding_drop(b);
	done(data, &err);
}

static void next_step(struct binding *b, enum step step)
{
	b->step = step;
	begin(b);
}

static int parse_shares(const json_t *pod, const char *text, struct kube_shares *ret,
			struct error *err)
{
	const json_t *spec = json_object_get(pod, "spec");
	size_t init = json_array_size(json_object_get(spec, "initContainers"));
	size_t others = json_array_size(json_object_get(spec, "containers"));
	return shares_parse_of(text, init, init + others, ret, err);
}

/*
 * *left gets the shares in the annotation to-allocate, except those of the container. Returns -ESTALE if the container's shares
 * in the annotation are not the assigned ones (b->shares).
 */
static int take_shares(const struct binding *b, struct kube_shares *left, struct error *err)
{
	const char *text = annotation(b->object, KUBE_POD_TO_ALLOCATE);
	size_t count;
	int r = parse_shares(b->object, text ? text : "", left, err);
	if (r < 0)
		return error_add(err, r, KUBE_POD_TO_ALLOCATE);
	const struct kube_share *share = shares_of(left, b->container, &count);
	if (!shares_equal(share, count, b->shares.share, b->shares.count)) {
		shares_free(left);
		return error_set(err, ESTALE,
				 KUBE_POD_TO_ALLOCATE
				 " was changed to '%.200s' while container %zu got its GPUs: delete "
				 "the pod, so that another is made",
				 text ? text : "", b->container + 1);
	}
	shares_erase(left, b->container);
	return 0;
}

/* The server applies the patch only to the version of the pod that was read. */
static int make_pod_patch(const struct binding *b, char **ret, struct error *err)
{
	struct kube_shares left = { 0 };
	struct patch_pair pair[2];
	size_t pairs = 0;
	cleanup_free char *text = NULL;
	int r = b->is_failure ? 0 : take_shares(b, &left, err);
	if (r < 0)
		return r;
	if (b->is_failure) {
		pair[pairs++] = (struct patch_pair){ KUBE_POD_BIND_PHASE, "failed" };
	} else {
		text = shares_format(&left);
		pair[pairs++] = (struct patch_pair){ KUBE_POD_TO_ALLOCATE, text };
		if (!left.count)
			pair[pairs++] = (struct patch_pair){ KUBE_POD_BIND_PHASE, "success" };
	}
	shares_free(&left);
	if (b->is_failure || text)
		*ret = patch_metadata(pair, pairs, NULL, 0,
				      object_meta_text(b->object, "resourceVersion"));
	return *ret ? 0 : error_set_errno(err, ENOMEM, "patch");
}

static void pod_written(struct binding *b);

/* True if an earlier write succeeded without an answer: the annotation to-allocate has no shares for the container. */
static bool is_written(const struct binding *b)
{
	const char *text = annotation(b->object, KUBE_POD_TO_ALLOCATE);
	struct kube_shares left;
	size_t count = 1;
	if (!b->may_be_written || b->is_failure ||
	    parse_shares(b->object, text ? text : "", &left, NULL) < 0)
		return false;
	shares_of(&left, b->container, &count);
	shares_free(&left);
	return count == 0;
}

static void pod_received(struct binding *b)
{
	struct error err;
	const char *uid = object_meta_text(b->object, "uid");
	if (uid && !strcmp(uid, b->uid)) {
		if (is_written(b))
			pod_written(b);
		else
			next_step(b, STEP_WRITE_POD);
		return;
	}
	error_set(&err, ESTALE, "pod %s/%s: was deleted and created again: its uid is %s, not %s",
		  b->pod_namespace, b->name, uid ? uid : "none", b->uid);
	finish(b, &err);
}

/* Releases the node's lock, unless other containers of the pod still wait for shares. */
static void pod_written(struct binding *b)
{
	const char *phase = annotation(b->object, KUBE_POD_BIND_PHASE);
	if (phase && strcmp(phase, "allocating") != 0)
		next_step(b, STEP_READ_NODE);
	else
		finish(b, NULL);
}

static void node_received(struct binding *b)
{
	const char *text = annotation(b->object, KUBE_NODE_LOCK);
	struct node_lock lock;
	if (text && node_lock_parse(text, &lock, NULL) >= 0 &&
	    node_lock_is_of(&lock, b->pod_namespace, b->name))
		next_step(b, STEP_WRITE_NODE);
	else
		finish(b, NULL);
}

/* An error that may pass. EACCES: a server that just started refuses all clients until it has loaded its access rules. */
static bool is_passing(struct binding *b, const struct error *err)
{
	if (err->code == EACCES)
		return b->refusals++ < REFUSALS_MAX;
	return err->code == EAGAIN || err->code == EBUSY || err->code == ETIMEDOUT ||
	       err->code == ECONNREFUSED;
}

static void try_again(struct binding *b, const struct kube_answer *answer)
{
	uint64_t wait_ns = backoff_next_ns(&b->backoff, answer->retry_after_ns);
	bool is_write = b->step == STEP_WRITE_POD || b->step == STEP_WRITE_NODE;
	if (!is_passing(b, &answer->err) || clock_now_ns() + wait_ns > b->until_ns) {
		struct error err = answer->err;
		error_add(&err, 0, "pod %s/%s", b->pod_namespace, b->name);
		finish(b, &err);
		return;
	}
	/* Read the object again before another write: it may have changed, or the write succeeded but its answer was lost. */
	b->may_be_written |= b->step == STEP_WRITE_POD && !answer->status;
	if (is_write)
		b->step--;
	alarm_set(kube_client_reactor(b->client), &b->again, wait_ns);
}

static void answered(void *data, const struct kube_answer *answer)
{
	struct binding *b = data;
	b->call = NULL;
	/* The pod is gone with its annotations; only the node's lock must still be released. */
	if (answer->status == 404 && b->step <= STEP_WRITE_POD) {
		next_step(b, STEP_READ_NODE);
		return;
	}
	if (answer->err.code) {
		try_again(b, answer);
		return;
	}
	json_decref(b->object);
	b->object = json_incref(answer->object);
	switch (b->step) {
	case STEP_READ_POD: pod_received(b); break;
	case STEP_WRITE_POD: pod_written(b); break;
	case STEP_READ_NODE: node_received(b); break;
	case STEP_WRITE_NODE: finish(b, NULL); break;
	}
}

static int make_patch(const struct binding *b, char **ret, struct error *err)
{
	const struct patch_pair unlock = { KUBE_NODE_LOCK, NULL };
	*ret = NULL;
	if (b->step == STEP_WRITE_POD)
		return make_pod_patch(b, ret, err);
	if (b->step == STEP_WRITE_NODE)
		*ret = patch_metadata(&unlock, 1, NULL, 0,
				      object_meta_text(b->object, "resourceVersion"));
	return *ret || b->step != STEP_WRITE_NODE ? 0 : error_set_errno(err, ENOMEM, "patch");
}

static void begin(void *data)
{
	struct binding *b = data;
	struct error err;
	char path[PATH_MAX_BYTES];
	cleanup_free char *patch = NULL;
	int r = make_patch(b, &patch, &err);
	if (b->step <= STEP_WRITE_POD)
		snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", b->pod_namespace,
			 b->name);
	else
		snprintf(path, sizeof(path), "/api/v1/nodes/%s", b->node);
	struct kube_request request = { .method = patch ? "PATCH" : "GET",
					.path = path,
					.type = patch ? KUBE_MERGE_PATCH : NULL,
					.body = patch };
	if (r >= 0)
		b->call = kube_call_start(b->client, &request, NULL, answered, b);
	if (r >= 0 && !b->call)
		r = error_set_errno(&err, ENOMEM, "call");
	if (r < 0) {
		error_add(&err, r, "pod %s/%s", b->pod_namespace, b->name);
		finish(b, &err);
	}
}

/* Makes a binding, and lets the reactor begin with `step`. `object`: the Pod object, if the step needs it; else NULL. */
static struct binding *new_binding(struct kube_client *client, const char *node,
				   const struct kube_pod *pod, json_t *object, enum step step,
				   binding_done done, void *data)
{
	struct binding *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	*b = (struct binding){ .client = client, .node = node, .done = done, .data = data };
	b->again = (struct alarm){ .handler = begin, .data = b };
	b->until_ns = clock_now_ns() + BINDING_TIMEOUT_S * NSEC_PER_SEC;
	b->uid = strdup(pod->uid);
	b->name = strdup(pod->name);
	b->pod_namespace = strdup(pod->pod_namespace);
	b->object = json_incref(object);
	b->step = step;
	alarm_set(kube_client_reactor(client), &b->again, 0);
	return b->uid && b->name && b->pod_namespace ? b : binding_drop(b);
}

struct binding *binding_take(struct kube_client *client, const char *node,
			     const struct choice *choice, binding_done done, void *data)
{
	/* Begin with the write: usually no other client changed the pod since the watch showed it. */
	struct binding *b = new_binding(client, node, choice->pod, choice->pod->object,
					STEP_WRITE_POD, done, data);
	if (!b)
		return NULL;
	b->container = choice->container;
	b->shares.share = calloc(choice->share_count + 1, sizeof(*b->shares.share));
	if (!b->shares.share)
		return binding_drop(b);
	b->shares.count = choice->share_count;
	for (size_t i = 0; i < choice->share_count; i++)
		b->shares.share[i] = choice->share[i];
	return b;
}

struct binding *binding_fail(struct kube_client *client, const char *node,
			     const struct kube_pod *pod, binding_done done, void *data)
{
	struct binding *b = new_binding(client, node, pod, pod->object, STEP_WRITE_POD, done, data);
	if (b)
		b->is_failure = true;
	return b;
}

struct binding *binding_unlock(struct kube_client *client, const char *node,
			       const struct kube_pod *pod, binding_done done, void *data)
{
	return new_binding(client, node, pod, NULL, STEP_READ_NODE, done, data);
}

struct binding *binding_drop(struct binding *b)
{
	if (!b)
		return NULL;
	kube_call_drop(b->call);
	alarm_clear(kube_client_reactor(b->client), &b->again);
	json_decref(b->object);
	shares_free(&b->shares);
	free(b->uid);
	free(b->name);
	free(b->pod_namespace);
	free(b);
	return NULL;
}
