#include "scheduler/cluster/feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"

#define NOT_ENDED "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"

#define SOURCES (MODEL_QUOTAS + 1)

static void remove_node(struct model *model, const json_t *object)
{
	const json_t *meta = json_object_get(object, "metadata");
	const char *name = json_string_value(json_object_get(meta, "name"));
	if (name)
		model_remove_node(model, name);
}

static const struct source_row {
	const char *word, *collection, *selector;
	/* if the server forbids the list, the list counts as empty */
	bool may_be_forbidden;
	int (*update)(struct model *model, const json_t *object, struct error *err);
	void (*remove)(struct model *model, const json_t *object);
} rows[SOURCES] = {
	[MODEL_NODES] = { "node", "/api/v1/nodes", "", false, model_update_node, remove_node },
	[MODEL_PODS] = { "pod", "/api/v1/pods", NOT_ENDED, false, model_update_pod,
			 model_remove_pod },
	[MODEL_QUOTAS] = { "ResourceQuota", "/api/v1/resourcequotas", "", true, model_update_quota,
			   model_remove_quota },
};

struct source {
	struct feed *feed;
	enum model_kind kind;
	struct kube_watch *watch;
	bool has_begun; /* the server has permitted the list at least once */
	bool is_synced, fails, is_forbidden;
};

struct feed {
	struct feed_terms terms;
	struct source source[SOURCES];
	/* per object with an error: the error that was logged last, as {"pod default/a": "..."} */
	json_t *logged;
};

static char *name_object(const struct source *s, const json_t *object)
{
	const json_t *meta = json_object_get(object, "metadata");
	const char *in = json_string_value(json_object_get(meta, "namespace"));
	const char *name = json_string_or(meta, "name", "");
	char *text = NULL;
	if (asprintf(&text, "%s %s%s%s", rows[s->kind].word, in ? in : "", in ? "/" : "", name) < 0)
		return NULL;
	return text;
}

/* Logs why an object cannot be read, once per reason. `why` is NULL if the object can be read or is gone. */
static void log_malformed(struct source *s, const json_t *object, const struct error *why)
{
	struct feed *feed = s->feed;
	if (!why && !json_object_size(feed->logged))
		return;
	cleanup_free char *name = name_object(s, object);
	const char *logged_text = name ? json_string_value(json_object_get(feed->logged, name))
				       : NULL;
	if (!name || (!why && !logged_text) ||
	    (why && logged_text && !strcmp(logged_text, why->text)))
		return;
	if (why) {
		log_warning("%s", why->text);
		json_object_set_new(feed->logged, name, json_string(why->text));
		return;
	}
	log_info("%s: is valid again, or was deleted", name);
	json_object_del(feed->logged, name);
}

static void list_begun(void *data)
{
	struct source *s = data;
	s->has_begun = true;
	model_list_begin(s->feed->terms.model, s->kind);
}

static void object_changed(void *data, json_t *object)
{
	struct source *s = data;
	struct feed *feed = s->feed;
	struct error err = { 0 };
	int r = rows[s->kind].update(feed->terms.model, object, &err);
	log_malformed(s, object, r < 0 ? &err : NULL);
	if (s->kind == MODEL_NODES && feed->terms.node)
		feed->terms.node(feed->terms.data, object);
}

static void object_deleted(void *data, json_t *object)
{
	struct source *s = data;
	log_malformed(s, object, NULL);
	rows[s->kind].remove(s->feed->terms.model, object);
}

static void set_synced(struct source *s)
{
	struct feed *feed = s->feed;
	bool was_ready = feed_is_ready(feed);
	s->is_synced = true;
	if (!was_ready && feed_is_ready(feed) && feed->terms.ready)
		feed->terms.ready(feed->terms.data);
}

static void synced(void *data)
{
	struct source *s = data;
	model_list_end(s->feed->terms.model, s->kind);
	set_synced(s);
}

/*
 * Whether a forbidden list is forbidden for good: true if all lists that must be permitted work. A server that has just started
 * forbids all lists for a while.
 */
static bool is_permanent(const struct feed *feed)
{
	bool is = true;
	for (enum model_kind kind = 0; kind < SOURCES; kind++)
		is &= rows[kind].may_be_forbidden ||
		      (feed->source[kind].has_begun && !feed->source[kind].fails);
	return is;
}

static void set_forbidden(struct source *s, const struct error *err)
{
	if (!is_permanent(s->feed))
		return; /* the watch tries again */
	if (!s->is_forbidden)
		log_warning("%s: %s objects are not enforced, except those read before: "
			    "permit allot-scheduler's role to list and watch them",
			    err->text, rows[s->kind].word);
	s->is_forbidden = true;
	s->fails = false;
	set_synced(s);
}

static bool is_degraded(const struct feed *feed)
{
	bool fails = false;
	for (enum model_kind kind = 0; kind < SOURCES; kind++)
		fails |= feed->source[kind].fails;
	return fails;
}

/* Logs that a watch fails, or works again (`err` is NULL). An unreachable server fails all watches; that is logged once. */
static void watch_failed(void *data, const struct error *err)
{
	struct source *s = data;
	struct feed *feed = s->feed;
	bool was_degraded = is_degraded(feed);
	if (err && err->code == EACCES && rows[s->kind].may_be_forbidden) {
		set_forbidden(s, err);
		return;
	}
	if (!err && s->is_forbidden)
		log_info("Kubernetes API: %s objects can be read now, so allot-scheduler enforces their limits",
			 rows[s->kind].word);
	s->is_forbidden = false;
	s->fails = err != NULL;
	if (err && !was_degraded)
		log_warning("Kubernetes API: %s; trying again", err->text);
	else if (err)
		log_debug("Kubernetes API: %s", err->text);
	else if (was_degraded && !is_degraded(feed))
		log_info("Kubernetes API: it answers again, and nodes and pods can be read");
}

static struct kube_watch *start(struct feed *feed, enum model_kind kind)
{
	struct source *s = &feed->source[kind];
	static const struct watch_handlers handlers = { .list_begun = list_begun,
							.object = object_changed,
							.deleted = object_deleted,
							.synced = synced,
							.failed = watch_failed };
	*s = (struct source){ .feed = feed, .kind = kind };
	s->watch = kube_watch_start(feed->terms.client, rows[kind].collection, rows[kind].selector,
				    &handlers, s);
	return s->watch;
}

int feed_start(const struct feed_terms *terms, struct feed **ret)
{
	struct feed *feed = calloc(1, sizeof(*feed));
	if (!feed)
		return -ENOMEM;
	feed->terms = *terms;
	feed->logged = json_object();
	bool is_whole = feed->logged;
	for (enum model_kind kind = 0; kind < SOURCES; kind++)
		is_whole = is_whole && start(feed, kind);
	if (!is_whole) {
		feed_stop(feed);
		return -ENOMEM;
	}
	*ret = feed;
	return 0;
}

struct feed *feed_stop(struct feed *feed)
{
	if (!feed)
		return NULL;
	for (enum model_kind kind = 0; kind < SOURCES; kind++)
		kube_watch_stop(feed->source[kind].watch);
	json_decref(feed->logged);
	free(feed);
	return NULL;
}

bool feed_is_ready(const struct feed *feed)
{
	bool is_ready = true;
	for (enum model_kind kind = 0; kind < SOURCES; kind++)
		is_ready &= feed->source[kind].is_synced;
	return is_ready;
}
