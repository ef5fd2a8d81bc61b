#include "daemon/kubelet/kube/node_object.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/hami/annotations.h"
#include "kube/hami/handshake.h"
#include "kube/util/backoff.h"

/* Least time between two writes that undo another writer, so that two writers do not overwrite each other at full speed. */
#define PUT_BACK_NS (2 * NSEC_PER_SEC)
#define PATH_MAX_BYTES 320

struct node_object {
	struct kube_client *client;
	const char *name;
	void (*trouble)(void *data, const struct error *err);
	void *data;
	struct kube_watch *watch;
	/* name, uid, annotations and labels as last seen; NULL: there is no Node object */
	json_t *metadata;
	bool is_listing; /* the watch is receiving a list */
	bool is_listed;  /* the list that the watch is receiving has named the Node object */
	bool is_missed;  /* it was logged that the node does not exist */
	struct desired_metadata desired;
	/* node_object_withdraw() was called: nothing is written any more */
	bool is_withdrawn;
	struct kube_call *patch;
	struct alarm again;
	bool is_waiting; /* a patch failed, and none is sent before `again` rings */
	struct backoff backoff;
	uint64_t patched_ns; /* time of the last successful patch; 0: none */
	bool is_refused;     /* a failed patch was logged, and none has succeeded since */
	bool is_disputed;    /* it was logged that another writer changes the same fields */
};

static void update(struct node_object *o);

static const char *text_of(const struct node_object *o, const char *part, const char *name)
{
	return json_string_value(json_object_get(json_object_get(o->metadata, part), name));
}

/*
 * Ignores an older version, which may arrive late: the watch and the answers to patches use two connections. A list
 * (`is_certain`) is always stored, since a restarted API server may have an older state. Returns true if stored.
 */
static bool store_metadata(struct node_object *o, json_t *metadata, bool is_certain)
{
	const char *have = json_string_value(json_object_get(o->metadata, "resourceVersion"));
	const char *got = json_string_value(json_object_get(metadata, "resourceVersion"));
	if (!metadata ||
	    (!is_certain && have && got && strtoull(got, NULL, 10) < strtoull(have, NULL, 10)))
		return false;
	json_decref(o->metadata);
	o->metadata = json_incref(metadata);
	return true;
}

static void wait_before_retry(struct node_object *o, uint64_t in_ns)
{
	o->is_waiting = true;
	alarm_set(kube_client_reactor(o->client), &o->again, in_ns);
}

static void wait_is_over(void *data)
{
	struct node_object *o = data;
	o->is_waiting = false;
	update(o);
}

static void patched(void *data, const struct kube_answer *answer)
{
	struct node_object *o = data;
	o->patch = NULL;
	if (o->is_withdrawn) {
		if (answer->err.code)
			log_warning("node %s: its GPUs can't be removed from its Node object: %s",
				    o->name, answer->err.text);
		else
			store_metadata(o, json_object_get(answer->object, "metadata"), false);
		return;
	}
	if (!answer->err.code) {
		o->backoff.failures = 0;
		o->is_refused = false;
		o->patched_ns = clock_now_ns();
		if (o->metadata)
			store_metadata(o, json_object_get(answer->object, "metadata"), false);
		update(o);
		return;
	}
	log_write(o->is_refused ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
		  "node %s: its GPUs can't be published: %s; trying again", o->name,
		  answer->err.text);
	o->is_refused = true;
	wait_before_retry(o, backoff_next_ns(&o->backoff, answer->retry_after_ns));
}

static int send_patch(struct node_object *o, const struct patch_pair *annotation,
		      size_t annotations, const struct patch_pair *label, size_t labels)
{
	char path[PATH_MAX_BYTES];
	log_debug("node %s: %zu annotations and %zu labels are written", o->name, annotations,
		  labels);
	snprintf(path, sizeof(path), "/api/v1/nodes/%s", o->name);
	cleanup_free char *body = patch_metadata(annotation, annotations, label, labels, NULL);
	if (body)
		o->patch = kube_call_start(o->client,
					   &(struct kube_request){ .method = "PATCH",
								   .path = path,
								   .type = KUBE_MERGE_PATCH,
								   .body = body },
					   NULL, patched, o);
	return o->patch ? 0 : -ENOMEM;
}

static void send(struct node_object *o, const struct metadata_diff *w, const char *handshake)
{
	struct patch_pair annotation[4]; /* the missing annotations, and the handshake */
	size_t annotations = w->annotations;
	memcpy(annotation, w->annotation, sizeof(w->annotation));
	if (handshake)
		annotation[annotations++] = (struct patch_pair){ KUBE_NODE_HANDSHAKE, handshake };
	if (send_patch(o, annotation, annotations, w->label, w->labels) < 0)
		wait_before_retry(o, NSEC_PER_SEC);
}

