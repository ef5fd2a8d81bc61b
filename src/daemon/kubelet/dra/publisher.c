#include "daemon/kubelet/dra/publisher.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "daemon/kubelet/kube/node_object.h"
#include "kube/client/watch.h"
#include "kube/dra/slice.h"
#include "kube/util/backoff.h"
#include "kube/util/object.h"

#define COLLECTION DRA_API "/resourceslices"
#define PATH_MAX_BYTES 500
#define NAME_MAX_BYTES 400

/* Whether the API server stores taints of devices. */
enum taints { TAINTS_UNKNOWN, TAINTS_KEPT, TAINTS_DROPPED };

/* The ResourceSlice of one GPU. The GPU may be gone: then the server still has the slice, which must be deleted. */
struct gpu_slice {
	LIST_ENTRY(gpu_slice) link;
	char name[NAME_MAX_BYTES];
	char pool[DRA_POOL_MAX]; /* "": the GPU is gone, so the slice is to be deleted */
	json_t *device;          /* a list of the one device, with its taints */
	json_t *object;          /* the slice as the server has it; NULL: the server has none */
	json_t *sent,
		/* sent: the devices written last; taken: those devices as the server stored them */
		*taken;
};

struct publisher {
	struct kube_client *client;
	const char *node;
	const struct node_object *node_object;
	struct kube_watch *watch;
	/* is_known: the watch has listed all our slices; fails: the watch fails */
	bool is_known, fails;
	bool has_devices; /* publisher_set_devices() has set the devices */
	LIST_HEAD(, gpu_slice) slices;
	enum taints taints;
	struct kube_call *call;    /* the write in progress; slices are written one at a time */
	struct gpu_slice *writing; /* the slice that is being written */
	json_t *sending;           /* the devices being written; NULL: a deletion */
	bool is_probing; /* the write is a dry run, to learn whether the server stores taints */
	struct backoff backoff;
	uint64_t failures;
	struct alarm again;
	bool is_waiting; /* `again` is armed, and nothing is written before it rings */
	/* is_refused: a failed write was logged; is_unshared: it was logged that the server drops the field for sharing */
	bool is_refused, is_unshared;
};

static void update(void *data);

static json_t *devices_of(const json_t *object)
{
	return json_object_get(json_object_get(object, "spec"), "devices");
}

static int64_t generation_of(const json_t *object)
{
	const json_t *pool = json_object_get(json_object_get(object, "spec"), "pool");
	return json_integer_value(json_object_get(pool, "generation"));
}

