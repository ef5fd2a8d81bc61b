#include "daemon/kubelet/dra/publisher.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
#define NAME_MAX_BYTES 320

/* Whether the server keeps taints of devices. */
enum taints { TAINTS_UNKNOWN, TAINTS_KEPT, TAINTS_DROPPED };

struct publisher {
	struct kube_client *client;
	const char *node;
	const struct node_object *node_object;
	struct kube_watch *watch;
	bool is_known, is_listing, fails;
	char name[NAME_MAX_BYTES]; /* of the slice */
	json_t *slice;             /* as the server has it; NULL: it has none */
	json_t *all;               /* the devices; NULL: not known yet */
	json_t *wanted;            /* of these, what is to be written */
	enum taints taints;
	json_t *sent, *taken;   /* those that were written last, and what the server made of them */
	struct kube_call *call; /* a write under way */
	json_t *sending;        /* its devices */
	bool is_probing;        /* it is a dry run, to see whether taints are kept */
	struct backoff backoff;
	uint64_t failures;
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

static void forget(struct publisher *p)
{
	json_decref(p->slice);
	p->slice = NULL;
}

/* A watch and an answer come on two connections, in any order: the newer counts. */
static void take(struct publisher *p, json_t *object)
{
	const char *version = metadata(object, "resourceVersion");
	const char *have = metadata(p->slice, "resourceVersion");
	if (!version || (have && strtoull(version, NULL, 10) < strtoull(have, NULL, 10)))
		return;
	json_incref(object);
	forget(p);
	p->slice = object;
}

/* ---- taints ---- */

/* A device without its taint would be given to pods. */
static void choose_wanted(struct publisher *p)
{
	json_decref(p->wanted);
	p->wanted = p->taints == TAINTS_KEPT ? json_incref(p->all)
					     : dra_devices_without_taints(p->all);
}

/* What the server made of devices that have taints. */
static void look_at_taints(struct publisher *p, const json_t *object)
{
	p->taints = dra_devices_are_tainted(devices_of(object)) ? TAINTS_KEPT : TAINTS_DROPPED;
	choose_wanted(p);
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
	p->failures++;
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
	if (dra_devices_are_tainted(sent))
		look_at_taints(p, reply->object);
	if (p->is_probing) {
		json_decref(sent);
		update(p);
		return;
	}
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

static void write_slice(struct publisher *p, const char *node_uid, json_t *devices, bool is_probe)
{
	char path[PATH_MAX_BYTES];
	cleanup_object json_t *slice = dra_slice(p->node, node_uid, p->name,
						 metadata(p->slice, "resourceVersion"),
						 generation_of(p->slice) + 1, devices);
	cleanup_free char *body = slice ? json_dumps(slice, JSON_COMPACT) : NULL;
	if (!body)
		return;
	snprintf(path, sizeof(path), COLLECTION "%s%s%s", p->slice ? "/" : "",
		 p->slice ? p->name : "", is_probe ? "?dryRun=All" : "");
	p->is_probing = is_probe;
	p->call = kube_call_start(p->client,
				  &(struct kube_request){ .method = p->slice ? "PUT" : "POST",
							  .path = path,
							  .type = KUBE_JSON,
							  .body = body },
				  NULL, written, p);
	if (p->call)
		p->sending = json_incref(devices);
}

/* Is it of this Node, and as wanted, or as the server makes of that? */
static bool is_right(const struct publisher *p, const char *node_uid)
{
	const json_t *owners = json_object_get(json_object_get(p->slice, "metadata"),
					       "ownerReferences");
	const json_t *owner = json_array_get(owners, 0), *has = devices_of(p->slice);
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
	if (p->taints == TAINTS_UNKNOWN && dra_devices_are_tainted(p->all))
		write_slice(p, node_uid, p->all, true);
	else if (!p->slice || !is_right(p, node_uid))
		write_slice(p, node_uid, p->wanted, false);
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
	forget(p);
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
	forget(data);
	update(data);
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
	p->taints = TAINTS_UNKNOWN;
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
	snprintf(p->name, sizeof(p->name), "%s-" DRA_DRIVER, node);
	snprintf(selector, sizeof(selector), "fieldSelector=metadata.name%%3D%s", p->name);
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
	forget(p);
	json_decref(p->all);
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
	json_decref(p->all);
	p->all = devices;
	choose_wanted(p);
	update(p);
}

void publisher_look(struct publisher *p)
{
	update(p);
}

void publisher_count(const struct publisher *p, uint64_t *ret_devices, uint64_t *ret_failures)
{
	*ret_devices = json_array_size(devices_of(p->slice));
	*ret_failures = p->failures;
}