/* True if another writer has undone what we wrote less than PUT_BACK_NS ago. Logs that, and arms `again`. */
static bool is_too_soon(struct node_object *o, const struct metadata_diff *w)
{
	uint64_t since_ns = clock_now_ns() - o->patched_ns;
	if (!o->patched_ns || since_ns >= PUT_BACK_NS)
		return false;
	const char *what = w->annotations ? w->annotation[0].name : w->label[0].name;
	if (!o->is_disputed)
		log_warning("node %s: another program writes %s as well: allotd restores it "
			    "every %" PRIu64 " s; is another device plugin running here?",
			    o->name, what, PUT_BACK_NS / NSEC_PER_SEC);
	o->is_disputed = true;
	alarm_set(kube_client_reactor(o->client), &o->again, PUT_BACK_NS - since_ns);
	return true;
}

static void update(struct node_object *o)
{
	char answer[HANDSHAKE_MAX];
	if (o->is_withdrawn || o->patch || o->is_waiting || !o->metadata || !o->desired.cards)
		return;
	const struct metadata_diff w = desired_metadata_diff(&o->desired, o->metadata);
	bool must_patch = w.annotations || w.labels;
	bool is_asked = handshake_parse(text_of(o, "annotations", KUBE_NODE_HANDSHAKE)) !=
			HANDSHAKE_NONE;
	if (must_patch && !is_asked && is_too_soon(o, &w))
		return;
	handshake_answer((int64_t)time(NULL), answer);
	if (must_patch || is_asked)
		send(o, &w, is_asked ? answer : NULL);
}

static void list_begins(void *data)
{
	struct node_object *o = data;
	o->is_listing = true;
	o->is_listed = false;
}

static void object_changed(void *data, json_t *object)
{
	struct node_object *o = data;
	o->is_listed = true;
	if (!store_metadata(o, json_object_get(object, "metadata"), o->is_listing))
		return;
	if (o->is_missed)
		log_info("node %s: its Node object exists now", o->name);
	o->is_missed = false;
	update(o);
}

static void forget(struct node_object *o)
{
	json_decref(o->metadata);
	o->metadata = NULL;
	if (!o->is_missed)
		log_warning("node %s: there is no Node object of that name; is kube_node_name "
			    "right?",
			    o->name);
	o->is_missed = true;
}

static void object_deleted(void *data, json_t *object)
{
	forget(data);
}

static void synced(void *data)
{
	struct node_object *o = data;
	o->is_listing = false;
	if (!o->is_listed)
		forget(o);
}

static void watch_failed(void *data, const struct error *err)
{
	const struct node_object *o = data;
	o->trouble(o->data, err);
}

struct node_object *node_object_start(struct kube_client *client, const char *name,
				      void (*trouble)(void *data, const struct error *err),
				      void *data)
{
	static const struct watch_handlers handlers = { list_begins, object_changed, object_deleted,
							synced, watch_failed };
	char selector[PATH_MAX_BYTES];
	struct node_object *o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	*o = (struct node_object){ .client = client, .name = name, .trouble = trouble, .data = data };
	o->again = (struct alarm){ .handler = wait_is_over, .data = o };
	snprintf(selector, sizeof(selector), "fieldSelector=metadata.name%%3D%s", name);
	o->watch = kube_watch_start(client, "/api/v1/nodes", selector, &handlers, o);
	return o->watch ? o : node_object_stop(o);
}

bool node_object_withdraw(struct node_object *o)
{
	static const struct patch_pair none[] = { { KUBE_NODE_REGISTER, NULL },
						  { KUBE_NODE_SCORE, NULL },
						  { KUBE_NODE_USE, NULL } };
	/* A Node object that was not seen yet may have annotations of an earlier daemon, so remove them too. */
	if (o->is_missed || o->is_withdrawn)
		return false;
	o->patch = kube_call_drop(o->patch);
	alarm_clear(kube_client_reactor(o->client), &o->again);
	if (send_patch(o, none, sizeof(none) / sizeof(none[0]), NULL, 0) < 0)
		return false;
	o->is_withdrawn = true;
	return true;
}

bool node_object_has_withdrawn(const struct node_object *o)
{
	return o->is_withdrawn && !o->patch;
}

struct node_object *node_object_stop(struct node_object *o)
{
	if (!o)
		return NULL;
	kube_watch_stop(o->watch);
	kube_call_drop(o->patch);
	alarm_clear(kube_client_reactor(o->client), &o->again);
	json_decref(o->metadata);
	desired_metadata_free(&o->desired);
	free(o);
	return NULL;
}

void node_object_set_desired(struct node_object *o, struct desired_metadata *desired)
{
	if (o->desired.cards && desired_metadata_equal(&o->desired, desired)) {
		desired_metadata_free(desired);
		return;
	}
	desired_metadata_free(&o->desired);
	o->desired = *desired;
	*desired = (struct desired_metadata){ 0 };
	/* The Node object differs because we want something else, not because another writer changed it. So write at once. */
	o->patched_ns = 0;
	update(o);
}

const char *node_object_uid(const struct node_object *o)
{
	return json_string_value(json_object_get(o->metadata, "uid"));
}

int node_object_lock(const struct node_object *o, struct node_lock *ret, struct error *err)
{
	const char *text = text_of(o, "annotations", KUBE_NODE_LOCK);
	if (!text)
		return error_set(err, ENOENT, "node %s is not locked", o->name);
	int r = node_lock_parse(text, ret, err);
	return r < 0 ? error_add(err, r, "node %s", o->name) : 0;
}