static struct gpu_slice *find_slice(const struct publisher *p, const char *name)
{
	struct gpu_slice *s;
	LIST_FOREACH(s, &p->slices, link)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

static struct gpu_slice *take_slice(struct publisher *p, const char *name)
{
	struct gpu_slice *s = find_slice(p, name);
	if (s || !(s = calloc(1, sizeof(*s))))
		return s;
	snprintf(s->name, sizeof(s->name), "%s", name);
	LIST_INSERT_HEAD(&p->slices, s, link);
	return s;
}

static void forget_object(struct gpu_slice *s)
{
	json_decref(s->object);
	s->object = NULL;
}

static void drop_slice(struct gpu_slice *s)
{
	forget_object(s);
	LIST_REMOVE(s, link);
	json_decref(s->device);
	json_decref(s->sent);
	json_decref(s->taken);
	free(s);
}

/* Ignores an older version, which may arrive late: the watch and the answers to writes use two connections. */
static void store_slice(struct publisher *p, json_t *object)
{
	const char *version = object_meta_text(object, "resourceVersion"),
		   *name = object_meta_text(object, "name");
	struct gpu_slice *s = name && version ? take_slice(p, name) : NULL;
	const char *have = s ? object_meta_text(s->object, "resourceVersion") : NULL;
	if (!s || (have && strtoull(version, NULL, 10) < strtoull(have, NULL, 10)))
		return;
	json_incref(object);
	forget_object(s);
	s->object = object;
}

/* Unless the server stores taints, a tainted device is left out, so that no pod gets it. Returns a new reference. */
static json_t *desired_slice(const struct publisher *p, const struct gpu_slice *s)
{
	return p->taints == TAINTS_KEPT ? json_incref(s->device)
					: dra_devices_without_taints(s->device);
}

/*
 * Warns if the server silently dropped the field that lets claims share a GPU, because its feature gate is off. A slice without
 * devices cannot show that.
 */
static void look_at_answer(struct publisher *p, const json_t *object)
{
	if (!json_array_size(devices_of(object)))
		return;
	bool is_unshared = !dra_slice_is_shared(object);
	if (is_unshared && !p->is_unshared)
		log_warning(
			"DRA: only whole GPUs can be given in this cluster: its API server dropped "
			"allowMultipleAllocations; parts need the feature gate "
			"DRAConsumableCapacity (on by default from Kubernetes 1.36)");
	p->is_unshared = is_unshared;
}

/* Nothing more is written until the alarm rings. retry_after_ns: as in struct kube_answer. */
static void retry_later(struct publisher *p, const char *why, uint64_t retry_after_ns)
{
	log_write(p->is_refused ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
		  "DRA: this node's GPUs can't be published: %s; trying again", why);
	p->is_refused = true;
	p->failures++;
	p->is_waiting = true;
	alarm_set(kube_client_reactor(p->client), &p->again,
		  backoff_next_ns(&p->backoff, retry_after_ns));
}

static void written(void *data, const struct kube_answer *reply)
{
	struct publisher *p = data;
	struct gpu_slice *s = p->writing;
	json_t *sent = p->sending;
	p->call = NULL;
	p->writing = NULL;
	p->sending = NULL;
	/* Status 404: the server has no such slice. So a deletion has succeeded; an update must create the slice instead. */
	bool is_gone = reply->status == HTTP_NOT_FOUND ? !sent || s->object
						       : !sent && !reply->err.code;
	if (!is_gone && (reply->err.code || !reply->object)) {
		json_decref(sent);
		retry_later(p, reply->err.text, reply->retry_after_ns);
		return;
	}
	p->backoff.failures = 0;
	p->is_refused = false;
	if (is_gone)
		forget_object(s);
	else if (dra_devices_are_tainted(sent))
		p->taints = dra_devices_are_tainted(devices_of(reply->object)) ? TAINTS_KEPT
									       : TAINTS_DROPPED;
	if (is_gone || p->is_probing) {
		json_decref(sent);
		update(p);
		return;
	}
	json_decref(s->sent);
	json_decref(s->taken);
	s->sent = sent;
	s->taken = json_incref(devices_of(reply->object));
	look_at_answer(p, reply->object);
	log_info("DRA: ResourceSlice %s is published, generation %" PRId64, s->name,
		 generation_of(reply->object));
	store_slice(p, reply->object);
	update(p);
}

static void start_call(struct publisher *p, struct gpu_slice *s, const struct kube_request *request,
		       json_t *devices)
{
	p->call = kube_call_start(p->client, request, NULL, written, p);
	if (!p->call) {
		retry_later(p, "out of memory", 0);
		return;
	}
	p->writing = s;
	p->sending = json_incref(devices);
}

static void write_slice(struct publisher *p, struct gpu_slice *s, const char *node_uid,
			json_t *devices, bool is_probe)
{
	char path[PATH_MAX_BYTES];
	const struct dra_slice_names names = {
		.node = p->node, .node_uid = node_uid, .name = s->name, .pool = s->pool
	};
	cleanup_json json_t *slice = dra_slice(&names,
					       object_meta_text(s->object, "resourceVersion"),
					       generation_of(s->object) + 1, devices);
	cleanup_free char *body = slice ? json_dumps(slice, JSON_COMPACT) : NULL;
	if (!body) {
		retry_later(p, "out of memory", 0);
		return;
	}
	snprintf(path, sizeof(path), COLLECTION "%s%s%s", s->object ? "/" : "",
		 s->object ? s->name : "", is_probe ? "?dryRun=All" : "");
	p->is_probing = is_probe;
	start_call(p, s,
		   &(struct kube_request){ .method = s->object ? "PUT" : "POST",
					   .path = path,
					   .type = KUBE_JSON,
					   .body = body },
		   devices);
}

static void delete_slice(struct publisher *p, struct gpu_slice *s)
{
	char path[PATH_MAX_BYTES];
	snprintf(path, sizeof(path), COLLECTION "/%s", s->name);
	p->is_probing = false;
	start_call(p, s, &(struct kube_request){ .method = "DELETE", .path = path }, NULL);
}

/*
 * Whether the server's slice is owned by this Node and has the desired devices, perhaps in the form in which the server stored
 * an earlier write of them.
 */
static bool is_right(const struct gpu_slice *s, const char *node_uid, const json_t *devices)
{
	const json_t *owners = json_object_get(json_object_get(s->object, "metadata"),
					       "ownerReferences");
	const json_t *owner = json_array_get(owners, 0), *has = devices_of(s->object);
	const char *uid = json_string_value(json_object_get(owner, "uid"));
	if (!uid || strcmp(uid, node_uid) != 0)
		return false;
	/* The server may store an empty list as no list. */
	if (!json_array_size(devices) && !json_array_size(has))
		return true;
	return json_equal(has, devices) ||
	       (s->sent && json_equal(s->sent, devices) && json_equal(has, s->taken));
}

static void update_slice(struct publisher *p, struct gpu_slice *s, const char *node_uid)
{
	cleanup_json json_t *devices = NULL;
	if (!*s->pool) {
		if (s->object)
			delete_slice(p, s);
		else
			drop_slice(s);
		return;
	}
	if (p->taints == TAINTS_UNKNOWN && dra_devices_are_tainted(s->device)) {
		write_slice(p, s, node_uid, s->device, true);
		return;
	}
	devices = desired_slice(p, s);
	if (!devices)
		retry_later(p, "out of memory", 0);
	else if (!s->object || !is_right(s, node_uid, devices))
		write_slice(p, s, node_uid, devices, false);
}

/* Starts to write or delete one slice that is not as desired, if no call is under way. Called again after each answer. */
static void update(void *data)
{
	struct publisher *p = data;
	const char *node_uid = node_object_uid(p->node_object);
	struct gpu_slice *s, *next;
	if (!p->is_known || !p->has_devices || !node_uid)
		return;
	for (s = LIST_FIRST(&p->slices); s && !p->call && !p->is_waiting; s = next) {
		next = LIST_NEXT(s, link);
		update_slice(p, s, node_uid);
	}
}

static void retry_due(void *data)
{
	struct publisher *p = data;
	p->is_waiting = false;
	update(p);
}

static void list_begins(void *data)
{
	struct publisher *p = data;
	struct gpu_slice *s;
	p->is_known = false;
	LIST_FOREACH(s, &p->slices, link)
		forget_object(s);
}

static void object_changed(void *data, json_t *object)
{
	store_slice(data, object);
	update(data);
}

/* Forgets the server's slice only if its uid is the event's: a late event may be about an earlier slice of the same name. */
static void object_deleted(void *data, json_t *object)
{
	const char *name = object_meta_text(object, "name"), *uid = object_meta_text(object, "uid");
	struct gpu_slice *s = name ? find_slice(data, name) : NULL;
	const char *has = s ? object_meta_text(s->object, "uid") : NULL;
	if (has && uid && !strcmp(has, uid))
		forget_object(s);
	update(data);
}

static void synced(void *data)
{
	struct publisher *p = data;
	p->is_known = true;
	/* After a reconnect the server may have other feature gates: find out again what it stores. */
	struct gpu_slice *s;
	LIST_FOREACH(s, &p->slices, link)
		if (p->is_unshared) {
			json_decref(s->sent);
			s->sent = NULL;
		}
	p->taints = TAINTS_UNKNOWN;
	update(p);
}

static void watch_failed(void *data, const struct error *err)
{
	struct publisher *p = data;
	if (err && !p->fails)
		log_warning("DRA: this node's ResourceSlices can't be read from the API server: "
			    "%s; trying again",
			    err->text);
	p->fails = err != NULL;
}

struct publisher *publisher_start(struct kube_client *client, const char *node,
				  const struct node_object *object)
{
	static const struct watch_handlers handlers = { list_begins, object_changed, object_deleted,
							synced, watch_failed };
	char selector[PATH_MAX_BYTES];
	struct publisher *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct publisher){ .client = client, .node = node, .node_object = object };
	p->again = (struct alarm){ .handler = retry_due, .data = p };
	LIST_INIT(&p->slices);
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
	while (!LIST_EMPTY(&p->slices))
		drop_slice(LIST_FIRST(&p->slices));
	json_decref(p->sending);
	free(p);
	return NULL;
}

