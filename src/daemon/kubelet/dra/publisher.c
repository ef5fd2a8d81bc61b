#include "daemon/kubelet/dra/publisher.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/kubelet/kube/node_object.h"
#include "kube/client/watch.h"
#include "kube/dra/slice.h"
#include "kube/util/backoff.h"
#include "kube/util/object.h"

#define COLLECTION DRA_API "/resourceslices"
#define PATH_MAX_BYTES 400

/* A slice of ours that the server has. One is kept, others are of no use. */
struct slice {
	TAILQ_ENTRY(slice) link;
	json_t *object;
};

struct publisher {
	struct kube_client *client;
	const char *node;
	const struct node_object *node_object;
	struct kube_watch *watch;
	bool is_known, is_listing, fails;
	TAILQ_HEAD(, slice) slices;
	json_t *wanted;         /* the devices; NULL: not known yet */
	json_t *sent, *taken;   /* those that were written last, and what the server made of them */
	struct kube_call *call; /* a write under way */
	json_t *sending;        /* its devices */
	struct backoff backoff;
	struct alarm again;
	bool is_waiting;              /* `again` is set: nothing is written before it rings */
	bool is_refused, is_unshared; /* said so */
};

static void update(void *data);

static const char *metadata(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(json_object_get(object, "metadata"), name));
}

static json_t *devices_of(const json_t *object)
{
	return json_object_get(json_object_get(object, "spec"), "devices");
}

static int64_t generation_of(const json_t *object)
{
	const json_t *pool = json_object_get(json_object_get(object, "spec"), "pool");
	return json_integer_value(json_object_get(pool, "generation"));
}

static struct slice *find(struct publisher *p, const char *name)
{
	struct slice *s;
	TAILQ_FOREACH(s, &p->slices, link)
		if (!strcmp(metadata(s->object, "name"), name))
			return s;
	return NULL;
}

static void forget(struct publisher *p, struct slice *s)
{
	TAILQ_REMOVE(&p->slices, s, link);
	json_decref(s->object);
	free(s);
}

static void forget_all(struct publisher *p)
{
	while (!TAILQ_EMPTY(&p->slices))
		forget(p, TAILQ_FIRST(&p->slices));
}

/* A watch and an answer come on two connections, in any order: the newer counts. */
static void take(struct publisher *p, json_t *object)
{
	const char *name = metadata(object, "name"), *version = metadata(object, "resourceVersion");
	struct slice *s = name ? find(p, name) : NULL;
	if (!name || !version)
		return;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return;
		TAILQ_INSERT_TAIL(&p->slices, s, link);
	} else if (strtoull(version, NULL, 10) <
		   strtoull(metadata(s->object, "resourceVersion"), NULL, 10)) {
		return;
	}
	json_decref(s->object);
	s->object = json_incref(object);
}

/* ---- writing ---- */

/* A server whose gates are off drops fields without a word. */
static void look_at_answer(struct publisher *p, const json_t *object)
{
	bool is_unshared = json_array_size(devices_of(object)) && !dra_slice_is_shared(object);
	if (is_unshared && !p->is_unshared)
		log_warning("DRA: the cluster gives whole GPUs alone: its API server dropped "
			    "allowMultipleAllocations; parts need the feature gate "
			    "DRAConsumableCapacity (on by default from Kubernetes 1.36)");
	p->is_unshared = is_unshared;
}

static void retry_later(struct publisher *p, const struct kube_answer *reply)
{
	log_write(p->is_refused ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
		  "DRA: this node's GPUs can't be published: %s; it is tried again",
		  reply->err.text);
	p->is_refused = true;
	p->is_waiting = true;
	alarm_set(kube_client_reactor(p->client), &p->again,
		  backoff_next_ns(&p->backoff, (uint32_t)clock_now_ns() * 2654435761U,
				  reply->retry_after_ns));
}

static void written(void *data, const struct kube_answer *reply)
{
	struct publisher *p = data;
	json_t *sent = p->sending;
	p->call = NULL;
	p->sending = NULL;
	if (reply->err.code || !reply->object) {
		json_decref(sent);
		retry_later(p, reply);
		return;
	}
	p->backoff.failures = 0;
	p->is_refused = false;
	json_decref(p->sent);
	json_decref(p->taken);
	p->sent = sent;
	p->taken = json_incref(devices_of(reply->object));
	look_at_answer(p, reply->object);
	log_info("DRA: %zu GPUs are published, generation %" PRId64, json_array_size(p->taken),
		 generation_of(reply->object));
	take(p, reply->object);
	update(p);
}

static void removed(void *data, const struct kube_answer *reply)
{
	struct publisher *p = data;
	p->call = NULL;
	if (reply->err.code && reply->status != 404)
		retry_later(p, reply);
	else
		update(p);
}

static void send(struct publisher *p, const char *method, const char *name, const char *body,
		 kube_done done)
{
	char path[PATH_MAX_BYTES];
	snprintf(path, sizeof(path), COLLECTION "%s%s", name ? "/" : "", name ? name : "");
	p->call = kube_call_start(p->client,
				  &(struct kube_request){ .method = method,
							  .path = path,
							  .type = body ? KUBE_JSON : NULL,
							  .body = body },
				  NULL, done, p);
}