static void want_device(struct publisher *p, const char *name, json_t *device)
{
	char slice[DRA_POOL_MAX];
	dra_slice_name(p->node, name, slice);
	struct gpu_slice *s = take_slice(p, slice);
	if (!s)
		return;
	json_decref(s->device);
	s->device = json_pack("[O*]", device);
	dra_pool_name(p->node, name, s->pool);
}

void publisher_set_devices(struct publisher *p, json_t *devices)
{
	struct gpu_slice *s;
	json_t *device;
	size_t i;
	if (!devices)
		return;
	LIST_FOREACH(s, &p->slices, link)
		s->pool[0] = '\0';
	json_array_foreach(devices, i, device)
		want_device(p, json_string_value(json_object_get(device, "name")), device);
	json_decref(devices);
	p->has_devices = true;
	update(p);
}

void publisher_pause(struct publisher *p)
{
	p->has_devices = false;
}

void publisher_refresh(struct publisher *p)
{
	update(p);
}

void publisher_count(const struct publisher *p, uint64_t *ret_devices, uint64_t *ret_failures)
{
	const struct gpu_slice *s;
	*ret_devices = 0;
	LIST_FOREACH(s, &p->slices, link)
		*ret_devices += json_array_size(devices_of(s->object));
	*ret_failures = p->failures;
}