static int64_t next_generation(const struct publisher *p)
{
	const struct slice *s;
	int64_t most = 0;
	TAILQ_FOREACH(s, &p->slices, link)
		if (generation_of(s->object) > most)
			most = generation_of(s->object);
	return most + 1;
}

static void write_slice(struct publisher *p, const char *node_uid, const struct slice *old)
{
	const char *name = old ? metadata(old->object, "name") : NULL;
	cleanup_object json_t *slice = dra_slice(
		p->node, node_uid, name, old ? metadata(old->object, "resourceVersion") : NULL,
		next_generation(p), p->wanted);
	cleanup_free char *body = slice ? json_dumps(slice, JSON_COMPACT) : NULL;
	if (!body)
		return;
	send(p, old ? "PUT" : "POST", name, body, written);
	if (p->call)
		p->sending = json_incref(p->wanted);
}

/* Is it of this Node, and as wanted, or as the server makes of that? */
static bool is_right(const struct publisher *p, const struct slice *s, const char *node_uid)
{
	const json_t *owners = json_object_get(json_object_get(s->object, "metadata"),
					       "ownerReferences");
	const json_t *owner = json_array_get(owners, 0), *has = devices_of(s->object);
	const char *uid = json_string_value(json_object_get(owner, "uid"));
	if (!uid || strcmp(uid, node_uid) != 0)
		return false;
	/* An empty list is written as none. */
	if (!json_array_size(p->wanted) && !json_array_size(has))
		return true;
	return json_equal(has, p->wanted) ||
	       (p->sent && json_equal(p->sent, p->wanted) && json_equal(has, p->taken));
}

/* One write at a time; each answer comes back here. */
static void update(void *data)
{
	struct publisher *p = data;
	const char *node_uid = node_object_uid(p->node_object);
	if (p->call || p->is_waiting || !p->is_known || !p->wanted || !node_uid)
		return;
	struct slice *first = TAILQ_FIRST(&p->slices);
	struct slice *second = first ? TAILQ_NEXT(first, link) : NULL;
	if (second)
		send(p, "DELETE", metadata(second->object, "name"), NULL, removed);
	else if (!first || !is_right(p, first, node_uid))
		write_slice(p, node_uid, first);
	if (second && p->call)
		forget(p, second);
}

static void rang(void *data)
{
	struct publisher *p = data;
	p->is_waiting = false;
	update(p);
}

/* ---- seeing ---- */

static void list_begins(void *data)
{
	struct publisher *p = data;
	p->is_listing = true;
	forget_all(p);
}

static void seen(void *data, json_t *object)
{
	struct publisher *p = data;
	take(p, object);
	if (!p->is_listing)
		update(p);
}

static void gone(void *data, json_t *object)
{
	struct publisher *p = data;
	const char *name = metadata(object, "name");
	struct slice *s = name ? find(p, name) : NULL;
	if (s)
		forget(p, s);
	update(p);
}

static void synced(void *data)
{
	struct publisher *p = data;
	p->is_listing = false;
	p->is_known = true;
	/* The server may be another one by now, with other gates. */
	if (p->is_unshared) {
		json_decref(p->sent);
		p->sent = NULL;
	}
	update(p);
}

static void troubled(void *data, const struct error *err)
{
	struct publisher *p = data;
	if (err && !p->fails)
		log_warning("DRA: ResourceSlices: %s; it is tried again", err->text);
	p->fails = err != NULL;
}

/* ---- life ---- */

struct publisher *publisher_start(struct kube_client *client, const char *node,
				  const struct node_object *object)
{
	static const struct watch_handlers handlers = { list_begins, seen, gone, synced, troubled };
	char selector[PATH_MAX_BYTES];
	struct publisher *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct publisher){ .client = client, .node = node, .node_object = object };
	p->again = (struct alarm){ .ring = rang, .data = p };
	TAILQ_INIT(&p->slices);
	snprintf(selector, sizeof(selector),
		 "fieldSelector=spec.driver%%3D" DRA_DRIVER "%%2Cspec.nodeName%%3D%s", node);
	p->watch = kube_watch_start(client, COLLECTION, selector, &handlers, p);
	return p->watch ? p : publisher_stop(p);
}

struct publisher *publisher_stop(struct publisher *p)
{
	if (!p)
		return NULL;
	kube_watch_stop(p->watch);
	kube_call_drop(p->call);
	alarm_clear(kube_client_reactor(p->client), &p->again);
	forget_all(p);
	json_decref(p->wanted);
	json_decref(p->sent);
	json_decref(p->taken);
	json_decref(p->sending);
	free(p);
	return NULL;
}

void publisher_want(struct publisher *p, json_t *devices)
{
	if (!devices)
		return;
	json_decref(p->wanted);
	p->wanted = devices;
	update(p);
}

void publisher_look(struct publisher *p)
{
	update(p);
}
